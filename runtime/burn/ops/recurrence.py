"""Building blocks of recurrent layers: activations, the time loop, directions.

The code is generic over ``Maths``: arrays for the kernels, tensors for the gradients,
which rerun the layer on their own tape.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from burn.backend.autodiff import Autodiff, gradients_of
from burn.dtypes import HALVES, is_float
from burn.ops import elementwise
from burn.ops.activation import tanh
from burn.ops.casting import cast
from burn.ops.composition import Joint
from burn.ops.creation import zeros
from burn.ops.logic import where
from burn.ops.matmul import matmul
from burn.ops.padding import flip, reverse_sequence, stack
from burn.ops.reduction import sum as sum_
from burn.ops.shape import permute
from burn.ops.support import accumulate, as_array, namespace, product, stacked
from burn.tensor import Tensor, from_numpy

Activation = Callable[[Any], Any]
State = tuple[Any, ...]


class Options(NamedTuple):
    """The attributes of recurrent layers, under ONNX's names."""

    direction: str = "forward"
    hidden_size: int | None = None
    activations: tuple[str, ...] = ()
    activation_alpha: tuple[float, ...] = ()
    activation_beta: tuple[float, ...] = ()
    clip: float | None = None
    input_forget: bool = False
    linear_before_reset: bool = False
    layout: int = 0

    def reversals(self, directions: int) -> tuple[bool, ...]:
        """Return, for every direction, whether it runs from the end."""
        orders = {
            "forward": (False,),
            "reverse": (True,),
            "bidirectional": (False, True),
        }
        if self.direction not in orders or len(orders[self.direction]) != directions:
            raise ValueError(
                f"expected weights of direction {self.direction!r}, got {directions} "
                "directions"
            )
        return orders[self.direction]


class ArrayMaths:
    """The functions of a layer, on raw arrays."""

    def __init__(self, like: Any) -> None:
        self._like, xp = like, namespace(like)
        self.exp, self.log, self.abs, self.tanh = xp.exp, xp.log, xp.abs, xp.tanh
        self.minimum, self.maximum, self.where = xp.minimum, xp.maximum, xp.where
        self.stack = np.stack if xp is np else stacked
        self.zeros = xp.zeros
        self.permute, self.matmul = xp.transpose, product
        self.wide = accumulate

    def asarray(self, x: Any) -> Any:
        return as_array(self._like, x)

    def cast(self, x: Any, dtype: Any) -> Any:
        return x.astype(dtype, copy=False)

    def reverse_steps(self, x: Any, lengths: Any) -> Any:
        """Return ``x`` reversed in time, each sequence within its length."""
        if lengths is None:
            return x[::-1]
        return reverse_sequence.kernel(x, lengths)


class TensorMaths:
    """The functions of a layer, as primitives on tensors."""

    def __init__(self) -> None:
        self.exp, self.log, self.abs = elementwise.exp, elementwise.log, elementwise.abs
        self.minimum, self.maximum = elementwise.minimum, elementwise.maximum
        self.tanh, self.where = tanh, where
        self.stack, self.permute, self.matmul = stack, permute, matmul

    def wide(self, x: Any) -> Any:
        return cast(x, dtype=np.dtype(np.float32)) if _half(x) else x

    def zeros(self, shape: tuple[int, ...], dtype: Any) -> Any:
        return zeros(shape, dtype=dtype)

    def asarray(self, x: Any) -> Any:
        return x

    def cast(self, x: Any, dtype: Any) -> Any:
        return x if x.dtype == dtype else cast(x, dtype=dtype)

    def reverse_steps(self, x: Any, lengths: Any) -> Any:
        if lengths is None:
            return flip(x, 0)
        return reverse_sequence(x, lengths)


def _half(x: Any) -> bool:
    return x.dtype in HALVES


def sigmoid(m: Any, x: Any, a: float = 0.0, b: float = 0.0) -> Any:
    return m.tanh(x * 0.5) * 0.5 + 0.5


def _softplus(m: Any, x: Any, a: float, b: float) -> Any:
    return m.maximum(x, 0.0) + m.log(m.exp(-m.abs(x)) + 1.0)


# By name: how many of alpha and beta it takes, their defaults, and the function.
_ACTIVATIONS: dict[str, tuple[int, float, float, Any]] = {
    "sigmoid": (0, 0.0, 0.0, sigmoid),
    "tanh": (0, 0.0, 0.0, lambda m, x, a, b: m.tanh(x)),
    "relu": (0, 0.0, 0.0, lambda m, x, a, b: m.maximum(x, 0.0)),
    "softsign": (0, 0.0, 0.0, lambda m, x, a, b: x / (m.abs(x) + 1.0)),
    "softplus": (0, 0.0, 0.0, _softplus),
    "leakyrelu": (1, 0.01, 0.0, lambda m, x, a, b: m.where(x < 0, x * a, x)),
    "thresholdedrelu": (1, 1.0, 0.0, lambda m, x, a, b: m.where(x > a, x, 0.0)),
    "elu": (
        *(1, 1.0, 0.0),
        lambda m, x, a, b: m.where(x < 0, (m.exp(m.minimum(x, 0.0)) - 1.0) * a, x),
    ),
    "affine": (2, 1.0, 0.0, lambda m, x, a, b: x * a + b),
    "scaledtanh": (2, 1.0, 1.0, lambda m, x, a, b: m.tanh(x * b) * a),
    "hardsigmoid": (
        *(2, 0.2, 0.5),
        lambda m, x, a, b: m.minimum(m.maximum(x * a + b, 0.0), 1.0),
    ),
}
#: The lower-case names of activation functions.
ACTIVATION_NAMES = frozenset(_ACTIVATIONS)


def activations_of(m: Any, options: Options, default: tuple[str, ...]) -> Iterator[Any]:
    """Yield the activation functions of each direction.

    Alphas and betas are consumed in order by the functions that have them.

    Raises:
        ValueError: a name is unknown, or the number of parameters is wrong.
    """
    names = options.activations or default * 2
    if len(names) not in (len(default), 2 * len(default)):
        raise ValueError(f"expected {len(default)} activations, got {names}")
    alphas, betas = iter(options.activation_alpha), iter(options.activation_beta)
    functions = [_activation(m, name, alphas, betas) for name in names]
    for start in range(0, len(functions), len(default)):
        yield functions[start : start + len(default)]


def _activation(
    m: Any, name: str, alphas: Iterator[float], betas: Iterator[float]
) -> Activation:
    if name.lower() not in _ACTIVATIONS:
        raise ValueError(f"unknown activation {name!r}")
    takes, alpha, beta, function = _ACTIVATIONS[name.lower()]
    a = next(alphas, alpha) if takes > 0 else alpha
    b = next(betas, beta) if takes > 1 else beta
    return lambda x: function(m, x, a, b)


def clipped(m: Any, limit: float | None) -> Activation:
    """Return the function that clips to [-limit, limit], or the identity."""
    if limit is None or limit <= 0:
        return lambda x: x
    return lambda x: m.minimum(m.maximum(x, -limit), limit)


Step = Callable[[Any, State], State]


def scan(m: Any, inputs: Any, state: State, step: Step, alive: Any) -> Any:
    """Return the first states of all steps, stacked, and the last state.

    Where ``alive`` (``[time, batch, 1]``, or None) is false the state is unchanged, and
    the output is 0.
    """
    outs = []
    for time in range(inputs.shape[0]):
        new = step(inputs[time], state)
        if alive is None:
            outs.append(new[0])
        else:
            on = alive[time]
            outs.append(m.where(on, new[0], 0.0))
            new = tuple(m.where(on, a, b) for a, b in zip(new, state, strict=True))
        state = new
    if not outs:  # a sequence without steps
        return m.zeros((0, *state[0].shape), inputs.dtype), state
    return m.stack(outs, 0), state


def run_directions(
    m: Any,
    x: Any,
    starts: list[Any],
    lengths: Any,
    directions: tuple[int, int],
    options: Options,
    prepare: Callable[[int, Any], tuple[Any, Step]],
) -> tuple[Any, ...]:
    """Return the outputs and last states of all directions, in the requested layout.

    ``directions`` are their number and the hidden size; ``prepare(direction, x)``
    returns the projected inputs and the step function.
    """
    dtype, (count, hidden) = x.dtype, directions
    if options.hidden_size not in (None, hidden):
        raise ValueError(f"expected hidden_size {hidden}, got {options.hidden_size}")
    x = m.wide(m.permute(x, (1, 0, 2)) if options.layout else x)
    starts = [direction_starts(m, s, x, directions, options.layout) for s in starts]
    alive = steps_within(m, x, lengths)
    outputs, ends = [], []
    for direction, reverse in enumerate(options.reversals(count)):
        turned = m.reverse_steps(x, lengths) if reverse else x
        inputs, step = prepare(direction, turned)
        outs, end = scan(m, inputs, tuple(s[direction] for s in starts), step, alive)
        outputs.append(m.reverse_steps(outs, lengths) if reverse else outs)
        ends.append(end)
    every = m.stack(outputs, 1)
    last = [m.stack(list(parts), 0) for parts in zip(*ends, strict=True)]
    if options.layout:
        every = m.permute(every, (2, 0, 1, 3))
        last = [m.permute(part, (1, 0, 2)) for part in last]
    return tuple(m.cast(part, dtype) for part in (every, *last))


def direction_starts(
    m: Any, start: Any, x: Any, directions: tuple[int, int], layout: int
) -> Any:
    """Return the first states of ``directions`` (number, size), zeros for None."""
    if start is None:
        return m.zeros((directions[0], x.shape[1], directions[1]), x.dtype)
    return m.wide(m.permute(start, (1, 0, 2)) if layout else start)


def steps_within(m: Any, x: Any, lengths: Any) -> Any:
    """Return, for ``x`` [time, batch, ...], whether each step is within its sequence.

    The result is ``[time, batch, 1]``, or None without ``lengths``.
    """
    if lengths is None:
        return None
    limit = lengths.get() if hasattr(lengths, "get") else lengths
    return m.asarray(np.arange(x.shape[0])[:, None, None] < limit[None, :, None])


def body_gradients(
    body: Callable[..., tuple[Any, ...]], grads: tuple[Any, ...], args: tuple[Any, ...]
) -> tuple[Any, ...]:
    """Return for each argument a function that computes its gradient through ``body``.

    The body is rerun once on a tape above that of the arguments, so the results can be
    differentiated again. ``grads`` are those of its results, None for zeros.
    """
    memo: list[Any] = []

    def compute() -> list[Any]:
        if not memo:
            leaves = _leaves(args)
            outs = body(TensorMaths(), *leaves)
            parts = [
                sum_(elementwise.mul(out, grad))
                for out, grad in zip(outs, grads, strict=True)
                if grad is not None
            ]
            gradients = gradients_of(sum(parts[1:], parts[0]))
            memo.extend(
                (
                    gradients[leaf]
                    if isinstance(leaf, Tensor) and leaf in gradients
                    else None
                )
                for leaf in leaves
            )
        return memo

    return tuple(
        None if arg is None else lambda i=i: compute()[i] for i, arg in enumerate(args)
    )


def _leaves(args: tuple[Any, ...]) -> list[Any]:
    tensors = [from_numpy(a) if isinstance(a, np.ndarray) else a for a in args]
    homes = [t.backend for t in tensors if t is not None]
    tape = Autodiff(max(homes, key=lambda home: home.level), fresh=True)
    return [
        Tensor(t, tape).leaf(None) if t is not None and is_float(t.dtype) else t
        for t in tensors
    ]


class Kind(NamedTuple):
    """A recurrent layer over ``Maths``, for its gradient rules.

    ``states`` is the number of its states, ``usual`` the activations of one direction
    for which one primitive computes all gradients.
    """

    layer: Callable[..., tuple[Any, ...]]
    states: int
    usual: tuple[tuple[str, ...], ...]

    @property
    def lengths(self) -> int:
        """The position of the lengths among the operands."""
        return 4 + self.states

    def gradients(self, grads: Any, args: tuple[Any, ...], options: Any) -> Any:
        """Return a function for each argument's gradient, through the layer's body."""

        def body(m: Any, *inputs: Any) -> Any:
            return self.layer(m, *inputs, options=Options(**options))

        return body_gradients(body, grads, args)

    def is_usual(self, options: Options) -> bool:
        """Return whether the gradient primitive supports these options."""
        names = tuple(map(str.lower, options.activations)) or self.usual[0]
        return (options.clip or 0) <= 0 and any(
            names == each * (len(names) // len(each)) for each in self.usual
        )


def gradients_at_once(
    gradient: Any, kind: Kind, results: tuple[Any, Any], args: Any, options: Any
) -> Any:
    """Return a function for the gradient of each argument, by one call of ``gradient``.

    ``results`` are the gradients of the results, None for zeros, and the results.
    """
    if not kind.is_usual(Options(**options)):
        return kind.gradients(results[0], args, options)
    there = [i for i, a in enumerate(args) if a is not None and i != kind.lengths]
    joint = Joint(lambda: gradient(*results[0], *results[1], *args, **options))
    return tuple(
        joint[there.index(i)] if i in there else None for i in range(len(args))
    )


def second_gradients(kind: Kind, grads: Any, args: Any, options: Any) -> Any:
    """Return functions for the gradients of the gradient primitive.

    The results of the layer, which are among its operands, are recomputed from the
    others.
    """
    count = 1 + kind.states

    def body(m: Any, *operands: Any) -> Any:
        parts = kind.gradients(operands[:count], operands[count:], options)
        there = enumerate(zip(operands[count:], parts, strict=True))
        each = [
            (a, part())
            for i, (a, part) in there
            if part is not None and i != kind.lengths
        ]
        return tuple(
            m.zeros(a.shape, a.dtype) if part is None else part for a, part in each
        )

    gradients = body_gradients(body, grads, (*args[:count], *args[2 * count :]))
    return (*gradients[:count], *(count * (None,)), *gradients[count:])


def declare_gradients(layer: Any, gradient: Any, kind: Kind) -> None:
    """Declare the rules of a recurrent layer and of its gradient, both primitives."""

    def first(grad: Any, out: Any, *args: Any, **options: Any) -> Any:
        return gradients_at_once(gradient, kind, (grad, out), args, options)

    def second(grads: Any, out: Any, *args: Any, **options: Any) -> Any:
        return second_gradients(kind, grads, args, options)

    layer.vjp_of_parts(first)
    gradient.vjp(second)

"""Recurrent layers in ONNX's layout: LSTM, GRU and the plain one.

Only time is a loop: the inputs of all steps meet their weights in one product. Common
to all of them:

- ``x`` is ``[time, batch, input]``, the first state ``[directions, batch, hidden]``.
  ``layout=1`` puts the batch first in both, and in the results.
- ``seq_lens`` is ``[batch]``: outputs from there on are 0, the state stays.
- options are ``direction`` (``"forward"``, ``"reverse"``, ``"bidirectional"``),
  ``hidden_size`` (checked if given), ``activations`` with ``activation_alpha`` and
  ``activation_beta`` (for each direction), ``clip`` (of operands of activations) and
  ``layout``, as in ONNX.
- they return all outputs, ``[time, directions, batch, hidden]``, then the last states.
"""

from typing import Any

from burn.ops import bounds, numpy_times
from burn.ops.recurrence import (
    ArrayMaths,
    Kind,
    Options,
    State,
    Step,
    activations_of,
    clipped,
    declare_gradients,
    run_directions,
)
from burn.ops.recurrent_gradients import (
    gru_back,
    layer_gradients,
    lstm_back,
    rnn_back,
)
from burn.ops.support import Array
from burn.primitive import primitive


@primitive(
    outputs=3,
    bound=bounds.recurrent,
    autocast="lower",
    traceable=True,
    numpy_time=numpy_times.recurrent,
)
def lstm(
    x: Array,
    w: Array,
    r: Array,
    b: Array | None = None,
    h0: Array | None = None,
    c0: Array | None = None,
    seq_lens: Array | None = None,
    peephole: Array | None = None,
    **options: Any,
) -> tuple[Array, ...]:
    """Return all outputs, the last output and the last cell of an LSTM.

    ``w`` is ``[directions, 4 hidden, input]``, ``r`` ``[directions, 4 hidden, hidden]``
    in the order of gates input, output, forget, cell; ``b`` ``[directions, 8 hidden]``,
    that of ``w`` first; ``peephole`` ``[directions, 3 hidden]`` (input, output,
    forget). The activations are of the gates, the cell and the output;
    ``input_forget`` couples the forget gate to the input gate.
    """
    inputs = (x, w, r, b, h0, c0, seq_lens, peephole)
    return _lstm(ArrayMaths(x), *inputs, options=Options(**options))


def _lstm(
    m: Any,
    x: Any,
    w: Any,
    r: Any,
    b: Any = None,
    h0: Any = None,
    c0: Any = None,
    seq_lens: Any = None,
    peephole: Any = None,
    *,
    options: Options,
) -> tuple[Any, ...]:
    functions = list(activations_of(m, options, ("Sigmoid", "Tanh", "Tanh")))

    def prepare(direction: int, turned: Any) -> tuple[Any, Step]:
        inputs = _projected(m, turned, w, b, direction)
        back = _transposed(m, r, direction)
        p = None if peephole is None else m.wide(peephole)[direction]
        return inputs, lstm_step(m, back, p, functions[direction], options)

    starts, sizes = [h0, c0], (w.shape[0], r.shape[-1])
    return run_directions(m, x, starts, seq_lens, sizes, options, prepare)


_LSTM = Kind(_lstm, 2, (("sigmoid", "tanh", "tanh"),))


@primitive(outputs=0, gradient_of=lstm)
def lstm_grad(*operands: Array | None, **options: Any) -> tuple[Array, ...]:
    """Return the gradients of :func:`lstm` by its present operands, except lengths.

    ``operands`` are the gradients of its results, None for zeros, then the results and
    the operands of :func:`lstm`.
    """
    return layer_gradients(lstm_back, 2, operands, Options(**options))


declare_gradients(lstm, lstm_grad, _LSTM)


def _transposed(m: Any, weights: Any, direction: int) -> Any:
    """Return the weights of one direction, transposed: ``[inputs, gates * hidden]``."""
    return m.permute(m.wide(weights)[direction], (1, 0))


def _projected(m: Any, x: Any, w: Any, b: Any, direction: int) -> Any:
    """Return ``x`` times the input weights, plus the biases of ``w`` and ``r``."""
    inputs = m.matmul(x, _transposed(m, w, direction))
    if b is None:
        return inputs
    both = m.wide(b)[direction]
    half = both.shape[0] // 2
    return inputs + (both[:half] + both[half:])


def lstm_step(m: Any, back: Any, p: Any, functions: Any, options: Options) -> Step:
    """Return the step function of one direction; ``back`` are transposed weights."""
    n = back.shape[0]
    gate, squash, show = functions
    clip = clipped(m, options.clip)

    def step(projected: Any, state: State) -> State:
        h, c = state
        raw = projected + m.matmul(h, back)
        i, o, f, g = (raw[:, k * n : (k + 1) * n] for k in range(4))
        if p is not None:
            i, f = i + p[:n] * c, f + p[2 * n :] * c
        i = gate(clip(i))
        f = 1.0 - i if options.input_forget else gate(clip(f))
        c = f * c + i * squash(clip(g))
        if p is not None:
            o = o + p[n : 2 * n] * c
        return gate(clip(o)) * show(c), c

    return step


@primitive(
    outputs=2,
    bound=bounds.recurrent,
    autocast="lower",
    traceable=True,
    numpy_time=numpy_times.recurrent,
)
def gru(
    x: Array,
    w: Array,
    r: Array,
    b: Array | None = None,
    h0: Array | None = None,
    seq_lens: Array | None = None,
    **options: Any,
) -> tuple[Array, ...]:
    """Return all outputs and the last one of a gated recurrent unit.

    ``w`` is ``[directions, 3 hidden, input]``, ``r`` ``[directions, 3 hidden, hidden]``
    in the order of gates update, reset, hidden; ``b`` ``[directions, 6 hidden]``, that
    of ``w`` first. The activations are of the gates and of the hidden one;
    ``linear_before_reset`` applies ``r`` and its bias before the reset gate.
    """
    inputs = (x, w, r, b, h0, seq_lens)
    return _gru(ArrayMaths(x), *inputs, options=Options(**options))


def _gru(
    m: Any,
    x: Any,
    w: Any,
    r: Any,
    b: Any = None,
    h0: Any = None,
    seq_lens: Any = None,
    *,
    options: Options,
) -> tuple[Any, ...]:
    hidden = r.shape[-1]
    functions = list(activations_of(m, options, ("Sigmoid", "Tanh")))

    def prepare(direction: int, turned: Any) -> tuple[Any, Step]:
        inputs = m.matmul(turned, _transposed(m, w, direction))
        recurrent = None
        if b is not None:
            both = m.wide(b)[direction]
            inputs, recurrent = inputs + both[: 3 * hidden], both[3 * hidden :]
        back = _transposed(m, r, direction)
        return inputs, _gru_step(m, back, recurrent, functions[direction], options)

    sizes = (w.shape[0], hidden)
    return run_directions(m, x, [h0], seq_lens, sizes, options, prepare)


_GRU = Kind(_gru, 1, (("sigmoid", "tanh"),))


@primitive(outputs=0, gradient_of=gru)
def gru_grad(*operands: Array | None, **options: Any) -> tuple[Array, ...]:
    """Return the gradients of :func:`gru` by its present operands, except lengths.

    ``operands`` are the gradients of its results, None for zeros, then the results and
    the operands of :func:`gru`.
    """
    return layer_gradients(gru_back, 1, operands, Options(**options))


declare_gradients(gru, gru_grad, _GRU)


def _gru_step(m: Any, back: Any, bias: Any, functions: Any, options: Options) -> Step:
    n = back.shape[0]
    gate, squash = functions
    clip = clipped(m, options.clip)
    gates, hidden = back[:, : 2 * n], back[:, 2 * n :]

    def add(x: Any, start: int, stop: int) -> Any:
        return x if bias is None else x + bias[start:stop]

    def step(projected: Any, state: State) -> State:
        (h,) = state
        raw = add(projected[:, : 2 * n] + m.matmul(h, gates), 0, 2 * n)
        update, reset = gate(clip(raw[:, :n])), gate(clip(raw[:, n:]))
        if options.linear_before_reset:
            recurrent = reset * add(m.matmul(h, hidden), 2 * n, 3 * n)
        else:
            recurrent = add(m.matmul(reset * h, hidden), 2 * n, 3 * n)
        new = squash(clip(projected[:, 2 * n :] + recurrent))
        return ((1.0 - update) * new + update * h,)

    return step


@primitive(
    outputs=2,
    bound=bounds.plain_recurrent,
    autocast="lower",
    traceable=True,
    numpy_time=numpy_times.recurrent,
)
def rnn(
    x: Array,
    w: Array,
    r: Array,
    b: Array | None = None,
    h0: Array | None = None,
    seq_lens: Array | None = None,
    **options: Any,
) -> tuple[Array, ...]:
    """Return all outputs and the last one of a simple (Elman) recurrent layer.

    ``w`` is ``[directions, hidden, input]``, ``r`` ``[directions, hidden, hidden]``,
    ``b`` ``[directions, 2 hidden]``, that of ``w`` first; there is one activation.
    """
    inputs = (x, w, r, b, h0, seq_lens)
    return _rnn(ArrayMaths(x), *inputs, options=Options(**options))


def _rnn(
    m: Any,
    x: Any,
    w: Any,
    r: Any,
    b: Any = None,
    h0: Any = None,
    seq_lens: Any = None,
    *,
    options: Options,
) -> tuple[Any, ...]:
    functions = list(activations_of(m, options, ("Tanh",)))
    clip = clipped(m, options.clip)

    def prepare(direction: int, turned: Any) -> tuple[Any, Step]:
        inputs = _projected(m, turned, w, b, direction)
        back, squash = _transposed(m, r, direction), functions[direction][0]

        def step(projected: Any, state: State) -> State:
            return (squash(clip(projected + m.matmul(state[0], back))),)

        return inputs, step

    sizes = (w.shape[0], r.shape[-1])
    return run_directions(m, x, [h0], seq_lens, sizes, options, prepare)


_RNN = Kind(_rnn, 1, (("tanh",), ("sigmoid",), ("relu",)))


@primitive(outputs=0, gradient_of=rnn)
def rnn_grad(*operands: Array | None, **options: Any) -> tuple[Array, ...]:
    """Return the gradients of :func:`rnn` by its present operands, except lengths.

    ``operands`` are the gradients of its results, None for zeros, then the results and
    the operands of :func:`rnn`.
    """
    return layer_gradients(rnn_back, 1, operands, Options(**options))


declare_gradients(rnn, rnn_grad, _RNN)

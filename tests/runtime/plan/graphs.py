"""Random graphs of primitives, as programs that can be printed and made smaller."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import burn
from burn import ops

#: Axes of one graph have few lengths, so that one may be taken for another.
EXTENTS = (1, 2, 3, 3, 3, 4)
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Line:
    """``v[n] = CALLS[name](*(v[i] for i in operands))``, of a known shape."""

    name: str
    operands: tuple[int, ...]
    shape: Shape
    #: What the call is made with besides: axes, or the shapes of parameters.
    options: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Graph:
    """The shapes of inputs, which are the first values, and a line for each other.

    The result is the last value, with the sums of all that nothing else reads.
    """

    inputs: tuple[Shape, ...]
    lines: tuple[Line, ...]
    seed: int

    def __str__(self) -> str:
        count = len(self.inputs)
        lines = [f"v{n} = input {list(s)}" for n, s in enumerate(self.inputs)]
        for n, line in enumerate(self.lines):
            args = ", ".join(f"v{i}" for i in line.operands)
            result = f"v{n + count} = {line.name}({args}) {line.options}"
            lines.append(f"{result}  # {list(line.shape)}")
        return "\n".join(lines)


def parameter(seed: int, *shape: int, positive: bool = False) -> burn.Parameter:
    """A parameter of ``shape`` that a seed stands for."""
    values = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return burn.Parameter(burn.from_numpy(np.abs(values) + 0.5 if positive else values))


Call = Callable[..., Any]
UNARY: dict[str, Call] = {
    **{
        name: getattr(ops, name)
        for name in ("relu", "gelu", "silu", "tanh", "sigmoid", "neg", "abs")
        + ("hard_swish", "elu", "leaky_relu", "softplus", "exp", "softmax")
    },
    "half": lambda x: x * 0.5,
    "shifted": lambda x: x + 1.25,
    "quotient": lambda x: 2.0 / (ops.abs(x) + 1.0),
    "root": lambda x: ops.sqrt(ops.abs(x) + 0.1),
    "clip": lambda x: ops.clip(x, -0.5, 1.5),
    "masked": lambda x: ops.where(x > 0.0, x, -np.inf),
}
BINARY: dict[str, Call] = {
    name: getattr(ops, name) for name in ("add", "sub", "mul", "maximum", "minimum")
}


class Maker:
    """Adds random lines, whose calls have boxes of their own."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.seed = seed
        count = int(self.random.integers(1, 3))
        self.shapes: list[Shape] = [self._shape() for _ in range(count)]
        self.inputs = tuple(self.shapes)
        self.lines: list[Line] = []

    def _shape(self) -> Shape:
        rank = int(self.random.choice([2, 3, 3, 4]))
        return tuple(int(n) for n in self.random.choice(EXTENTS, rank))

    def graph(self, length: int) -> Graph:
        """A graph of up to ``length`` lines."""
        makers: tuple[Callable[[int], None], ...]
        makers = (self._unary, self._binary, self._layer, self._norm, self._view)
        makers += (self._matmul, self._reduction, self._images, self._layer)
        for _ in range(length):
            makers[int(self.random.integers(len(makers)))](self._recent())
        return Graph(self.inputs, tuple(self.lines), self.seed)

    def _recent(self) -> int:
        """One of the last values, most often the last: passes join what is in a row."""
        low = max(0, len(self.shapes) - (4 if self.random.random() < 0.3 else 1))
        return int(self.random.integers(low, len(self.shapes)))

    def _add(
        self, name: str, operands: tuple[int, ...], shape: Shape, *more: Any
    ) -> None:
        self.lines.append(Line(name, operands, shape, more))
        self.shapes.append(shape)

    def _unary(self, operand: int) -> None:
        name = str(self.random.choice(sorted(UNARY)))
        self._add(name, (operand,), self.shapes[operand])

    def _binary(self, operand: int) -> None:
        name = str(self.random.choice(sorted(BINARY)))
        fitting = [
            other
            for other, shape in enumerate(self.shapes)
            if _broadcast(shape, self.shapes[operand]) is not None
        ]
        other = int(self.random.choice(fitting))
        pair = (operand, other) if self.random.random() < 0.5 else (other, operand)
        shape = _broadcast(self.shapes[operand], self.shapes[other])
        assert shape is not None
        self._add(name, pair, shape)

    def _layer(self, operand: int) -> None:
        shape = self.shapes[operand]
        width = int(self.random.choice([*shape, 3]))
        kind = str(self.random.choice(["linear", "linear with bias", "times weight"]))
        self._add(kind, (operand,), (*shape[:-1], width), width)

    def _norm(self, operand: int) -> None:
        names = ["layer_norm", "batch_norm", "scaled rows", "scaled columns"]
        self._add(str(self.random.choice(names)), (operand,), self.shapes[operand])

    def _view(self, operand: int) -> None:
        shape = self.shapes[operand]
        axes = tuple(int(a) for a in self.random.permutation(len(shape)))
        kind = str(self.random.choice(["permute", "reversed", "flat", "joined"]))
        if kind == "permute":
            self._add(kind, (operand,), tuple(shape[a] for a in axes), axes)
        elif kind == "reversed":
            self._add(kind, (operand,), shape)
        elif kind == "flat" and len(shape) > 2:
            flat = (shape[0], int(np.prod(shape[1:])))
            self._add(kind, (operand,), flat, flat)
        elif kind == "joined" and shape[-1] < 5:
            self._add(kind, (operand, operand), (*shape[:-1], 2 * shape[-1]))

    def _matmul(self, operand: int) -> None:
        shape = self.shapes[operand]
        batch = shape[:-2]
        self._add(
            "product with its transpose", (operand,), (*batch, shape[-2], shape[-2])
        )

    def _reduction(self, operand: int) -> None:
        shape = self.shapes[operand]
        axis = int(self.random.integers(len(shape)))
        kept = tuple(1 if a == axis else n for a, n in enumerate(shape))
        kind = str(self.random.choice(["sum", "mean", "max"]))
        self._add(kind, (operand,), kept, axis)

    def _images(self, operand: int) -> None:
        shape = self.shapes[operand]
        if len(shape) < 3:
            return
        kind = str(self.random.choice(["conv", "conv of points", "max_pool"]))
        width = (
            shape[1] if kind == "max_pool" else int(self.random.choice([shape[1], 3]))
        )
        more = () if kind == "max_pool" else (width,)
        self._add(kind, (operand,), (shape[0], width, *shape[2:]), *more)


def _broadcast(x: Shape, y: Shape) -> Shape | None:
    try:
        shape = np.broadcast_shapes(x, y)
    except ValueError:
        return None
    return shape if len(shape) <= 4 and max(len(x), len(y)) == len(shape) else None


class Program:
    """A graph as a function of tensors, with parameters of its own."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.parameters: list[burn.Parameter] = []
        shapes = [*graph.inputs]
        self._calls: list[Call] = []
        for number, line in enumerate(graph.lines):
            first = shapes[line.operands[0]]
            self._calls.append(self._call(line, first, graph.seed + 100 * number))
            shapes.append(line.shape)

    def __call__(self, *inputs: Any) -> Any:
        values = list(inputs)
        for line, call in zip(self.graph.lines, self._calls, strict=True):
            values.append(call(*(values[i] for i in line.operands)))
        read = {i for line in self.graph.lines for i in line.operands}
        ends = [v for i, v in enumerate(values[:-1]) if i not in read]
        return [values[-1], *ends]

    def _box(self, seed: int, *shape: int, positive: bool = False) -> burn.Parameter:
        self.parameters.append(parameter(seed, *shape, positive=positive))
        return self.parameters[-1]

    def _call(self, line: Line, shape: Shape, seed: int) -> Call:
        operation = {**UNARY, **BINARY, **_PLAIN}.get(line.name)
        if operation is not None:
            return operation
        if line.name in _OF_OPTIONS:
            return _OF_OPTIONS[line.name](*line.options)
        make = getattr(self, "_" + line.name.replace(" ", "_"))
        call: Call = make(shape, seed, *line.options)
        return call

    def _linear(self, shape: Shape, seed: int, width: int) -> Call:
        weight = self._box(seed, width, shape[-1])
        return lambda x: ops.linear(x, weight)

    def _linear_with_bias(self, shape: Shape, seed: int, width: int) -> Call:
        weight, bias = self._box(seed, width, shape[-1]), self._box(seed + 1, width)
        return lambda x: ops.linear(x, weight, bias)

    def _times_weight(self, shape: Shape, seed: int, width: int) -> Call:
        weight = self._box(seed, shape[-1], width)
        return lambda x: x @ weight

    def _layer_norm(self, shape: Shape, seed: int) -> Call:
        weight, bias = (self._box(seed + i, shape[-1]) for i in range(2))
        return lambda x: ops.layer_norm(x, weight, bias)

    def _batch_norm(self, shape: Shape, seed: int) -> Call:
        mean, scale, bias = (self._box(seed + i, shape[1]) for i in range(3))
        spread = self._box(seed + 3, shape[1], positive=True)
        return lambda x: ops.batch_norm(x, mean, spread, scale, bias)

    def _scaled_rows(self, shape: Shape, seed: int) -> Call:
        scale = self._box(seed, shape[1], *(1 for _ in shape[2:]))
        return lambda x: x * scale

    def _scaled_columns(self, shape: Shape, seed: int) -> Call:
        scale, moved = (self._box(seed + i, shape[-1]) for i in range(2))
        return lambda x: x * scale + moved

    def _conv(self, shape: Shape, seed: int, width: int) -> Call:
        kernel = self._box(seed, width, shape[1], *(3 for _ in shape[2:]))
        return lambda x: ops.conv(x, kernel, padding=1)

    def _conv_of_points(self, shape: Shape, seed: int, width: int) -> Call:
        kernel = self._box(seed, width, shape[1], *(1 for _ in shape[2:]))
        bias = self._box(seed + 1, width)
        return lambda x: ops.conv(x, kernel, bias)


_PLAIN: dict[str, Call] = {
    "reversed": lambda x: x[:, ::-1],
    "joined": lambda x, y: ops.concat([x, y], -1),
    "product with its transpose": lambda x: x @ ops.transpose(x, -1, -2),
    "max_pool": lambda x: ops.max_pool(x, kernel_size=3, padding=1, stride=1),
}
_OF_OPTIONS: dict[str, Callable[..., Call]] = {
    "permute": lambda axes: lambda x: ops.permute(x, axes),
    "flat": lambda shape: lambda x: ops.reshape(x, shape),
    "sum": lambda axis: lambda x: ops.sum(x, axis, keepdims=True),
    "mean": lambda axis: lambda x: ops.mean(x, axis, keepdims=True),
    "max": lambda axis: lambda x: ops.max(x, axis, keepdims=True),
}

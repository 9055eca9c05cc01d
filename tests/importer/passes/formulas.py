"""Formulas of layers, written in the ways in which exporters write them."""

from collections.abc import Callable, Sequence
from math import pi, sqrt
from typing import Any

from hypothesis import strategies as st

#: What draws an example of a strategy.
Draw = Callable[[st.SearchStrategy[Any]], Any]


class Writer:
    """The nodes of a model in float64, in an order and grouping that is drawn."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.lines: list[str] = []
        self.weights: list[str] = []

    def flip(self) -> bool:
        return bool(self.draw(st.booleans()))

    def call(self, op: str, *operands: str, attrs: str = "") -> str:
        """A node; operands of sums and products are in any order."""
        given = list(operands)
        if op in ("Add", "Mul") and self.flip():
            given.reverse()
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {op}{attrs}({', '.join(given)})")
        return name

    def number(self, value: float) -> str:
        shape = self.draw(st.sampled_from(["", "[1]", "[1, 1]"]))
        return self.call("Constant", attrs=f"<value = double{shape} {{{value!r}}}>")

    def ints(self, values: Sequence[int]) -> str:
        listed = ", ".join(map(str, values))
        return self.call(
            "Constant", attrs=f"<value = int64[{len(values)}] {{{listed}}}>"
        )

    def weight(self, *shape: int) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(f"double[{', '.join(map(str, shape))}] {name}")
        return name

    def product(self, *factors: str | float) -> str:
        """All of ``factors`` multiplied, powers and quotients among them."""
        if len(factors) == 1:
            (only,) = factors
            return only if isinstance(only, str) else self.number(only)
        if len(set(factors)) == 1 and self.flip():
            return self.call("Pow", str(factors[0]), self.number(float(len(factors))))
        order = self.draw(st.permutations(factors))
        cut = self.draw(st.integers(1, len(order) - 1))
        left, right = order[:cut], order[cut:]
        if len(right) == 1 and isinstance(right[0], float) and self.flip():
            return self.call("Div", self.product(*left), self.number(1 / right[0]))
        return self.call("Mul", self.product(*left), self.product(*right))

    def plus(self, value: str, number: float) -> str:
        return self.call("Add", value, self.number(number))

    def root(self, value: str) -> str:
        if self.flip():
            return self.call("Sqrt", value)
        return self.call("Pow", value, self.number(0.5))

    def inverse_root(self, value: str) -> str:
        way = self.draw(st.integers(0, 3))
        if way == 0:
            return self.call("Reciprocal", self.root(value))
        if way == 1:
            return self.call("Div", self.number(1.0), self.root(value))
        if way == 2:
            return self.call("Pow", value, self.number(-0.5))
        return self.root(self.call("Reciprocal", value))

    def model(self, shape: Sequence[str | int], result: str) -> str:
        """The text of the model, whose input is ``x``; a node before and one after."""
        dims = ", ".join(map(str, shape))
        lines = ["x = Neg(given)", *self.lines, f"y = Neg({result})"]
        body = "\n".join(f"  {line}" for line in lines)
        stored = f" <{', '.join(self.weights)}>" if self.weights else ""
        ends = f"(double[{dims}] given) => (double[{dims}] y)"
        return f"case {ends}{stored} {{\n{body}\n}}"


#: The text of a model, and the operator that its formula is.
Formula = tuple[str, str]
FREE: tuple[str | int, ...] = ("N", 5, "M", 3)


@st.composite
def gelu(draw: Draw) -> Formula:
    w = Writer(draw)
    if w.flip():
        curve = w.call("Erf", w.product("x", sqrt(0.5)))
    else:
        slope = sqrt(2 / pi)
        if w.flip():
            cubic = w.call("Add", "x", w.product("x", "x", "x", 0.044715))
            curve = w.call("Tanh", w.product(cubic, slope))
        else:
            gain = w.plus(w.product("x", "x", 0.044715), 1.0)
            curve = w.call("Tanh", w.product("x", gain, slope))
    result = w.product("x", 0.5, w.plus(curve, 1.0))
    return w.model(FREE, result), "Gelu"


@st.composite
def silu(draw: Draw) -> Formula:
    w = Writer(draw)
    if w.flip():
        result = w.product("x", w.call("Sigmoid", "x"))
    else:
        total = w.plus(w.call("Exp", w.call("Neg", "x")), 1.0)
        result = w.call("Div", "x", total)
    return w.model(FREE, result), "Swish"


@st.composite
def hard_swish(draw: Draw) -> Formula:
    w = Writer(draw)
    low, high = (
        w.call("Constant", attrs=f"<value = double {{{n}}}>") for n in (0.0, 6.0)
    )
    clipped = w.call("Clip", w.plus("x", 3.0), low, high)
    return w.model(FREE, w.product("x", clipped, 1 / 6)), "HardSwish"


@st.composite
def softplus(draw: Draw) -> Formula:
    w = Writer(draw)
    return w.model(FREE, w.call("Log", w.plus(w.call("Exp", "x"), 1.0))), "Softplus"


@st.composite
def mish(draw: Draw) -> Formula:
    w = Writer(draw)
    gate = w.call("Tanh", w.call("Softplus", "x"))
    return w.model(FREE, w.product("x", gate)), "Mish"


def features(w: Writer) -> tuple[tuple[str | int, ...], list[int], tuple[int, ...]]:
    """A shape, the last axes of it in any order, and their extents."""
    last = w.draw(st.sampled_from([(3,), (5, 3), (2, 5, 3)]))
    shape = ("N", "M", *last)
    signed = [i - len(last) for i in range(len(last))]
    axes = [axis + len(shape) if w.flip() else axis for axis in signed]
    return shape, list(w.draw(st.permutations(axes))), last


def scaled(w: Writer, numerator: str, power: str, last: tuple[int, ...]) -> str:
    """``numerator / sqrt(power + epsilon)`` times a weight."""
    total = w.plus(power, w.draw(st.sampled_from([1e-5, 1e-6, 0.125])))
    weight = w.weight(*last)
    if w.flip():
        return w.product(numerator, w.inverse_root(total), weight)
    if w.flip():
        return w.product(w.call("Div", numerator, w.root(total)), weight)
    return w.call("Div", w.product(numerator, weight), w.root(total))


@st.composite
def layer_norm(draw: Draw) -> Formula:
    w = Writer(draw)
    shape, axes, last = features(w)
    mean = w.call("ReduceMean", "x", w.ints(axes))
    centred = w.call("Sub", "x", mean)
    power = w.call("ReduceMean", w.product(centred, centred), w.ints(axes))
    if w.flip():
        again = w.call("Sub", "x", mean) if w.flip() else centred
        result = scaled(w, again, power, last)
        if w.flip():
            result = w.call("Add", result, w.weight(*last))
        return w.model(shape, result), "LayerNormalization"
    factor = w.product(w.inverse_root(w.plus(power, 1e-3)), w.weight(*last))
    shift = w.call("Sub", w.weight(*last), w.product(mean, factor))
    result = w.call("Add", w.product("x", factor), shift)
    return w.model(shape, result), "LayerNormalization"


@st.composite
def rms_norm(draw: Draw) -> Formula:
    w = Writer(draw)
    shape, axes, last = features(w)
    power = w.call("ReduceMean", w.product("x", "x"), w.ints(axes))
    return w.model(shape, scaled(w, "x", power, last)), "RMSNormalization"


@st.composite
def group_norm(draw: Draw) -> Formula:
    w = Writer(draw)
    groups, each = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    space = draw(st.sampled_from([(4,), (4, 3), (2, 3, 2)]))
    shape = ("N", groups * each, *space)
    ends = [", ".join([f"{float(n)}"] * groups) for n in (1, 0)]
    scale, bias = (
        w.call("Constant", attrs=f"<value = double[{groups}] {{{end}}}>")
        for end in ends
    )
    inner = w.call("Reshape", "x", w.ints([0, groups, -1]))
    norm = w.call("InstanceNormalization", inner, scale, bias, attrs="<epsilon = 0.01>")
    result = w.call("Reshape", norm, w.call("Shape", "x"))
    beside = (groups * each, *(1 for _ in space))
    result = w.call("Mul", result, w.weight(*beside))
    result = w.call("Add", result, w.weight(*beside))
    return w.model(shape, result), "GroupNormalization"


FORMULAS = {
    "gelu": gelu(),
    "group_norm": group_norm(),
    "hard_swish": hard_swish(),
    "layer_norm": layer_norm(),
    "mish": mish(),
    "rms_norm": rms_norm(),
    "silu": silu(),
    "softplus": softplus(),
}

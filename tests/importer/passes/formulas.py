"""Random formulas of layers, in the forms that exporters write."""

from collections.abc import Callable, Sequence
from math import pi, sqrt
from typing import Any

from hypothesis import strategies as st

#: Draws an example of a strategy.
Draw = Callable[[st.SearchStrategy[Any]], Any]


class FormulaWriter:
    """Writer of a float64 model with operands in random order and grouping."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.lines: list[str] = []
        self.weights: list[str] = []

    def flip(self) -> bool:
        return bool(self.draw(st.booleans()))

    def call(self, op: str, *operands: str, attrs: str = "") -> str:
        """Add a node; operands of sums and products are in any order."""
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
        """Return the product of ``factors``, with powers and quotients."""
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

    def shuffled(self, *operands: Any) -> tuple[Any, ...]:
        """Return the operands in random order."""
        return tuple(self.draw(st.permutations(operands)))

    def read_too(self, value: str, inside: str) -> str:
        """Return ``value`` with another reader of ``inside`` added to it."""
        number = self.call("Cast", inside, attrs="<to = 11>")
        total = self.call("ReduceMean", number, attrs="<keepdims = 0>")
        return self.call("Add", value, total)

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

    def model(
        self,
        shape: Sequence[str | int],
        result: str,
        last: Sequence[str | int] | None = None,
    ) -> str:
        """Return the model as text, with input ``x`` and nodes around the formula.

        The result has the shape ``last``, by default that of the input.
        """
        dims, ends = (", ".join(map(str, s)) for s in (shape, last or shape))
        lines = ["x = Neg(given)", *self.lines, f"y = Neg({result})"]
        body = "\n".join(f"  {line}" for line in lines)
        stored = f" <{', '.join(self.weights)}>" if self.weights else ""
        types = f"(double[{dims}] given) => (double[{ends}] y)"
        return f"case {types}{stored} {{\n{body}\n}}"


#: A model as text, and the operator that the pass must recover.
Formula = tuple[str, str]
#: The result of a formula, and the operator that computes it after the pass.
Part = tuple[str, str]
FREE: tuple[str | int, ...] = ("N", 5, "M", 3)


def gelu(w: FormulaWriter, x: str) -> Part:
    if w.flip():
        curve = w.call("Erf", w.product(x, sqrt(0.5)))
    else:
        slope = sqrt(2 / pi)
        if w.flip():
            cubic = w.call("Add", x, w.product(x, x, x, 0.044715))
            curve = w.call("Tanh", w.product(cubic, slope))
        else:
            gain = w.plus(w.product(x, x, 0.044715), 1.0)
            curve = w.call("Tanh", w.product(x, gain, slope))
    return w.product(x, 0.5, w.plus(curve, 1.0)), "Gelu"


def silu(w: FormulaWriter, x: str) -> Part:
    if w.flip():
        scaled = w.call("Mul", x, w.number(1.702)) if w.flip() else x
        return w.product(x, w.call("Sigmoid", scaled)), "Swish"
    total = w.plus(w.call("Exp", w.call("Neg", x)), 1.0)
    return w.call("Div", x, total), "Swish"


def clip(w: FormulaWriter, x: str) -> Part:
    high = w.number(w.draw(st.sampled_from([0.5, 6.0])))
    if w.flip():
        return w.call("Min", *w.shuffled(w.call("Relu", x), high)), "Clip"
    first, then = w.shuffled(("Max", w.number(-0.25)), ("Min", high))
    inner = w.call(first[0], *w.shuffled(x, first[1]))
    return w.call(then[0], *w.shuffled(inner, then[1])), "Clip"


def between(w: FormulaWriter, x: str, low: float, high: float) -> str:
    ends = [w.call("Constant", attrs=f"<value = double {{{n}}}>") for n in (low, high)]
    return w.call("Clip", x, *ends)


def hard_swish(w: FormulaWriter, x: str) -> Part:
    clipped = between(w, w.plus(x, 3.0), 0.0, 6.0)
    return w.product(x, clipped, 1 / 6), "HardSwish"


def hard_sigmoid(w: FormulaWriter, x: str) -> Part:
    if w.flip():
        clipped = between(w, w.plus(x, 3.0), 0.0, 6.0)
        return w.product(clipped, 1 / 6), "HardSigmoid"
    alpha = w.draw(st.sampled_from([0.2, 0.25, 1 / 6]))
    line = w.plus(w.call("Mul", x, w.number(alpha)), 0.5)
    return between(w, line, 0.0, 1.0), "HardSigmoid"


def chosen(w: FormulaWriter, x: str, above: str, below: str) -> str:
    """Return ``above`` where ``x`` is above 0, ``below`` elsewhere."""
    if w.flip():
        op = w.draw(st.sampled_from(["Greater", "GreaterOrEqual"]))
        return w.call("Where", w.call(op, x, w.number(0.0)), above, below)
    op = w.draw(st.sampled_from(["Less", "LessOrEqual"]))
    return w.call("Where", w.call(op, x, w.number(0.0)), below, above)


def leaky_relu(w: FormulaWriter, x: str) -> Part:
    scaled = w.call("Mul", x, w.number(w.draw(st.sampled_from([0.01, 0.2]))))
    if w.flip():
        return w.call("Max", *w.shuffled(x, scaled)), "LeakyRelu"
    return chosen(w, x, x, scaled), "LeakyRelu"


def prelu(w: FormulaWriter, x: str) -> Part:
    slope = w.weight(*w.draw(st.sampled_from([(3,), (1,), (1, 3), (5, 1, 1)])))
    way = w.draw(st.integers(0, 2))
    if way == 0:
        return chosen(w, x, x, w.call("Mul", x, slope)), "PRelu"
    upper = w.call("Relu", x)
    if way == 1:
        lower = w.call("Min", *w.shuffled(x, w.number(0.0)))
        return w.call("Add", upper, w.call("Mul", lower, slope)), "PRelu"
    lower = w.call("Mul", w.call("Relu", w.call("Neg", x)), slope)
    return w.call(w.draw(st.sampled_from(["Add", "Sub"])), upper, lower), "PRelu"


def grown(w: FormulaWriter, x: str) -> str:
    if w.flip():
        return w.call("Sub", w.call("Exp", x), w.number(1.0))
    return w.plus(w.call("Exp", x), -1.0)


def elu(w: FormulaWriter, x: str) -> Part:
    alpha = w.draw(st.sampled_from([0.5, 2.0]))
    name, curve = "Celu", grown(w, w.call("Div", x, w.number(alpha)))
    if w.flip():
        name, curve = "Elu", grown(w, x)
    if name == "Celu" or w.flip():
        curve = w.call("Mul", curve, w.number(alpha))
    if w.flip():
        return chosen(w, x, x, curve), name
    capped = w.call("Min", *w.shuffled(curve, w.number(0.0)))
    return w.call("Add", w.call("Relu", x), capped), name


def softmax(w: FormulaWriter, x: str) -> Part:
    axes = w.ints([w.draw(st.integers(-4, 3))])
    if w.flip():
        x = w.call("Sub", x, w.call("ReduceMax", x, axes))
    each = w.call("Exp", x)
    total = w.call("ReduceSum", each, axes)
    if w.flip():
        return w.call("Sub", x, w.call("Log", total)), "LogSoftmax"
    if w.flip():
        return w.call("Mul", each, w.call("Reciprocal", total)), "Softmax"
    return w.call("Div", each, total), "Softmax"


def softplus(w: FormulaWriter, x: str) -> Part:
    return w.call("Log", w.plus(w.call("Exp", x), 1.0)), "Softplus"


def softsign(w: FormulaWriter, x: str) -> Part:
    return w.call("Div", x, w.plus(w.call("Abs", x), 1.0)), "Softsign"


def mish(w: FormulaWriter, x: str) -> Part:
    return w.product(x, w.call("Tanh", w.call("Softplus", x))), "Mish"


#: Formulas that keep the shape [N, 5, M, 3].
PARTS: dict[str, Callable[[FormulaWriter, str], Part]] = {
    part.__name__: part
    for part in (
        clip,
        elu,
        gelu,
        hard_sigmoid,
        hard_swish,
        leaky_relu,
        mish,
        prelu,
        silu,
        softmax,
        softplus,
        softsign,
    )
}


@st.composite
def alone(draw: Draw, name: str) -> Formula:
    """Return a model of one formula."""
    w = FormulaWriter(draw)
    result, operator = PARTS[name](w, "x")
    return w.model(FREE, result), operator


@st.composite
def mixed(draw: Draw) -> str:
    """Return a graph of several formulas; some values have several readers."""
    w = FormulaWriter(draw)
    values = ["x"]
    for name in draw(st.lists(st.sampled_from(sorted(PARTS)), min_size=2, max_size=5)):
        start = len(w.lines)
        values.append(PARTS[name](w, draw(st.sampled_from(values[-2:])))[0])
        if draw(st.integers(0, 3)) == 0:  # an additional reader of an inner value
            inside = w.lines[draw(st.integers(start, len(w.lines) - 1))]
            if "Constant" not in inside and "Greater" not in inside:
                values[-1] = w.read_too(values[-1], inside.split(" = ")[0])
        if w.flip():
            values[-1] = w.call("Tanh", w.call("Add", values[-1], values[-2]))
    return w.model(FREE, w.call("Tanh", values[-1]))


def features(
    w: FormulaWriter,
) -> tuple[tuple[str | int, ...], list[int], tuple[int, ...]]:
    """Return a shape, its last axes in any order, and their extents."""
    last = w.draw(st.sampled_from([(3,), (5, 3), (2, 5, 3)]))
    shape = ("N", "M", *last)
    signed = [i - len(last) for i in range(len(last))]
    axes = [axis + len(shape) if w.flip() else axis for axis in signed]
    return shape, list(w.draw(st.permutations(axes))), last


def scaled(w: FormulaWriter, numerator: str, power: str, last: tuple[int, ...]) -> str:
    """Return ``numerator / sqrt(power + epsilon)`` times a weight."""
    total = w.plus(power, w.draw(st.sampled_from([1e-5, 1e-6, 0.125])))
    weight = w.weight(*last)
    if w.flip():
        return w.product(numerator, w.inverse_root(total), weight)
    if w.flip():
        return w.product(w.call("Div", numerator, w.root(total)), weight)
    return w.call("Div", w.product(numerator, weight), w.root(total))


@st.composite
def layer_norm(draw: Draw) -> Formula:
    w = FormulaWriter(draw)
    shape, axes, last = features(w)
    mean = w.call("ReduceMean", "x", w.ints(axes))
    centered = w.call("Sub", "x", mean)
    power = w.call("ReduceMean", w.product(centered, centered), w.ints(axes))
    if w.flip():
        again = w.call("Sub", "x", mean) if w.flip() else centered
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
    w = FormulaWriter(draw)
    shape, axes, last = features(w)
    power = w.call("ReduceMean", w.product("x", "x"), w.ints(axes))
    return w.model(shape, scaled(w, "x", power, last)), "RMSNormalization"


@st.composite
def group_norm(draw: Draw) -> Formula:
    w = FormulaWriter(draw)
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
    **{name: alone(name) for name in PARTS},
    "group_norm": group_norm(),
    "layer_norm": layer_norm(),
    "rms_norm": rms_norm(),
}

"""Calls of every primitive that plans may trace, with operands of many kinds."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from hypothesis import strategies as st

from burn import ops
from burn.ops import batch_norm_parts
from burn.primitive import primitives

Draw: TypeAlias = Callable[[Any], Any]
Shape: TypeAlias = tuple[int, ...]

FLOATS = ("float32", "float64", "float16")
INTEGERS = ("int32", "int64", "uint8")
NUMBERS = FLOATS + INTEGERS
ANY = (*NUMBERS, "bool")


class Operand(NamedTuple):
    """What an operand is like; ``below`` bounds integers that are indices."""

    shape: Shape
    dtype: str
    positive: bool = False
    below: int | None = None


class Case(NamedTuple):
    """A function of tensors, and what tensors it is given."""

    function: Callable[..., Any]
    operands: list[Operand]


Make: TypeAlias = Callable[[Draw], Case]
MAKERS: dict[str, Make] = {}

shapes = st.lists(st.sampled_from([1, 2, 3, 3, 4, 5, 0]), max_size=4).map(tuple)
full = st.lists(st.sampled_from([1, 2, 3, 4, 5]), max_size=4).map(tuple)


def ranked(low: int) -> Any:
    extents = st.sampled_from([1, 2, 3, 4, 5])
    return st.lists(extents, min_size=low, max_size=4).map(tuple)


def _made(make: Callable[..., Case], name: str, draw: Draw) -> Case:
    return make(draw, primitives()[name])


def case(
    *names: str,
) -> Callable[[Callable[..., Case]], Callable[..., Case]]:
    """Register what draws a call for each of some primitives."""

    def register(make: Callable[..., Case]) -> Callable[..., Case]:
        for name in names:
            assert name not in MAKERS, name
            MAKERS[name] = partial(_made, make, name)
        return make

    return register


def axes(draw: Draw, shape: Shape) -> Any:
    """None, an axis, several, or none at all."""
    kinds: list[Any] = [st.none(), st.just(())]
    if shape:
        kinds.append(
            st.sets(st.integers(-len(shape), -1), min_size=1).map(tuple[int, ...])
        )
        kinds.append(st.integers(0, len(shape) - 1))
    return draw(st.one_of(kinds))


def part(draw: Draw, shape: Shape) -> Shape:
    """A shape that is broadcast to ``shape``."""
    keep = draw(st.lists(st.booleans(), min_size=len(shape), max_size=len(shape)))
    result = tuple(n if k else 1 for n, k in zip(shape, keep, strict=True))
    return result[draw(st.integers(0, len(shape))) :]


@case("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "add")
@case("maximum", "minimum", "mul", "sub")
def _binary(draw: Draw, op: Any) -> Case:
    shape, dtypes = draw(shapes), st.sampled_from(ANY)
    operands = [Operand(shape, draw(dtypes)), Operand(part(draw, shape), draw(dtypes))]
    if draw(st.booleans()):
        operands.reverse()
    if draw(st.booleans()):
        number = draw(st.sampled_from([2, -1.5, 0]))
        return Case(lambda x: [op(x, number), op(number, x)], operands[:1])
    return Case(op, operands)


@case("div", "floor_div", "remainder", "fmod", "pow", "trunc_div", "atan2")
def _quotient(draw: Draw, op: Any) -> Case:
    kinds = INTEGERS if op.name == "trunc_div" else NUMBERS
    shape, dtypes = draw(shapes), st.sampled_from(kinds)
    left = Operand(shape, draw(dtypes), positive=op.name == "pow")
    right = Operand(part(draw, shape), draw(dtypes), positive=True)
    if op.name == "pow" and draw(st.booleans()):
        exponent = draw(st.sampled_from([2, 3, 0.5, 2.0]))
        return Case(lambda x: op(x, exponent), [left])
    return Case(op, [left, right])


@case("logical_not", "logical_and", "logical_or", "logical_xor")
def _logical(draw: Draw, op: Any) -> Case:
    shape = draw(shapes)
    x = Operand(shape, "bool")
    if op.name == "logical_not":
        return Case(op, [x])
    return Case(op, [x, Operand(part(draw, shape), "bool")])


@case("isnan", "isinf", "exp", "log", "sqrt", "reciprocal", "floor", "ceil", "trunc")
@case("expm1", "log1p", "sin", "cos", "tan", "asin", "acos", "atan")
@case("sinh", "cosh", "asinh", "acosh", "atanh")
@case("round", "erf", "leaky_relu", "elu", "selu", "celu", "sigmoid", "tanh")
@case("softplus", "softsign", "hard_sigmoid", "hard_swish", "silu", "mish", "shrink")
@case("thresholded_relu")
def _floats(draw: Draw, op: Any) -> Case:
    return Case(op, [Operand(draw(shapes), draw(st.sampled_from(FLOATS)))])


@case("neg", "abs", "sign", "relu")
def _unary(draw: Draw, op: Any) -> Case:
    return Case(op, [Operand(draw(shapes), draw(st.sampled_from(NUMBERS)))])


@case("where")
def _where(draw: Draw, op: Any) -> Case:
    shape, dtypes = draw(shapes), st.sampled_from(ANY)
    condition = Operand(part(draw, shape), "bool")
    x, y = Operand(shape, draw(dtypes)), Operand(part(draw, shape), draw(dtypes))
    if draw(st.booleans()):
        return Case(lambda c, x: op(c, x, 0.0), [condition, x])
    return Case(op, [condition, x, y])


@case("cast")
def _cast(draw: Draw, op: Any) -> Case:
    dtype = np.dtype(draw(st.sampled_from(ANY)))
    x = Operand(draw(shapes), draw(st.sampled_from(ANY)), positive=True)
    return Case(lambda x: op(x, dtype=dtype), [x])


@case("prelu", "gelu_grad", "relu_grad")
def _two_floats(draw: Draw, op: Any) -> Case:
    shape, dtype = draw(shapes), draw(st.sampled_from(FLOATS))
    other = part(draw, shape) if op.name == "prelu" else shape
    return Case(op, [Operand(shape, dtype), Operand(other, dtype)])


@case("gelu")
def _gelu(draw: Draw, op: Any) -> Case:
    how = draw(st.sampled_from(["none", "tanh"]))
    x = Operand(draw(shapes), draw(st.sampled_from(FLOATS)))
    return Case(lambda x: op(x, approximate=how), [x])


@case("clip")
def _clip(draw: Draw, op: Any) -> Case:
    dtypes = st.sampled_from(NUMBERS)
    x = Operand(draw(shapes), draw(dtypes))
    bound, count = Operand((), draw(dtypes)), draw(st.integers(0, 3))
    if count == 3:
        return Case(lambda x: op(x, 1, 2), [x])
    return Case(op, [x, *[bound] * count])


@case("sum", "mean", "prod", "max", "min", "any", "all")
def _reduction(draw: Draw, op: Any) -> Case:
    kinds = ("bool",) if op.name in ("any", "all") else NUMBERS
    shape = draw(full if op.name == "mean" else shapes)
    over, keepdims = axes(draw, shape), draw(st.booleans())
    x = Operand(shape, draw(st.sampled_from(kinds)))
    if shape and draw(st.booleans()):
        given = Operand((1,), "int64", below=len(shape))
        return Case(lambda x, axis: op(x, axis, keepdims=True), [x, given])
    return Case(lambda x: op(x, over, keepdims=keepdims), [x])


@case("softmax", "log_softmax", "logsumexp")
def _softmax(draw: Draw, op: Any) -> Case:
    shape = draw(shapes)
    over = axes(draw, shape)
    x = Operand(shape, draw(st.sampled_from(FLOATS)))
    return Case(lambda x: op(x, axis=over) if over is not None else op(x * 1.0), [x])


@case("softmax_grad")
def _softmax_grad(draw: Draw, op: Any) -> Case:
    shape = draw(shapes)
    over = axes(draw, shape)
    both = [Operand(shape, draw(st.sampled_from(FLOATS)))] * 2
    return Case(lambda g, y: op(g, y, axis=over) if over is not None else g * y, both)


@case("masked_softmax")
def _masked(draw: Draw, op: Any) -> Case:
    shape = draw(ranked(1))
    x = Operand(shape, draw(st.sampled_from(FLOATS)))
    mask = Operand(part(draw, shape), "bool")
    return Case(lambda x, m: op(ops.where(m, x, -np.inf)), [x, mask])


@case("axes_or_all")
def _axes_or_all(draw: Draw, op: Any) -> Case:
    shape, count = draw(ranked(1)), draw(st.integers(0, 1))
    x, given = Operand(shape, "float32"), Operand((count,), "int64", below=len(shape))
    return Case(lambda x, a: ops.sum(x, op(a, x), keepdims=True), [x, given])


@case("sum_to")
def _sum_to(draw: Draw, op: Any) -> Case:
    shape = draw(shapes)
    target = part(draw, shape)
    return Case(
        lambda x: op(x, shape=target), [Operand(shape, draw(st.sampled_from(NUMBERS)))]
    )


@case("layer_norm", "rms_norm", "layer_norm_grad", "rms_norm_grad")
def _norm(draw: Draw, op: Any) -> Case:
    shape, dtype = draw(ranked(1)), draw(st.sampled_from(FLOATS))
    over = draw(st.integers(0, len(shape) - 1))
    line = Operand(shape[over:], dtype)
    more = [line] * draw(st.integers(0, 1 if op.name != "layer_norm" else 2))
    grad = [Operand(shape, dtype)] if op.name.endswith("grad") else []
    operands = [*grad, Operand(shape, dtype), *more]
    return Case(lambda *xs: op(*xs, axis=over, epsilon=0.01), operands)


@case("batch_norm", "batch_norm_then", "batch_norm_train", "batch_norm_grad")
def _batch_norm(draw: Draw, op: Any) -> Case:
    shape, dtype = draw(ranked(2)), draw(st.sampled_from(("float32", "float64")))
    x, line = Operand(shape, dtype), Operand(shape[1:2], dtype, positive=True)
    static: dict[str, Any] = {"epsilon": 0.01}
    if op.name == "batch_norm_then":
        static["after"] = (("scale", -2.0), ("relu",))
    if op.name in ("batch_norm", "batch_norm_then"):
        operands = [x, line, line, *[line] * draw(st.integers(0, 2))]
    elif op.name == "batch_norm_train":
        operands = [x, *[line] * draw(st.integers(0, 2))]
    else:
        operands = [x, x, line, line, *[line] * draw(st.integers(0, 1))]
    return Case(lambda *xs: op(*xs, **static), operands)


NORMALIZE = batch_norm_parts.normalize_channels.name
NORMALIZE_GRAD = batch_norm_parts.normalize_channels_grad.name


@case(NORMALIZE, NORMALIZE_GRAD)
def _normalize_channels(draw: Draw, op: Any) -> Case:
    (n, c, *space), dtype = draw(ranked(2)), draw(st.sampled_from(FLOATS))
    x, line = Operand((n, c, *space), dtype), Operand((c, *(1 for _ in space)), dtype)
    if op.name == NORMALIZE_GRAD:
        return Case(op, [x, x, *[line] * 4])
    return Case(op, [x, *[line] * draw(st.integers(2, 3))])


@case("group_norm")
def _group_norm(draw: Draw, op: Any) -> Case:
    (n, c, *space), dtype = draw(ranked(2)), draw(st.sampled_from(FLOATS))
    groups = draw(st.integers(1, 3))
    x, line = Operand((n, c * groups, *space), dtype), Operand((c * groups,), dtype)
    operands = [x, *[line] * draw(st.integers(0, 2))]
    return Case(lambda *xs: op(*xs, groups=groups, epsilon=0.01), operands)


@case("linear", "matmul")
def _product(draw: Draw, op: Any) -> Case:
    shape, dtypes = draw(ranked(1)), st.sampled_from(FLOATS + ("int32",))
    dtype, width = draw(dtypes), draw(st.integers(1, 4))
    if op.name == "linear":
        more = [Operand((width,), dtype)] * draw(st.integers(0, 1))
        weight = Operand((width, shape[-1]), draw(dtypes))
        return Case(op, [Operand(shape, dtype), weight, *more])
    batch = part(draw, shape[:-2])
    column = draw(st.booleans())
    inner = shape[-1:] if column else (*batch, shape[-1], width)
    return Case(op, [Operand(shape, dtype), Operand(inner, draw(dtypes))])


def names_of_makers() -> set[str]:
    import tests.runtime.cpu.traceable_layers
    import tests.runtime.cpu.traceable_views  # noqa: F401  they register more

    return set(MAKERS)

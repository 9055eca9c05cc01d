"""Random graphs of layers, reductions and data movements, as exporters write them."""

from collections.abc import Callable
from math import prod

from hypothesis import strategies as st

from tests.importer.passes.formulas import Draw, FormulaWriter

#: A value and its extents after the batch axis.
Value = tuple[str, tuple[int, ...]]


def dense(w: FormulaWriter, x: str, shape: tuple[int, ...]) -> Value:
    """Add a linear layer on flattened rows, with reshapes before and after it."""
    inner, outer = shape[-1], w.draw(st.sampled_from([4, 6]))
    rows = w.call("Reshape", x, w.ints([-1, inner]))
    if w.flip():
        bias = w.weight(*w.draw(st.sampled_from([(outer,), (1, outer), (1,)])))
        result = w.call("Gemm", rows, w.weight(inner, outer), bias)
    else:
        result = w.call("MatMul", rows, w.weight(inner, outer))
        result = w.call("Add", result, w.weight(outer))
    last = (outer,) if w.flip() else (2, outer // 2)
    back = (*shape[:-1], *last)
    return w.call("Reshape", result, w.ints([-1, *back])), back


def rolled(w: FormulaWriter, x: str, shape: tuple[int, ...]) -> Value:
    """Add the concatenation of two slices along one axis, the last one first."""
    axis = w.draw(st.integers(1, len(shape)))
    if shape[axis - 1] < 2:
        return x, shape
    cut = w.draw(st.integers(1, shape[axis - 1] - 1))
    at, start = w.ints([axis]), w.ints([cut])
    tail = w.call("Slice", x, start, w.ints([2**31]), at)
    head = w.call("Slice", x, w.ints([0]), start, at)
    return w.call("Concat", tail, head, attrs=f"<axis = {axis}>"), shape


def reduced(w: FormulaWriter, x: str, shape: tuple[int, ...]) -> Value:
    """Add a reduction with axes that are removed later, or inserted before."""
    if len(shape) < 2:
        return x, shape
    op = w.draw(st.sampled_from(["ReduceMean", "ReduceMax", "ReduceSum", "ReduceL2"]))
    axis = w.draw(st.integers(1, len(shape)))
    left = (*shape[: axis - 1], *shape[axis:])
    if w.flip():
        wide = w.call("Unsqueeze", x, w.ints([axis]))
        axes = w.ints([axis, axis + 1])
        return w.call(op, wide, axes, attrs="<keepdims = 0>"), left
    kept = w.call(op, x, w.ints([axis]))
    if w.flip():
        return w.call("Squeeze", kept, w.ints([axis])), left
    return w.call("Reshape", kept, w.ints([-1, *left])), left


def normalized(w: FormulaWriter, x: str, shape: tuple[int, ...]) -> Value:
    """Divide every sample by its norm, expanded to its shape."""
    norm = w.plus(w.call("ReduceL2", x, w.ints([len(shape)])), 0.5)
    wide = w.call("Expand", norm, w.call("Shape", x))
    return w.call("Div", x, wide), shape


def turned(w: FormulaWriter, x: str, shape: tuple[int, ...]) -> Value:
    """Add two permutations, of which the second may undo the first."""
    order = list(w.draw(st.permutations(range(1, len(shape) + 1))))
    perms = [order, [order.index(i) + 1 for i in range(1, len(shape) + 1)]]
    for perm in perms if w.flip() else perms[:1]:
        x = w.call("Transpose", x, attrs=f"<perm = [0, {', '.join(map(str, perm))}]>")
        shape = tuple(shape[axis - 1] for axis in perm)
    return x, shape


def repeated(w: FormulaWriter, x: str, shape: tuple[int, ...]) -> Value:
    """Apply an operator twice."""
    op = w.draw(st.sampled_from(["Neg", "Relu", "Abs", "Identity"]))
    return w.call(op, w.call(op, x)), shape


def convolved(w: FormulaWriter, x: str, shape: tuple[int, ...]) -> Value:
    """Add a convolution, a bias and batch normalization, some of them left out."""
    flat = (shape[0], prod(shape[1:]))
    if len(shape) != 2:
        x = w.call("Reshape", x, w.ints([-1, *flat]))
    x = w.call("Conv", x, w.weight(4, flat[0], 1))
    if w.flip():
        x = w.call("Add", x, w.weight(4, 1))
    if w.flip():
        var = w.call("Constant", attrs="<value = double[4] {0.5, 1.0, 2.0, 3.0}>")
        x = w.call("BatchNormalization", x, w.weight(4), w.weight(4), w.weight(4), var)
    return x, (4, flat[1])


def shuffled(w: FormulaWriter, x: str, shape: tuple[int, ...]) -> Value:
    """Add a pixel shuffle, if there are enough channels."""
    if len(shape) != 3 or shape[0] % 4:
        return x, shape
    channels, (high, wide) = shape[0] // 4, shape[1:]
    split = w.call("Reshape", x, w.ints([-1, channels, 2, 2, high, wide]))
    moved = w.call("Transpose", split, attrs="<perm = [0, 1, 4, 2, 5, 3]>")
    after = (channels, high * 2, wide * 2)
    return w.call("Reshape", moved, w.ints([-1, *after])), after


MOVERS: tuple[Callable[[FormulaWriter, str, tuple[int, ...]], Value], ...] = (
    convolved,
    dense,
    normalized,
    reduced,
    repeated,
    rolled,
    shuffled,
    turned,
)


@st.composite
def moved(draw: Draw) -> str:
    """Return a graph of several of these; some values have several readers."""
    w = FormulaWriter(draw)
    first = draw(st.sampled_from([(4, 6), (8, 3, 2), (4, 2, 3)]))
    x, shape = "x", first
    seen = []
    for mover in draw(st.lists(st.sampled_from(MOVERS), min_size=2, max_size=6)):
        x, shape = mover(w, x, shape)
        seen += [line.split(" = ")[0] for line in w.lines if "Constant" not in line]
        if seen and draw(st.integers(0, 3)) == 0:
            x = w.read_too(x, draw(st.sampled_from(seen)))
    return w.model(("N", *first), w.call("Tanh", x), ("N", *shape))

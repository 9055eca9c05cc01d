"""Calls of the traceable primitives that move elements."""

from typing import Any

from hypothesis import strategies as st

from burn import ops
from tests.runtime.cpu.traceable_cases import (
    ANY,
    FLOATS,
    NUMBERS,
    Case,
    Draw,
    Operand,
    axes,
    case,
    ranked,
    shapes,
)


def anything(draw: Draw, low: int = 0) -> Operand:
    dtype = draw(st.sampled_from(ANY))
    return Operand(draw(ranked(low) if low else shapes), dtype)


@case("reshape")
def _reshape(draw: Draw, op: Any) -> Case:
    x = anything(draw)
    size = 1
    for n in x.shape:
        size *= n
    target = draw(st.sampled_from([(size,), (1, size), (size, 1, 1), x.shape[::-1]]))
    turned = draw(st.booleans())
    return Case(lambda x: op(ops.permute(x) if turned else x, target), [x])


@case("expand")
def _expand(draw: Draw, op: Any) -> Case:
    x = anything(draw)
    shape = tuple(3 if n == 1 else n for n in x.shape)
    return Case(lambda x: [y := op(x, (2, *shape)), op(y, y.shape)], [x])


@case("permute")
def _permute(draw: Draw, op: Any) -> Case:
    x = anything(draw)
    order = draw(st.none() | st.permutations(range(len(x.shape))).map(tuple))
    return Case(lambda x: [op(x, order), op(x, order) == op(x, order)], [x])


@case("transpose", "flatten")
def _two_axes(draw: Draw, op: Any) -> Case:
    x = anything(draw, 1)
    first, second = (draw(st.integers(0, len(x.shape) - 1)) for _ in range(2))
    if op.name == "flatten":
        first, second = sorted((first, second))
        return Case(lambda x: op(ops.permute(x), first, second), [x])
    return Case(lambda x: op(x, first, second), [x])


@case("squeeze", "unsqueeze")
def _ones(draw: Draw, op: Any) -> Case:
    x = anything(draw)
    if op.name == "squeeze":
        return Case(lambda x: [op(x), op(ops.reshape(x, (1, *x.shape)), 0)], [x])
    return Case(lambda x: [op(x, 0), op(x, (0, -1))], [x])


@case("concat", "stack")
def _joined(draw: Draw, op: Any) -> Case:
    x = anything(draw, 1)
    axis = draw(st.integers(-len(x.shape), len(x.shape) - 1))
    return Case(lambda x, y: op([x, y, x], axis), [x, x])


@case("split", "chunk")
def _parts(draw: Draw, op: Any) -> Case:
    x = anything(draw, 1)
    axis = draw(st.integers(-len(x.shape), len(x.shape) - 1))
    extent = x.shape[axis]
    if op.name == "chunk":
        count = draw(st.integers(1, 3))
        return Case(lambda x: list(op(x, count, axis)), [x])
    first = draw(st.integers(0, extent))
    return Case(lambda x: list(op(x, (first, extent - first), axis)), [x])


@case("getitem")
def _getitem(draw: Draw, op: Any) -> Case:
    x = anything(draw, 2)
    n, m = x.shape[:2]
    keys: list[Any] = [0, -1, slice(None, None, -1), slice(1, 1), None, Ellipsis]
    keys += [(slice(None), 0), (0, slice(None, None, 2)), (..., 0), (None, 0, 0)]
    keys += [slice(5, 9), (slice(None, None, -2), slice(1, None))]
    key = draw(st.sampled_from(keys))
    rows, row = Operand((2, 1), "int64", below=n), Operand((), "int64", below=n)
    columns = Operand((3,), "int64", below=m)
    which = draw(st.integers(0, 5))
    if which == 0:
        return Case(lambda x, i: op(x, i), [x, rows])
    if which == 1:
        return Case(lambda x, i, j: op(x, (i, j)), [x, rows, columns])
    if which == 2:
        return Case(lambda x, i: [op(x, i), op(x, (i, slice(0, 1)))], [x, row])
    if which == 3:
        return Case(lambda x, j: op(x, (slice(None, None, -1), j)), [x, columns])
    if which == 4:
        return Case(lambda x, i: op(x, slice(i, None)), [x, row])
    return Case(lambda x: op(x, key), [x])


@case("take")
def _take(draw: Draw, op: Any) -> Case:
    x = anything(draw, 1)
    axis = draw(st.integers(-len(x.shape), len(x.shape) - 1))
    shape = draw(st.sampled_from([(), (2,), (2, 3), (0,)]))
    index = Operand(shape, draw(st.sampled_from(["int32", "int64"])), below=1)
    index = index._replace(below=x.shape[axis])
    return Case(lambda x, i: op(x, i, axis), [x, index])


@case("embedding")
def _embedding(draw: Draw, op: Any) -> Case:
    rows = draw(st.integers(1, 4))
    table = Operand((rows, draw(st.integers(1, 3))), draw(st.sampled_from(FLOATS)))
    shape = draw(st.sampled_from([(), (2,), (2, 3), (0,)]))
    index = Operand(shape, draw(st.sampled_from(["int32", "int64"])), below=rows)
    padding = draw(st.sampled_from([None, 0]))
    return Case(lambda x, i: op(x, i, padding_idx=padding), [table, index])


@case("gather_elements", "scatter_elements")
def _along(draw: Draw, op: Any) -> Case:
    shape = draw(ranked(1))
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    x = Operand(shape, draw(st.sampled_from(NUMBERS)))
    some = tuple(draw(st.integers(0, n)) for n in shape)
    index = Operand(some, draw(st.sampled_from(["int32", "int64"])), below=shape[axis])
    if op.name == "gather_elements":
        return Case(lambda x, i: op(x, i, axis), [x, index])
    reduction = draw(st.sampled_from(["none", "add", "max"]))
    updates = Operand(some, x.dtype)
    return Case(
        lambda x, i, u: op(x, i, u, axis=axis, reduction=reduction),
        [x, index, updates],
    )


@case("gather_nd", "scatter_nd")
def _slices(draw: Draw, op: Any) -> Case:
    shape = draw(ranked(1))
    x = Operand(shape, draw(st.sampled_from(NUMBERS)))
    width = draw(st.integers(1, len(shape)))
    places = draw(st.sampled_from([(), (2,), (2, 3), (0,)]))
    least = min(shape[:width])
    index = Operand((*places, width), "int64", below=least)
    if op.name == "gather_nd":
        return Case(lambda x, i: op(x, i), [x, index])
    reduction = draw(st.sampled_from(["none", "add", "max"]))
    updates = Operand((*places, *shape[width:]), x.dtype)
    return Case(lambda x, i, u: op(x, i, u, reduction=reduction), [x, index, updates])


@case("pad", "pad_grad")
def _pad(draw: Draw, op: Any) -> Case:
    shape = draw(ranked(1))
    mode = draw(st.sampled_from(["constant", "edge", "wrap", "reflect"]))
    counts = st.lists(
        st.integers(-1 if mode == "constant" else 0, 2),
        min_size=2 * len(shape),
        max_size=2 * len(shape),
    )
    pads = draw(counts)
    if op.name == "pad_grad":
        rank = len(shape)
        grown = tuple(max(n + pads[a] + pads[a + rank], 0) for a, n in enumerate(shape))
        x = Operand(grown, draw(st.sampled_from(FLOATS)))
        return Case(lambda x: op(x, pads, shape=shape, mode=mode), [x])
    x = Operand(shape, draw(st.sampled_from(NUMBERS)))
    if draw(st.booleans()):
        value = Operand((), x.dtype)
        return Case(lambda x, v: op(x, pads, v, mode="constant"), [x, value])
    if draw(st.booleans()):  # of one extent, whatever the counts are
        side = Operand((1,), "int64", below=2)
        rest = [0] * (len(shape) - 1)

        def shifted(x: Any, side: Any) -> Any:
            before = ops.concat([side, rest, 1 - side, rest], 0)
            return op(x, before, mode=mode)

        return Case(shifted, [x, side])
    return Case(lambda x: op(x, pads, 0, mode=mode), [x])


@case("tile")
def _tile(draw: Draw, op: Any) -> Case:
    x = anything(draw)
    counts = tuple(draw(st.integers(1, 2)) for _ in x.shape)
    return Case(lambda x: op(x, counts), [x])


@case("flip", "roll")
def _turned(draw: Draw, op: Any) -> Case:
    x = anything(draw, 1)
    if op.name == "flip":
        over = axes(draw, x.shape)
        return Case(lambda x: [y := op(x, over), op(y, over), y == x], [x])
    shift = Operand((1,), "int64", below=4)
    if draw(st.booleans()):
        return Case(lambda x, s: op(x, s, (-1,)), [x, shift])
    return Case(lambda x: op(x, (2,), (0,)), [x])


@case("trilu")
def _trilu(draw: Draw, op: Any) -> Case:
    x, upper = anything(draw, 2), draw(st.booleans())
    if draw(st.booleans()):
        k = Operand((), "int64", below=3)
        return Case(lambda x, k: op(x, k, upper=upper), [x, k])
    return Case(lambda x: op(x, -1, upper=upper), [x])


@case("reverse_sequence")
def _reverse_sequence(draw: Draw, op: Any) -> Case:
    x, batch = anything(draw, 2), draw(st.integers(0, 1))
    lengths = Operand((x.shape[batch],), "int64", below=x.shape[1 - batch] + 1)
    return Case(
        lambda x, n: op(x, n, batch_axis=batch, time_axis=1 - batch), [x, lengths]
    )


@case("resize")
def _resize(draw: Draw, op: Any) -> Case:
    shape = draw(ranked(1))
    x = Operand(shape, draw(st.sampled_from((*FLOATS, "int32"))))
    mode = draw(st.sampled_from(["nearest", "linear", "cubic"]))
    if draw(st.booleans()):  # all of one size: what is added is less than an element
        more = Operand((len(shape),), "float32", positive=True)
        return Case(lambda x, m: op(x, 2.0 + m * 0.01, mode=mode), [x, more])
    if draw(st.booleans()):
        how = {"coordinate_transformation_mode": "tf_crop_and_resize"}
        bounds = Operand((2 * len(shape),), "float32", positive=True)
        sizes = tuple(3 for _ in shape)
        return Case(
            lambda x, b: op(x, None, sizes, b * 0.3, mode=mode, **how), [x, bounds]
        )
    sizes = tuple(draw(st.integers(1, 6)) for _ in shape)
    antialias = draw(st.booleans())
    return Case(lambda x: op(x, None, sizes, mode=mode, antialias=antialias), [x])

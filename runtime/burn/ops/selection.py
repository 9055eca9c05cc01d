"""Selection: non-maximum suppression and unique elements."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from burn import dtypes
from burn.ops.indexing import take_grad
from burn.ops.shape import reshape
from burn.ops.support import Array, accumulate, namespace, plain_number
from burn.primitive import primitive

Floats = np.ndarray[Any, Any]
#: Returns the rows of selected boxes, [count, 3]. Its arguments are the sides of boxes
#: [N, B, 4], the boxes of each class by score [N, K, B], how many of these are
#: candidates [N, K], the most boxes of a class, and the largest overlap.
Selector: TypeAlias = Callable[[Any, Any, Any, int, Any], Any]

# The number of boxes per block of comparisons.
_BLOCK = 64


@primitive(no_gradient="the results are integers")
def non_max_suppression(
    boxes: Array,
    scores: Array,
    max_output_boxes: Any = 0,
    iou_threshold: Any = 0.0,
    score_threshold: Any = None,
    *,
    center_point_box: bool = False,
) -> Array:
    """Return boxes with the best scores and little overlap, int64 [count, 3].

    ``boxes`` are [N, B, 4]: y1, x1, y2, x2 of any two opposite corners, or with
    ``center_point_box`` x, y of the center, width, height. ``scores`` are [N, K, B]. A
    row of the result is image, class and box; of each class at most
    ``max_output_boxes``, the best first. Boxes are excluded if their score is not above
    ``score_threshold``, or their intersection over union with a box selected before is
    above ``iou_threshold``. Everything is read on the host.
    """
    options = (max_output_boxes, iou_threshold, score_threshold)
    return suppress(
        _select_rows, boxes, scores, *options, center_point_box=center_point_box
    )


def suppress(
    select: Selector,
    boxes: Array,
    scores: Array,
    max_output_boxes: Any = 0,
    iou_threshold: Any = 0.0,
    score_threshold: Any = None,
    *,
    center_point_box: bool = False,
) -> Array:
    """Return :func:`non_max_suppression`, with ``select`` for the boxes of a class."""
    sides = _sides(_on_host(boxes), center_point_box)
    limit = int(plain_number(max_output_boxes))
    overlap = sides.dtype.type(plain_number(iou_threshold))
    ratings = _on_host(scores)
    orders, counts = _candidates(ratings, plain_number(score_threshold))
    return namespace(boxes).asarray(select(sides, orders, counts, limit, overlap))


def _candidates(ratings: Floats, threshold: Any) -> tuple[Any, Any]:
    """Return the boxes of each class by score [N, K, B], and the number of those whose
    score is above a ``threshold`` [N, K]; the others are in no order.
    """
    if threshold is None:
        counts = np.full(ratings.shape[:2], ratings.shape[2])
        return np.argsort(-ratings, axis=-1, kind="stable"), counts
    is_above = ratings > ratings.dtype.type(threshold)
    counts = is_above.sum(-1)
    if ratings.shape[2] <= _BLOCK:
        return np.argsort(-ratings, axis=-1, kind="stable"), counts
    # Most boxes of a detector are below the threshold: only the others are sorted.
    orders = np.zeros(ratings.shape, np.int64)
    for image, label in np.ndindex(counts.shape):
        (numbers,) = is_above[image, label].nonzero()
        order = np.argsort(-ratings[image, label, numbers], kind="stable")
        orders[image, label, : len(order)] = numbers[order]
    return orders, counts


def _select_rows(
    sides: Floats, orders: Any, counts: Any, limit: int, overlap: Any
) -> Any:
    rows: list[tuple[int, int, int]] = []
    for image, of_image in enumerate(sides):
        candidates = [o[:n] for o, n in zip(orders[image], counts[image], strict=True)]
        selected = _select_of_classes(of_image, candidates, limit, overlap)
        rows += [(image, label, n) for label, each in enumerate(selected) for n in each]
    return np.array(rows, np.int64).reshape(-1, 3)


def _on_host(array: Any) -> Any:
    return array.get() if hasattr(array, "get") else array


def _sides(boxes: Floats, center_point_box: bool) -> Floats:
    """Return the boxes as y1, x1, y2, x2 with the smaller coordinate first."""
    if not center_point_box:
        first, second = boxes[..., :2], boxes[..., 2:]
        low, high = np.minimum(first, second), np.maximum(first, second)
        return np.concatenate([low, high], -1)
    center, half = boxes[..., 1::-1], boxes[..., :1:-1] / 2
    return np.concatenate([center - half, center + half], -1)


def _select_of_classes(
    sides: Floats, candidates: list[Any], limit: int, overlap: Any
) -> list[list[int]]:
    """Return the selected boxes of each class of an image.

    ``candidates`` are the numbers of boxes, in order of the scores of each class.
    """
    if len(sides) ** 2 > _BLOCK**2 * len(candidates):
        return [
            order[_select(sides[order], limit, overlap)].tolist()
            for order in candidates
        ]
    # All pairs are compared once, for all classes.
    bits = np.packbits(_meets(sides, overlap), axis=1, bitorder="little")
    masks = [int.from_bytes(row, "little") for row in map(bytes, bits)]
    return [_select_by_masks(order.tolist(), masks, limit) for order in candidates]


def _meets(sides: Floats, threshold: Any) -> Any:
    """Return whether the overlap of each pair of boxes is too large, [B, B]."""
    y1, x1, y2, x2 = sides.T.copy()
    shared, width = (
        np.minimum.outer(high, high) - np.maximum.outer(low, low)
        for low, high in ((y1, y2), (x1, x2))
    )
    np.maximum(shared, 0, out=shared)
    shared *= np.maximum(width, 0, out=width)
    areas = _areas(sides)
    union = np.add.outer(areas, areas)
    union -= shared
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.divide(shared, union, out=union)
    # Of boxes without an area the ratio is NaN, which is above no threshold.
    meets = ratio > threshold
    meets &= shared > 0
    return meets


def _select_by_masks(order: list[int], masks: list[int], limit: int) -> list[int]:
    """Return at most ``limit`` boxes; bit n of a box's mask is set if it meets n."""
    selected: list[int] = []
    excluded = 0
    for number in order:
        if len(selected) >= limit:
            break
        if not excluded >> number & 1:
            selected.append(number)
            excluded |= masks[number]
    return selected


def _select(sides: Floats, limit: int, overlap: Any) -> list[int]:
    """Return at most ``limit`` selected boxes; the input is in order of scores."""
    selected: list[int] = []
    chosen = np.empty((5, len(sides)), sides.dtype)
    every = np.stack([*sides.T, _areas(sides)])
    for start in range(0, len(sides) if limit > 0 else 0, _BLOCK):
        block = every[:, start : start + _BLOCK]
        alive = np.ones(block.shape[1], bool)
        alive[_meeting(block, chosen[:, : len(selected)], overlap)[0]] = False
        meets = np.zeros((len(alive), len(alive)), bool)
        meets[_meeting(block, block, overlap)] = True
        for number in np.flatnonzero(alive).tolist():
            if alive[number]:
                chosen[:, len(selected)] = block[:, number]
                selected.append(start + number)
                if len(selected) == limit:
                    return selected
                alive[number + 1 :] &= ~meets[number, number + 1 :]
    return selected


def _meeting(first: Floats, second: Floats, threshold: Any) -> tuple[Any, Any]:
    """Return the pairs of boxes, by sides and areas, whose overlap is too large."""
    common: Any = None
    for low, high in ((0, 2), (1, 3)):
        end = np.minimum.outer(first[high], second[high])
        end -= np.maximum.outer(first[low], second[low])
        np.maximum(end, 0, out=end)
        common = end if common is None else np.multiply(common, end, out=common)
    a, b = np.nonzero(common)
    shared, of_first, of_second = common[a, b], first[4, a], second[4, b]
    union = of_first + of_second - shared
    overlaps = (of_first > 0) & (of_second > 0) & (union > 0)
    overlaps &= shared / np.where(overlaps, union, 1) > threshold
    return a[overlaps], b[overlaps]


def _areas(sides: Floats) -> Any:
    return (sides[:, 2] - sides[:, 0]) * (sides[:, 3] - sides[:, 1])


@primitive(outputs=4)
def unique(
    x: Array, *, axis: int | None = None, sorted: bool = True
) -> tuple[Array, Array, Array, Array]:
    """Return the unique elements of ``x``, or its unique entries along ``axis``.

    The other results are int64 vectors: the first index of each, the inverse index of
    every element (or entry), and the counts. Without ``axis``, ``x`` is flattened. They
    are in ascending order, or in that of their first occurrence unless ``sorted``.
    """
    xp = namespace(x)
    flat = accumulate(x.reshape(-1))
    first, inverse, counts = _unique(flat)
    if axis is not None:
        extent = x.shape[axis]
        ranks = xp.moveaxis(inverse.reshape(x.shape), axis, 0)
        rows = ranks.reshape(extent, x.size // max(extent, 1))
        rows = xp.concatenate([xp.zeros((extent, 1), rows.dtype), rows], 1)
        _, first, inverse, counts = xp.unique(rows, True, True, True, axis=0)
    inverse = inverse.reshape(-1)
    if not sorted:
        order = xp.argsort(first)
        rank = xp.argsort(order)
        first, counts, inverse = first[order], counts[order], rank[inverse]
    values = x.reshape(-1)[first] if axis is None else xp.take(x, first, axis=axis)
    kinds = (v.astype(dtypes.int64, copy=False) for v in (first, inverse, counts))
    return (values, *kinds)


def _unique(flat: Array) -> tuple[Array, Array, Array]:
    """Return the first index of each distinct element of a vector, in ascending order
    of elements, the inverse indices, and the counts. All NaN are one element.
    """
    xp = namespace(flat)
    if not flat.size or flat.dtype.kind not in "biuf":
        _, first, inverse, counts = xp.unique(flat, True, True, True)
        return first, inverse, counts
    order = xp.argsort(flat, kind="stable")
    values = flat[order]
    is_first = xp.empty(flat.shape, bool)
    is_first[:1] = True
    xp.not_equal(values[1:], values[:-1], out=is_first[1:])
    if flat.dtype.kind == "f" and values[-1] != values[-1]:  # NaN come last
        is_nan = values != values
        is_first[1:] &= ~(is_nan[1:] & is_nan[:-1])
    (starts,) = is_first.nonzero()
    inverse = xp.empty(flat.shape, np.int64)
    ranks = is_first.cumsum()
    ranks -= 1
    inverse[order] = ranks
    counts = xp.empty(starts.shape, np.int64)
    counts[-1] = flat.size
    counts[:-1] = starts[1:]
    counts -= starts
    return order[starts], inverse, counts


@unique.vjp
def _(
    grad: Any, out: Any, x: Any, *, axis: int | None = None, sorted: bool = True
) -> Any:
    # An element that comes several times is that of its first occurrence.
    if axis is not None:
        return lambda: take_grad(grad[0], out[1], axis, shape=x.shape)
    size = (x.size,)
    return lambda: reshape(take_grad(grad[0], out[1], 0, shape=size), x.shape)

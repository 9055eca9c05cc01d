"""Non-maximum suppression as a generated kernel."""

from collections.abc import Callable
from ctypes import addressof, c_size_t
from functools import cache, partial
from typing import Any

import numpy as np

from burn.backend.cpu.jit.functions import FLOATS, TYPES
from burn.backend.cpu.jit.machine import machine
from burn.backend.cpu.jit.sorted_boxes import (
    MOST_COMPARED,
    PREPARED_WORDS,
    prepared_source,
)
from burn.backend.cpu.jit.source import Kernel
from burn.backend.cpu.onednn.binding.memory import address
from burn.ops.selection import Floats, suppress
from burn.ops.support import Array
from burn.primitive import Primitive


def generated_kernel(primitive: Primitive[..., Any], args: list[Any]) -> Any:
    """Return a generated replacement of the whole kernel of a primitive, or None.

    ``args`` are arguments that it will be called with.
    """
    if primitive.name != "non_max_suppression":
        return None
    boxes = args[0]
    if not isinstance(boxes, np.ndarray) or boxes.dtype not in FLOATS:
        return None
    _function(boxes.dtype)  # compiled now, not in a later call
    return partial(suppress, _select_rows)


def suppression_kernel(
    target: Array,
    boxes: Array,
    scores: Array,
    max_output_boxes: Any = 0,
    iou_threshold: Any = 0.0,
    score_threshold: Any = None,
    *,
    center_point_box: bool = False,
) -> Kernel | None:
    """Return the kernel of ``non_max_suppression`` of few boxes, None if there is none.

    It fails if it selects more or fewer boxes than in ``target``.
    """
    most, overlap, threshold = max_output_boxes, iou_threshold, score_threshold
    if boxes.dtype not in FLOATS or scores.dtype not in FLOATS:
        return None
    if not all(type(each) in (int, float) for each in (most, overlap)):
        return None  # they may differ from run to run
    if threshold is not None and type(threshold) not in (int, float):
        return None
    (images, classes, count), limit = scores.shape, min(int(most), scores.shape[2])
    if not _has_few(target, boxes, scores) or limit <= 0:
        return None
    sides = np.empty((images, count, 4), boxes.dtype)
    orders, counts = np.empty(scores.shape, np.int64), np.empty(scores.shape[:2], int)
    chosen = np.empty((5, limit), sides.dtype)
    rows = np.empty((images * classes * limit, 3), np.int64)
    least = np.array(0 if threshold is None else threshold, scores.dtype)
    numbers = (images, classes, count, *boxes.strides, *scores.strides)
    candidates = (np.empty(count, np.int64), np.empty(count, scores.dtype))
    prepared = (boxes, scores, least, sides, orders, counts, *candidates)
    selected = (sides, orders, counts, chosen, rows, np.array(overlap, sides.dtype))
    words = (
        *(*map(address, prepared), *numbers),
        *(*map(address, selected), images * classes, classes, count, limit, 0),
        *(len(target), address(target)),
    )
    kinds = (boxes.dtype, scores.dtype)
    text = _whole_source(kinds, center_point_box, threshold is not None)
    owned = (*prepared, *selected, target)
    work = 8 * scores.size * count
    return Kernel(text, (), words, work, 1, may_fail=True, owned=owned)


def _has_few(target: Array, boxes: Array, scores: Array) -> bool:
    """Return whether the source reads and writes these arrays, of few boxes."""
    is_read = boxes.flags.aligned and scores.flags.aligned and scores.size > 0
    is_written = target.flags.c_contiguous and target.size > 0
    return bool(is_read and is_written and scores.shape[2] <= MOST_COMPARED)


@cache
def _whole_source(
    kinds: tuple[np.dtype[Any], np.dtype[Any]], is_centered: bool, has_threshold: bool
) -> str:
    """Return the source of all of the operator."""
    prepare, _, rest = prepared_source(kinds, is_centered, has_threshold).partition(
        "define void @shared"
    )
    select, _, shared = _source(kinds[0]).partition("define void @shared")
    prepare = prepare.replace("@whole(", "@prepare(")
    select = select.replace("@whole(", "@select(")
    ends = {"FIRST": PREPARED_WORDS, "COUNT": PREPARED_WORDS + _SELECTED_WORDS}
    ends |= {"ROWS": ends["COUNT"] + 1, "TARGET": ends["COUNT"] + 2}
    joint = _JOINT
    for name, word in ends.items():
        joint = joint.replace(name, str(word))
    return f"{prepare}{select}{joint}define void @shared{shared}"


def _select_rows(
    sides: Floats, orders: Any, counts: Any, limit: int, overlap: Any
) -> Array:
    """Return the rows of selected boxes; see :data:`burn.ops.selection.Selector`."""
    images, classes, boxes = orders.shape
    most = max(min(limit, boxes), 0)
    rows = np.empty((images * classes * most, 3), np.int64)
    if not rows.size:
        return rows
    arrays = (
        *(np.ascontiguousarray(each) for each in (sides, orders, counts)),
        *(np.empty((5, most), sides.dtype), rows, np.array(overlap)),
    )
    given = (*map(address, arrays), images * classes, classes, boxes, most)
    data = (c_size_t * (len(given) + 1))(*given)
    _function(sides.dtype)(addressof(data))
    return rows[: data[len(given)]].copy()


def _function(dtype: np.dtype[Any]) -> Callable[[int], int]:
    """Return the machine code for boxes of ``dtype``; it takes a list of addresses
    and numbers, to which it appends the number of rows.
    """
    return machine().function(_source(dtype))


@cache
def _source(dtype: np.dtype[Any]) -> str:
    return _TEXT.replace("FLOAT", TYPES[dtype])


# The words of the selection before the number of rows.
_SELECTED_WORDS = 10
_JOINT = """\
define i32 @whole(ptr %data) {
  %prepared = call i32 @prepare(ptr %data)
  %first = getelementptr i64, ptr %data, i64 FIRST
  %selected = call i32 @select(ptr %first)
  %count.at = getelementptr i64, ptr %data, i64 COUNT
  %expected.at = getelementptr i64, ptr %data, i64 ROWS
  %target.at = getelementptr i64, ptr %data, i64 TARGET
  %rows.at = getelementptr i64, ptr %first, i64 4
  %count = load i64, ptr %count.at
  %expected = load i64, ptr %expected.at
  %target = load ptr, ptr %target.at
  %rows = load ptr, ptr %rows.at
  %differs = icmp ne i64 %count, %expected
  br i1 %differs, label %fail, label %copy
fail:
  ret i32 1
copy:
  %bytes = mul i64 %count, 24
  call void @llvm.memcpy.p0.p0.i64(ptr %target, ptr %rows, i64 %bytes, i1 false)
  ret i32 0
}

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

"""
# Candidates are compared with all boxes that were kept before, whose sides and areas
# are in the five rows of %chosen: a loop without branches, which becomes a vector.
# Comparisons with NaN are false, as in NumPy. It is never called by several threads.
_TEXT = """\
define i32 @whole(ptr %data) {
entry:
  %at1 = getelementptr i64, ptr %data, i64 1
  %at2 = getelementptr i64, ptr %data, i64 2
  %at3 = getelementptr i64, ptr %data, i64 3
  %at4 = getelementptr i64, ptr %data, i64 4
  %at5 = getelementptr i64, ptr %data, i64 5
  %at6 = getelementptr i64, ptr %data, i64 6
  %at7 = getelementptr i64, ptr %data, i64 7
  %at8 = getelementptr i64, ptr %data, i64 8
  %at9 = getelementptr i64, ptr %data, i64 9
  %at10 = getelementptr i64, ptr %data, i64 10
  %sides = load ptr, ptr %data
  %orders = load ptr, ptr %at1
  %counts = load ptr, ptr %at2
  %chosen = load ptr, ptr %at3
  %rows = load ptr, ptr %at4
  %threshold.at = load ptr, ptr %at5
  %pairs = load i64, ptr %at6
  %classes = load i64, ptr %at7
  %boxes = load i64, ptr %at8
  %most = load i64, ptr %at9
  %threshold = load FLOAT, ptr %threshold.at
  %chosen.x1 = getelementptr FLOAT, ptr %chosen, i64 %most
  %chosen.y2 = getelementptr FLOAT, ptr %chosen.x1, i64 %most
  %chosen.x2 = getelementptr FLOAT, ptr %chosen.y2, i64 %most
  %chosen.area = getelementptr FLOAT, ptr %chosen.x2, i64 %most
  br label %pair
pair:
  %p = phi i64 [ 0, %entry ], [ %p.next, %pair.end ]
  %total = phi i64 [ 0, %entry ], [ %total.next, %pair.end ]
  %image = udiv i64 %p, %classes
  %label = urem i64 %p, %classes
  %count.at = getelementptr i64, ptr %counts, i64 %p
  %count = load i64, ptr %count.at
  %first.order = mul i64 %p, %boxes
  %first.box = mul i64 %image, %boxes
  br label %box
box:
  %i = phi i64 [ 0, %pair ], [ %i.next, %box.end ]
  %kept = phi i64 [ 0, %pair ], [ %kept.next, %box.end ]
  %is.candidate = icmp ult i64 %i, %count
  %has.room = icmp ult i64 %kept, %most
  %goes.on = and i1 %is.candidate, %has.room
  br i1 %goes.on, label %candidate, label %pair.end
candidate:
  %order = add i64 %first.order, %i
  %order.at = getelementptr i64, ptr %orders, i64 %order
  %number = load i64, ptr %order.at
  %box.number = add i64 %first.box, %number
  %offset = shl i64 %box.number, 2
  %y1.at = getelementptr FLOAT, ptr %sides, i64 %offset
  %x1.at = getelementptr FLOAT, ptr %y1.at, i64 1
  %y2.at = getelementptr FLOAT, ptr %y1.at, i64 2
  %x2.at = getelementptr FLOAT, ptr %y1.at, i64 3
  %y1 = load FLOAT, ptr %y1.at
  %x1 = load FLOAT, ptr %x1.at
  %y2 = load FLOAT, ptr %y2.at
  %x2 = load FLOAT, ptr %x2.at
  %height = fsub FLOAT %y2, %y1
  %width = fsub FLOAT %x2, %x1
  %area = fmul FLOAT %height, %width
  %is.first = icmp eq i64 %kept, 0
  br i1 %is.first, label %keep, label %compare
compare:
  %k = phi i64 [ 0, %candidate ], [ %k.next, %compare ]
  %met = phi i1 [ false, %candidate ], [ %met.next, %compare ]
  %other.y1.at = getelementptr FLOAT, ptr %chosen, i64 %k
  %other.x1.at = getelementptr FLOAT, ptr %chosen.x1, i64 %k
  %other.y2.at = getelementptr FLOAT, ptr %chosen.y2, i64 %k
  %other.x2.at = getelementptr FLOAT, ptr %chosen.x2, i64 %k
  %other.area.at = getelementptr FLOAT, ptr %chosen.area, i64 %k
  %other.y1 = load FLOAT, ptr %other.y1.at
  %other.x1 = load FLOAT, ptr %other.x1.at
  %other.y2 = load FLOAT, ptr %other.y2.at
  %other.x2 = load FLOAT, ptr %other.x2.at
  %other.area = load FLOAT, ptr %other.area.at
  %is.y1 = fcmp ogt FLOAT %y1, %other.y1
  %low.y = select i1 %is.y1, FLOAT %y1, FLOAT %other.y1
  %is.x1 = fcmp ogt FLOAT %x1, %other.x1
  %low.x = select i1 %is.x1, FLOAT %x1, FLOAT %other.x1
  %is.y2 = fcmp olt FLOAT %y2, %other.y2
  %high.y = select i1 %is.y2, FLOAT %y2, FLOAT %other.y2
  %is.x2 = fcmp olt FLOAT %x2, %other.x2
  %high.x = select i1 %is.x2, FLOAT %x2, FLOAT %other.x2
  %shared.y = fsub FLOAT %high.y, %low.y
  %shared.x = fsub FLOAT %high.x, %low.x
  %has.y = fcmp ogt FLOAT %shared.y, 0.0
  %common.y = select i1 %has.y, FLOAT %shared.y, FLOAT 0.0
  %has.x = fcmp ogt FLOAT %shared.x, 0.0
  %common.x = select i1 %has.x, FLOAT %shared.x, FLOAT 0.0
  %shared = fmul FLOAT %common.y, %common.x
  %areas = fadd FLOAT %area, %other.area
  %union = fsub FLOAT %areas, %shared
  %ratio = fdiv FLOAT %shared, %union
  %is.above = fcmp ogt FLOAT %ratio, %threshold
  %is.shared = fcmp ogt FLOAT %shared, 0.0
  %meets = and i1 %is.above, %is.shared
  %met.next = or i1 %met, %meets
  %k.next = add i64 %k, 1
  %is.last = icmp eq i64 %k.next, %kept
  br i1 %is.last, label %compared, label %compare
compared:
  br i1 %met.next, label %box.end, label %keep
keep:
  %kept.y1 = getelementptr FLOAT, ptr %chosen, i64 %kept
  %kept.x1 = getelementptr FLOAT, ptr %chosen.x1, i64 %kept
  %kept.y2 = getelementptr FLOAT, ptr %chosen.y2, i64 %kept
  %kept.x2 = getelementptr FLOAT, ptr %chosen.x2, i64 %kept
  %kept.area = getelementptr FLOAT, ptr %chosen.area, i64 %kept
  store FLOAT %y1, ptr %kept.y1
  store FLOAT %x1, ptr %kept.x1
  store FLOAT %y2, ptr %kept.y2
  store FLOAT %x2, ptr %kept.x2
  store FLOAT %area, ptr %kept.area
  %row = add i64 %total, %kept
  %row.start = mul i64 %row, 3
  %image.at = getelementptr i64, ptr %rows, i64 %row.start
  %label.at = getelementptr i64, ptr %image.at, i64 1
  %number.at = getelementptr i64, ptr %image.at, i64 2
  store i64 %image, ptr %image.at
  store i64 %label, ptr %label.at
  store i64 %number, ptr %number.at
  %kept.more = add i64 %kept, 1
  br label %box.end
box.end:
  %kept.next = phi i64 [ %kept, %compared ], [ %kept.more, %keep ]
  %i.next = add i64 %i, 1
  br label %box
pair.end:
  %total.next = add i64 %total, %kept
  %p.next = add i64 %p, 1
  %is.done = icmp eq i64 %p.next, %pairs
  br i1 %is.done, label %end, label %pair
end:
  store i64 %total.next, ptr %at10
  ret i32 0
}

define void @shared(ptr %data) {
  call i32 @whole(ptr %data)
  ret void
}
"""

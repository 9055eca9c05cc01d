"""Selection: non-maximum suppression and unique elements."""

from __future__ import annotations

from math import prod
from typing import Any, Literal

from burn import dtypes, ops
from burn_ir.dim import Dim, unnamed
from burn_ir.errors import InvalidOperand, Undecided
from burn_ir.op import Op, Type, Value, operator
from burn_ir.ops.options import non_default, shortest
from burn_ir.ops.support import differ
from burn_ir.static import static


@operator
class NonMaxSuppression(Op, onnx="NonMaxSuppression", versions=(10, 11)):
    center_point_box: Literal[0, 1] = 0

    def infer(
        self,
        boxes: Type,
        scores: Type,
        max_output_boxes_per_class: Type | None = None,
        iou_threshold: Type | None = None,
        score_threshold: Type | None = None,
    ) -> Type:
        for name, operand in (("boxes", boxes), ("scores", scores)):
            if not dtypes.is_float(operand.dtype):
                raise InvalidOperand(f"expected floating {name}, got {operand.name}")
            if operand.shape is not None and operand.rank != 3:
                raise InvalidOperand(f"expected {name} of rank 3, got {operand.name}")
        if boxes.shape is not None and differ(boxes.dims[2], 4):
            raise InvalidOperand(f"expected boxes of 4 numbers, got {boxes.name}")
        if boxes.shape is not None and scores.shape is not None:
            pairs = (boxes.dims[0], scores.dims[0]), (boxes.dims[1], scores.dims[2])
            if any(differ(a, b) for a, b in pairs):
                raise InvalidOperand(
                    f"expected a score for each box of {boxes.name}, got {scores.name}"
                )
        return Type(dtypes.int64, (unnamed(), 3))

    def lower(
        self,
        boxes: Value,
        scores: Value,
        max_output_boxes_per_class: Value = None,
        iou_threshold: Value = None,
        score_threshold: Value = None,
    ) -> Value:
        bounds: list[Any] = [
            _number(max_output_boxes_per_class, 0),
            _number(iou_threshold, 0.0),
            _number(score_threshold, None),
        ]
        for default in (None, 0.0, 0):
            # ``is``: a tensor compares element by element.
            if type(bounds[-1]) is not type(default) or bounds[-1] != default:
                break
            bounds.pop()
        options = non_default(center_point_box=(bool(self.center_point_box), False))
        return ops.non_max_suppression(boxes, scores, *bounds, **options)


def _number(operand: Value, default: Any) -> Any:
    """Return a one-element operand as a Python number if it is known."""
    if operand is None:
        return default
    try:
        contents = static(operand)
    except Undecided:
        return operand
    if contents.size != 1:
        return default  # an empty tensor means an omitted operand
    number = contents.ravel().tolist()[0]
    return shortest(number) if isinstance(number, float) else number


@operator
class Unique(Op, onnx="Unique", versions=(11, 28)):
    axis: int | None = None
    sorted: Literal[0, 1] = 1

    def infer(self, x: Type) -> tuple[Type, ...]:
        count = unnamed()
        vector = Type(dtypes.int64, (count,))
        if self.axis is None:
            every: Dim = unnamed() if x.shape is None else prod(x.shape)
            values = x.with_shape((count,))
        elif x.shape is None:
            every, values = unnamed(), x.with_shape(None)
        else:
            (axis,) = x.axes(self.axis)
            every = x.shape[axis]
            dims = [count if a == axis else d for a, d in enumerate(x.shape)]
            values = x.with_shape(dims)
        return values, vector, Type(dtypes.int64, (every,)), vector

    def lower(self, x: Value) -> Value:
        options = non_default(axis=(self.axis, None), sorted=(bool(self.sorted), True))
        return ops.unique(x, **options)

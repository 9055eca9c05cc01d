"""Splitting of a tensor along an axis."""

from __future__ import annotations

from collections.abc import Sequence

from burn import ops
from burn_ir.dim import Dim, exact_div, floor_div
from burn_ir.errors import InvalidOperand
from burn_ir.op import Op, Type, Value, operator
from burn_ir.ops.support import are_unequal_numbers, ints_of, known_dims, unnamed_dims
from burn_ir.upgrade import Draft


@operator
class Split(Op, onnx="Split", versions=(1, 2, 11, 13, 18)):
    axis: int = 0
    num_outputs: int | None = None
    results: int = 1

    def infer(self, x: Type, split: Type | None = None) -> tuple[Type, ...]:
        if (split is None) == (self.num_outputs is None):
            raise InvalidOperand("expected either num_outputs or sizes to split into")
        if x.shape is None:
            return (x.with_shape(None),) * self.results
        (axis,) = x.axes(self.axis)
        return tuple(
            x.with_shape([size if a == axis else d for a, d in enumerate(x.dims)])
            for size in self._sizes(x, axis, split)
        )

    def _sizes(self, x: Type, axis: int, split: Type | None) -> Sequence[Dim]:
        if split is None:
            return chunks(x.dims[axis], self.num_outputs or 1)
        sizes = known_dims(split)
        if sizes is None:
            return unnamed_dims(self.results)
        total, extent = sum(sizes), x.dims[axis]
        if are_unequal_numbers(total, extent):
            raise InvalidOperand(f"expected sizes that sum to {extent}, got {sizes}")
        return sizes

    def lower(self, x: Value, split: Value = None) -> Value:
        if split is None:
            count = self.num_outputs or self.results
            if self.axis == 0:
                return ops.chunk(x, count)
            return ops.chunk(x, count, axis=self.axis)
        sizes = ints_of(split)
        where = split if sizes is None else sizes
        if self.axis == 0:
            return ops.split(x, where)
        return ops.split(x, where, axis=self.axis)


def chunks(extent: Dim, count: int) -> list[Dim]:
    """Return the sizes of ``count`` equal pieces; the last may be smaller."""
    even = exact_div(extent, count)
    if even is not None:
        return [even] * count
    size = floor_div(extent + (count - 1), count)
    if isinstance(extent, int) and isinstance(size, int):
        return [min(size, max(extent - i * size, 0)) for i in range(count)]
    return [size] * (count - 1) + [extent - size * (count - 1)]


@Split.upgrade(1, 2, 11, 13)
def sizes_attribute(draft: Draft) -> Draft:
    """Upgrade: before 13 the sizes were an attribute.

    Before 18, equal sizes were implied.
    """
    draft = draft.attr_to_input("split", 1)
    if len(draft.types) > 1 and draft.types[1] is not None:
        return draft
    return draft.with_attrs(num_outputs=len(draft.node.outputs))

"""Padding at the borders of a tensor."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from burn import dtypes, ops
from burn_ir.dim import Dim
from burn_ir.errors import InvalidOperand
from burn_ir.op import Layer, Op, Type, Value, operator
from burn_ir.ops.support import ints_of, known_dims, known_ints, unnamed_dims
from burn_ir.upgrade import Draft

MODES = ("constant", "reflect", "edge", "wrap")
#: The words for modes in the names of modules.
_WORDS = {"reflect": "Reflection", "edge": "Replication", "wrap": "Circular"}


@operator
class Pad(Op, onnx="Pad", versions=(1, 2, 11, 13, 18, 19, 21, 23, 24, 25)):
    mode: Literal["constant", "reflect", "edge", "wrap"] = "constant"

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise InvalidOperand(f"expected mode {', '.join(MODES)}, got {self.mode!r}")

    def infer(
        self,
        data: Type,
        pads: Type,
        constant_value: Type | None = None,
        axes: Type | None = None,
    ) -> Type:
        if data.shape is None:
            return data.with_shape(None)
        counts, where = known_dims(pads), known_ints(axes)
        if counts is None or (axes is not None and where is None):
            return data.with_shape(unnamed_dims(data.rank))
        chosen = range(data.rank) if where is None else data.axes(where)
        if len(counts) != 2 * len(chosen):
            raise InvalidOperand(f"expected {2 * len(chosen)} pads, got {len(counts)}")
        dims: list[Dim] = list(data.dims)
        for position, axis in enumerate(chosen):
            dims[axis] = dims[axis] + counts[position] + counts[position + len(chosen)]
        return data.with_shape(dims)

    def lower(
        self, data: Value, pads: Value, constant_value: Value = None, axes: Value = None
    ) -> Value:
        counts, where = ints_of(pads), ints_of(axes)
        args: list[Any] = [data, pads if counts is None else counts]
        if axes is not None:
            chosen = axes if where is None else where
            args += [0 if constant_value is None else constant_value, chosen]
        elif constant_value is not None and self.mode == "constant":
            args.append(constant_value)
        if self.mode == "constant":
            return ops.pad(*args)
        return ops.pad(*args, mode=self.mode)

    def stateless_layer(
        self,
        x: Type,
        pads: Type,
        constant_value: Type | None = None,
        axes: Type | None = None,
    ) -> Layer | None:
        widths = _spatial_widths(x, pads, axes)
        if not widths:
            return None
        rank = len(widths) // 2
        sides = (widths[0] if len(set(widths)) == 1 else widths,)
        if self.mode != "constant":
            return Layer(f"{_WORDS[self.mode]}Pad{rank}d", sides, {}, {})
        value = 0 if constant_value is None else constant_value.known
        if value is None:
            return None
        if not np.any(value):
            return Layer(f"ZeroPad{rank}d", sides, {}, {})
        return Layer(f"ConstantPad{rank}d", (*sides, np.ravel(value)[0].item()), {}, {})


def _spatial_widths(x: Type, pads: Type, axes: Type | None) -> tuple[int, ...]:
    """Return what is added before and after each spatial axis, the last axis first.

    Empty if a width is unknown or negative, if other axes are padded, or if no module
    has that rank.
    """
    counts, chosen = known_ints(pads), known_ints(axes)
    if counts is None or (axes is not None and chosen is None):
        return ()
    if x.shape is None or not 3 <= x.rank <= 5 or not dtypes.is_float(x.dtype):
        return ()
    order = range(x.rank) if chosen is None else x.axes(chosen)
    before = dict(zip(order, counts, strict=False))
    after = dict(zip(order, counts[len(order) :], strict=False))
    if any(side.get(axis) for side in (before, after) for axis in (0, 1)):
        return ()
    widths = [
        side.get(axis, 0)
        for axis in reversed(range(2, x.rank))
        for side in (before, after)
    ]
    return tuple(widths) if min(widths) >= 0 else ()


@Pad.upgrade(1, 2)
def pads_attribute(draft: Draft) -> Draft:
    """Upgrade: before 11, pads and value were attributes.

    In version 1 the pads were called paddings.
    """
    if "paddings" in draft.attrs:
        draft = draft.with_attrs("paddings", pads=draft.attrs["paddings"])
    draft = draft.attr_to_input("pads", 1)
    value = draft.attrs.get("value", 0.0)
    draft = draft.with_attrs("value")
    if draft.attrs.get("mode", "constant") != "constant" or value == 0.0:
        return draft
    dtype = draft.type(0).dtype
    if not dtypes.is_float(dtype):
        raise InvalidOperand(f"expected floats to pad, got {draft.type(0).name}")
    return draft.with_input(2, draft.constant("value", np.array(value, dtype)))

"""Casts and copies; copies return their operand."""

from typing import Any

from burn.dtypes import is_float
from burn_import.frontends.torch_export.aten.math.logic import is_nonzero
from burn_import.frontends.torch_export.builder import BOOL, Builder, Operand, Value
from burn_import.frontends.torch_export.registry import rule


@rule(
    "aten.to.dtype",
    "aten.to.dtype_layout",
    "aten.to.device",
    "aten.to.other",
    "aten.type_as.default",
    "aten._autocast_to_reduced_precision.default",
    "aten._autocast_to_full_precision.default",
    is_alias=True,
)
@rule("aten._to_copy.default", "prims.convert_element_type.default")
def to(
    g: Builder,
    self: Value,
    dtype: Any = None,
    other: Any = None,
    cuda_enabled: Any = None,
    cpu_enabled: Any = None,
    cuda_dtype: Any = None,
    cpu_dtype: Any = None,
) -> Value:
    """Return ``self`` in the dtype of the result, for all forms of the call."""
    if self.dtype == g.dtype:
        return self
    return is_nonzero(g, self) if g.dtype == BOOL else g.cast(self)


@rule("aten.clone.default", "aten.lift_fresh_copy.default", "aten.alias_copy.default")
@rule("aten.contiguous.default", is_alias=True)
@rule(
    "aten.alias.default",
    "aten.lift_fresh.default",
    "aten.resolve_conj.default",
    "aten.resolve_neg.default",
    "aten.real.default",
    "aten.conj.default",
    "aten.conj_physical.default",
    "aten.cpu.default",
    views=True,
)
def same(g: Builder, self: Value) -> Value:
    return self


@rule("aten.detach_copy.default")
@rule("aten.detach.default", views=True)
def detached(g: Builder, self: Value) -> Value:
    """Return ``self`` without gradient; integers and booleans have none anyway."""
    if not is_float(self.dtype) and self.dtype.kind != "c":
        return self
    return g.at(self.dtype).op("Detach", self, domain="burn")


@rule("aten.copy.default")
def copy(g: Builder, self: Value, src: Operand) -> Value:
    converted = g.cast(src)
    if converted.dims == self.dims:
        return converted
    return g.op("Expand", converted, g.op("Shape", self))

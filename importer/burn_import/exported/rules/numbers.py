"""Computed numbers of Python, and assertions, which compute nothing."""

from __future__ import annotations

from typing import Any

from burn_import.exported.builder import Builder, Operand, Value
from burn_import.exported.table import rule


@rule(
    "aten._assert_tensor_metadata.default",
    "aten._assert_scalar.default",
    "aten._assert_async.msg",
    "aten.sym_constrain_range.default",
    "aten.sym_constrain_range_for_size.default",
    "_operator.is_",
)
def nothing(g: Builder, *args: Any, **kwargs: Any) -> None:
    """A check of the exporter's; the shapes it checks are those of the model."""


@rule("torch.sym_float")
def sym_float(g: Builder, a: Operand) -> Value:
    return g.cast(a)

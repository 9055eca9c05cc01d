"""Inverses of views: what writes a changed view back to the tensor it is part of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from burn_import.frontends.torch_export.builder import Value
from burn_import.frontends.torch_export.registry import RULES

Arguments = Sequence[tuple[str, Any]]
#: A target in ATen and its arguments by name.
Call = tuple[str, Mapping[str, Any]]

#: Views of a part, and what puts a part in its place again.
_PARTS: Mapping[str, str] = {
    "aten.as_strided.default": "aten.as_strided_scatter.default",
    "aten.diagonal.default": "aten.diagonal_scatter.default",
    "aten.select.int": "aten.select_scatter.default",
    "aten.slice.Tensor": "aten.slice_scatter.default",
}
#: Views that undo themselves.
_TURNS = frozenset({"aten.alias.default", "aten.t.default", "aten.transpose.int"})
#: Views of the same elements in another shape; what may be a copy is none.
_SHAPES = frozenset({"aten.squeeze.dim", "aten.unsqueeze.default", "aten.view.default"})
#: What always gives a view, which shows each change of its source.
VIEWS = frozenset(
    {
        *(*_PARTS, *_TURNS, *_SHAPES),
        *("aten.detach.default", "aten.expand.default", "aten.permute.default"),
    }
)


def inverse_view(
    target: str, args: Mapping[str, Any], base: Value, new: Value
) -> Call | None:
    """Return the call that makes ``base`` what it is once its view is ``new``.

    ``target`` and ``args``, without the tensor, are the call that made the view. None
    if the inverse depends on extents, or if there is none: several views, or what may
    be a copy.
    """
    if target in ("aten.detach.default", "aten.alias.default"):
        return "aten.alias.default", {"self": new}
    if target in _PARTS:
        return _PARTS[target], {"self": base, "src": new, **args}
    if target in _TURNS:
        return target, {"self": new, **args}
    if target == "aten.permute.default":
        order = [new.axis(dim) for dim in args["dims"]]
        dims = [order.index(axis) for axis in range(len(order))]
        return target, {"self": new, "dims": dims}
    return None


def written_back(target: str, args: Arguments, base: Value, new: Value) -> Call | None:
    """Return the inverse of a view in a program whose extents are fixed.

    A reshape has one as well: the extents of ``base`` are known.
    """
    if RULES[target].is_alias:
        return "aten.alias.default", {"self": new}
    fixed = base.dims is not None and all(isinstance(d, int) for d in base.dims)
    if target in _SHAPES and fixed:
        return "aten.view.default", {"self": new, "size": list(base.dims or ())}
    return inverse_view(target, dict(args), base, new)

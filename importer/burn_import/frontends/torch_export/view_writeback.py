"""Inverses of views, which write a changed view back to its source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from burn_import.frontends.torch_export.builder import Value
from burn_import.frontends.torch_export.registry import RULES

Arguments = Sequence[tuple[str, Any]]
#: An ATen target and its arguments by name.
Call = tuple[str, Mapping[str, Any]]

#: Views of a part, and the operators that write the part back.
_PARTS: Mapping[str, str] = {
    "aten.as_strided.default": "aten.as_strided_scatter.default",
    "aten.diagonal.default": "aten.diagonal_scatter.default",
    "aten.select.int": "aten.select_scatter.default",
    "aten.slice.Tensor": "aten.slice_scatter.default",
}
#: Involutive views, which are their own inverse.
_TRANSPOSES = frozenset({"aten.alias.default", "aten.t.default", "aten.transpose.int"})
#: Views of the same elements in another shape that never copy.
_SHAPES = frozenset({"aten.squeeze.dim", "aten.unsqueeze.default", "aten.view.default"})
#: Operators that always return a view, which reflects changes of its source.
VIEWS = frozenset(
    {
        *(*_PARTS, *_TRANSPOSES, *_SHAPES),
        *("aten.detach.default", "aten.expand.default", "aten.permute.default"),
    }
)


def inverse_view(
    target: str, args: Mapping[str, Any], base: Value, new: Value
) -> Call | None:
    """Return the call that computes the source from its changed view ``new``.

    ``target`` and ``args``, without the tensor, are the call that made the view,
        ``base``
    is the source before. None if the inverse depends on extents, or if there is none:
    several views, or a possible copy.
    """
    if target in ("aten.detach.default", "aten.alias.default"):
        return "aten.alias.default", {"self": new}
    if target in _PARTS:
        return _PARTS[target], {"self": base, "src": new, **args}
    if target in _TRANSPOSES:
        return target, {"self": new, **args}
    if target == "aten.permute.default":
        order = [new.axis(dim) for dim in args["dims"]]
        dims = [order.index(axis) for axis in range(len(order))]
        return target, {"self": new, "dims": dims}
    return None


def written_back(target: str, args: Arguments, base: Value, new: Value) -> Call | None:
    """Return the inverse of a view, including reshapes if extents are fixed."""
    if RULES[target].is_alias:
        return "aten.alias.default", {"self": new}
    fixed = base.dims is not None and all(isinstance(d, int) for d in base.dims)
    if target in _SHAPES and fixed:
        return "aten.view.default", {"self": new, "size": list(base.dims or ())}
    return inverse_view(target, dict(args), base, new)

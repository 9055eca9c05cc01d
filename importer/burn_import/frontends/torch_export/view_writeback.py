"""What a change in place of a view makes of the tensor that it is a view of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from burn_import.frontends.torch_export.builder import Value
from burn_import.frontends.torch_export.registry import RULES

Arguments = Sequence[tuple[str, Any]]

#: Views of a part, and what puts a part in its place again.
_PARTS: Mapping[str, str] = {
    "aten.as_strided.default": "aten.as_strided_scatter.default",
    "aten.diagonal.default": "aten.diagonal_scatter.default",
    "aten.select.int": "aten.select_scatter.default",
    "aten.slice.Tensor": "aten.slice_scatter.default",
}
#: Views that undo themselves.
_TURNS = frozenset(
    {
        "aten.alias.default",
        "aten.t.default",
        "aten.transpose.int",
    }
)
#: Views of the same elements in another shape; what may be a copy is none.
_SHAPES = frozenset({"aten.squeeze.dim", "aten.unsqueeze.default", "aten.view.default"})


def written_back(
    target: str, args: Arguments, base: Value, new: Value
) -> tuple[str, Arguments] | None:
    """The call that makes ``base`` what it is once its view is ``new``.

    ``target`` and ``args``, without the first, are the call that made the view. None if
    there is no such call: several views, or what may be a copy.
    """
    if RULES[target].is_alias or target == "aten.detach.default":
        return "aten.alias.default", [("self", new)]
    if target in _PARTS:
        return _PARTS[target], [("self", base), ("src", new), *args]
    if target in _TURNS:
        return target, [("self", new), *args]
    if target == "aten.permute.default":
        order = [new.axis(dim) for dim in dict(args)["dims"]]
        dims = [order.index(axis) for axis in range(len(order))]
        return target, [("self", new), ("dims", dims)]
    fixed = base.dims is not None and all(isinstance(d, int) for d in base.dims)
    if target in _SHAPES and fixed:
        return "aten.view.default", [("self", new), ("size", list(base.dims or ()))]
    return None

"""Views: what a change of one in place makes of the tensor that it is a view of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from burn_import.frontends.torch_export.aten import RULES
from burn_import.frontends.torch_export.builder import Value
from burn_import.frontends.torchscript.node_writer import Place
from burn_import.frontends.torchscript.values import Held

if TYPE_CHECKING:
    from burn_import.frontends.torchscript.operators import Operators

Arguments = Mapping[str, Any]
#: A rule, and its arguments besides the tensors, for arguments of the view and its
#: source; None where the source cannot be had from the view.
Recipe = Callable[["Operators", Place, Arguments, Held], tuple[str, Arguments] | None]


def copies(name: str, source: Held) -> bool:
    """Whether an operator that may give a view gives a copy."""
    return name.startswith("unsafe_") or (name == "contiguous" and not source.in_order)


def stays_in_order(name: str, args: Arguments, source: Held) -> bool:
    """Whether the elements of a view lie in memory as they are counted."""
    along = name in ("select", "slice", "narrow") and args.get("dim", 0) == 0
    plain = along and args.get("step", 1) == 1
    return source.in_order and (plain or name in _ORDERED)


def undoing(
    machine: Operators, name: str, args: Arguments, source: Held, place: Place
) -> Callable[[Value, Value], Value] | None:
    """How to get the source of a view back from what it is and a changed view.

    None where it is not known that the view shares the memory of its source, or how.
    """
    recipe = _RECIPES.get(name)
    if recipe is None or (name in _ORDERED and not source.in_order):
        return None

    def undo(before: Value, changed: Value) -> Value:
        found = recipe(machine, place, args, source)
        assert found is not None
        target, rest = found
        is_part = "scatter" in target
        parts = {"self": before, "src": changed} if is_part else {"self": changed}
        results = [Value("", before.dtype, before.dims)]
        made = machine.writer.apply(RULES[target], place, results, {**parts, **rest})
        assert made[0] is not None
        return made[0]

    return None if recipe(machine, place, args, source) is None else undo


def _part(target: str, *names: str) -> Recipe:
    def recipe(
        machine: Operators, place: Place, args: Arguments, source: Held
    ) -> tuple[str, Arguments] | None:
        return target, {key: args[key] for key in names if key in args}

    return recipe


def _unsqueeze(
    machine: Operators, place: Place, args: Arguments, source: Held
) -> tuple[str, Arguments] | None:
    rank = source.current.rank + 1
    return "aten.squeeze.dim", {"dim": args["dim"] % rank}


def _squeeze(
    machine: Operators, place: Place, args: Arguments, source: Held
) -> tuple[str, Arguments] | None:
    if not isinstance(args.get("dim"), int):
        return None
    return "aten.unsqueeze.default", {"dim": source.current.axis(args["dim"])}


def _transpose(
    machine: Operators, place: Place, args: Arguments, source: Held
) -> tuple[str, Arguments] | None:
    return "aten.transpose.int", {"dim0": args["dim0"], "dim1": args["dim1"]}


def _permute(
    machine: Operators, place: Place, args: Arguments, source: Held
) -> tuple[str, Arguments] | None:
    order = [source.current.axis(dim) for dim in args["dims"]]
    back = [order.index(axis) for axis in range(len(order))]
    return "aten.permute.default", {"dims": back}


def _reshape(
    machine: Operators, place: Place, args: Arguments, source: Held
) -> tuple[str, Arguments] | None:
    shape = machine.size(place, Held(source.current))
    return "aten.view.default", {"size": shape}


def _narrow(
    machine: Operators, place: Place, args: Arguments, source: Held
) -> tuple[str, Arguments] | None:
    start, length = args["start"], args["length"]
    if not isinstance(start, int) or not isinstance(length, int) or start < 0:
        return None
    ends = {"dim": args["dim"], "start": start, "end": start + length}
    return "aten.slice_scatter.default", ends


_ORDERED = frozenset({"view", "reshape", "flatten", "unflatten", "view_as"}) | {
    *("unsqueeze", "squeeze", "detach", "alias", "reshape_as"),
}
_RECIPES: Mapping[str, Recipe] = {
    "diagonal": _part("aten.diagonal_scatter.default", "offset", "dim1", "dim2"),
    "select": _part("aten.select_scatter.default", "dim", "index"),
    "slice": _part("aten.slice_scatter.default", "dim", "start", "end", "step"),
    "narrow": _narrow,
    "unsqueeze": _unsqueeze,
    "squeeze": _squeeze,
    "transpose": _transpose,
    "detach": lambda *given: ("aten.alias.default", {}),
    "t": lambda *given: ("aten.t.default", {}),
    "permute": _permute,
    **dict.fromkeys(("view", "reshape", "flatten", "unflatten", "view_as"), _reshape),
    "reshape_as": _reshape,
}

"""Lists of tensors whose length is known only when the model runs.

A loop that appends a tensor in each round gives all of them as one, which has an axis
for the rounds. Such a list can be stacked and joined, counted, and grow further.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from burn_import.frontends.torchscript.calls import OperatorCalls
from burn_import.frontends.torchscript.values import Held, Rows, Thing
from burn_ir import UnsupportedModel
from burn_ir.graph_builder import Origin


def has_rows(thing: Thing) -> bool:
    """Return whether a thing is a list of which the length is not known."""
    return isinstance(thing, list) and any(isinstance(x, Rows) for x in thing)


def called_on_rows(
    operators: OperatorCalls, name: str, args: list[Thing], origin: Origin
) -> Thing:
    """Return the result of ``torch.name`` of such a list.

    Raises:
        UnsupportedModel: the length has to be known for that.
    """
    if name not in _FUNCTIONS:
        raise UnsupportedModel(
            f"torch.{name} of a list whose length is known only when the model runs"
        )
    return _FUNCTIONS[name](operators, origin, *args)


def _stack(
    operators: OperatorCalls, origin: Origin, items: list[Thing], dim: int = 0
) -> Thing:
    parts = [
        (
            item.joined
            if isinstance(item, Rows)
            else operators.operator("unsqueeze", [item, 0], {}, origin)
        )
        for item in items
    ]
    joined = parts[0]
    if len(parts) > 1:
        joined = operators.operator("cat", [parts, 0], {}, origin)
    if dim == 0:
        return joined
    return operators.operator("movedim", [joined, 0, dim], {}, origin)


def _cat(
    operators: OperatorCalls, origin: Origin, items: list[Thing], dim: int = 0
) -> Thing:
    def whole(rows: Held) -> Thing:
        """The rows one behind the other along the axis."""
        axis = dim % (rows.value.rank - 1)
        moved = operators.operator("movedim", [rows, 0, axis], {}, origin)
        return operators.operator("flatten", [moved, axis, axis + 1], {}, origin)

    parts = [whole(item.joined) if isinstance(item, Rows) else item for item in items]
    return (
        parts[0] if len(parts) == 1 else operators.call("cat", [parts, dim], {}, origin)
    )


def _length(operators: OperatorCalls, origin: Origin, items: list[Thing]) -> Thing:
    total: Thing = sum(not isinstance(item, Rows) for item in items)
    for item in items:
        if isinstance(item, Rows):
            count = operators.size(origin, item.joined, 0)
            total = operators.call("add", [total, count], {}, origin)
    return total


def _append(
    operators: OperatorCalls, origin: Origin, items: list[Thing], item: Thing
) -> Thing:
    items.append(item)
    return items


_FUNCTIONS: Mapping[str, Callable[..., Thing]] = {
    "stack": _stack,
    "cat": _cat,
    "len": _length,
    "append": _append,
}

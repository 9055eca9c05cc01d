"""Lists of tensors whose length is known only at run time.

A loop that appends a tensor in each iteration returns all of them as one stacked
tensor. Such a list can be stacked, concatenated, counted, and extended.
"""

from collections.abc import Callable, Mapping

from burn_import.frontends.torch_export.builder import Value
from burn_import.frontends.torchscript.operators.builtins import OperatorCalls
from burn_import.frontends.torchscript.values import (
    AppendedItems,
    PyValue,
    Rows,
    TensorRef,
)
from burn_ir import UnsupportedModel
from burn_ir.graph_builder import Origin


def has_rows(obj: PyValue) -> bool:
    """Return whether an object is a list of unknown length."""
    return isinstance(obj, list) and any(
        isinstance(x, Rows | AppendedItems) for x in obj
    )


def called_on_rows(
    operators: OperatorCalls, name: str, args: list[PyValue], origin: Origin
) -> PyValue:
    """Return the result of ``torch.name`` of such a list.

    Raises:
        UnsupportedModel: the function needs a known length.
    """
    if name in ("stack", "cat") and any(isinstance(x, AppendedItems) for x in args[0]):
        raise UnsupportedModel(
            f"torch.{name} of a list within the loop that it grows in"
        )
    if name not in _FUNCTIONS:
        raise UnsupportedModel(
            f"torch.{name} of a list whose length is known only at run time"
        )
    return _FUNCTIONS[name](operators, origin, *args)


def _stack(
    operators: OperatorCalls, origin: Origin, items: list[PyValue], dim: int = 0
) -> PyValue:
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
    operators: OperatorCalls, origin: Origin, items: list[PyValue], dim: int = 0
) -> PyValue:
    def whole(rows: TensorRef) -> PyValue:
        """Return the rows concatenated along the axis."""
        axis = dim % (rows.value.rank - 1)
        moved = operators.operator("movedim", [rows, 0, axis], {}, origin)
        return operators.operator("flatten", [moved, axis, axis + 1], {}, origin)

    parts = [whole(item.joined) if isinstance(item, Rows) else item for item in items]
    return (
        parts[0] if len(parts) == 1 else operators.call("cat", [parts, dim], {}, origin)
    )


def _length(operators: OperatorCalls, origin: Origin, items: list[PyValue]) -> PyValue:
    total: PyValue = sum(not isinstance(item, Rows | AppendedItems) for item in items)
    for item in items:
        if isinstance(item, Rows):
            count = operators.size(origin, item.joined, 0)
        elif isinstance(item, AppendedItems):
            count = operators.call("mul", [item.number, item.each], {}, origin)
        else:
            continue
        total = operators.call("add", [total, count], {}, origin)
    return total


def item_of(
    operators: OperatorCalls, items: list[PyValue], key: PyValue, origin: Origin
) -> PyValue:
    """Return an item of a list whose length, or whose index, is unknown.

    Raises:
        UnsupportedModel: the candidates differ in shape or dtype.
    """
    if isinstance(key, int):
        candidate = _known_item(operators, items, key, origin)
        if candidate is not None:
            return candidate
    if any(isinstance(item, AppendedItems) for item in items):
        raise UnsupportedModel(
            "an item of a list is read within the loop that appends to it"
        )
    if not all(
        isinstance(item, Rows | TensorRef | Value | int | float) for item in items
    ):
        raise UnsupportedModel("an item is known only at run time")
    stacked = _stack(operators, origin, [_as_part(operators, x, origin) for x in items])
    item = operators.operator("select", [stacked, 0, key], {}, origin)
    if any(
        not isinstance(x, Rows | TensorRef) or getattr(x, "is_number", 0) for x in items
    ):
        return operators.as_number(item, origin)
    if any(isinstance(x, TensorRef) for x in items):
        item.memory.constant = (
            "a change in place of an item that is known only at run time"
        )
    return item


def _as_part(operators: OperatorCalls, item: PyValue, origin: Origin) -> PyValue:
    return item if isinstance(item, Rows) else operators.tensor(item, origin)


def _known_item(
    operators: OperatorCalls, items: list[PyValue], key: int, origin: Origin
) -> PyValue:
    """Return an item that can be located from one end, else None."""
    places = range(key + 1) if key >= 0 else range(-1, key - 1, -1)
    for index in places:
        part = items[index] if -len(items) <= index < len(items) else None
        if part is None or isinstance(part, Rows):
            return None
        if isinstance(part, AppendedItems):
            if index != key or key >= 0 or part.last is None:
                return None
            part.is_read = True
            return part.last
    return items[key]


def _append(
    operators: OperatorCalls, origin: Origin, items: list[PyValue], item: PyValue
) -> PyValue:
    items.append(item)
    return items


_FUNCTIONS: Mapping[str, Callable[..., PyValue]] = {
    "stack": _stack,
    "cat": _cat,
    "len": _length,
    "append": _append,
}

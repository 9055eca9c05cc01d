"""Lists of tensors whose length is known only at run time.

A loop that appends a tensor in each iteration returns all of them as one stacked
tensor, and a tensor that is unbound along an open extent is such a list already. It can
be stacked, concatenated, counted, extended, reversed and sliced.
"""

from collections.abc import Callable, Mapping

from burn_import.frontends.torch_export.builder import (
    FLOAT32,
    FLOAT64,
    Value,
    kind_of,
)
from burn_import.frontends.torchscript.operators.builtins import OperatorCalls
from burn_import.frontends.torchscript.operators.dtypes import scalar_number
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


def is_open_list_call(name: str, args: list[PyValue], count: int | None) -> bool:
    """Return whether a call reads a list of unknown length, or returns one.

    ``count`` is the number of names that the result is unpacked to.
    """
    first, *rest = args or [None]
    if name not in ("unbind", "unbind_copy"):
        return has_rows(first)
    if count is not None or not isinstance(first, TensorRef):
        return False
    dims = first.value.dims
    return dims is not None and not isinstance(dims[rest[0] if rest else 0], int)


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


def _joined(operators: OperatorCalls, origin: Origin, items: list[PyValue]) -> PyValue:
    """Return numbers as a tensor, of PyTorch's default dtype for them."""
    stacked = _stack(operators, origin, [_as_part(operators, x, origin) for x in items])
    if kind_of(stacked.value.dtype) == kind_of(FLOAT64):
        return operators.operator("to", [stacked, scalar_number(FLOAT32)], {}, origin)
    return stacked


def _unbind(
    operators: OperatorCalls, origin: Origin, x: TensorRef, dim: int = 0
) -> list[PyValue]:
    return [Rows(operators.operator("movedim", [x, dim, 0], {}, origin))]


def _reversed(
    operators: OperatorCalls, origin: Origin, items: list[PyValue]
) -> list[PyValue]:
    return [_reversed_part(operators, origin, part) for part in reversed(items)]


def _reversed_part(operators: OperatorCalls, origin: Origin, part: PyValue) -> PyValue:
    if not isinstance(part, Rows):
        return part
    flipped = operators.operator("flip", [part.joined, [0]], {}, origin)
    flipped.memory.constant = "a change in place of an item of a reversed list"
    return Rows(flipped, part.is_number)


def _reverse(operators: OperatorCalls, origin: Origin, items: list[PyValue]) -> None:
    items[:] = _reversed(operators, origin, items)


def _slice(
    operators: OperatorCalls,
    origin: Origin,
    items: list[PyValue],
    start: PyValue = None,
    end: PyValue = None,
    step: int = 1,
) -> list[PyValue]:
    if step == -1 and start is None and end is None:
        return _reversed(operators, origin, items)
    if step < 1 or len(items) > 1 or not isinstance(items[0], Rows):
        raise UnsupportedModel(
            "a slice of a list whose length is known only at run time"
        )
    (rows,) = items
    args = [rows.joined, 0, start, end, step]
    return [Rows(operators.operator("slice", args, {}, origin), rows.is_number)]


def _extend(
    operators: OperatorCalls,
    origin: Origin,
    items: list[PyValue],
    more: list[PyValue],
) -> list[PyValue]:
    items.extend(more)
    return items


_FUNCTIONS: Mapping[str, Callable[..., PyValue]] = {
    "stack": _stack,
    "cat": _cat,
    "len": _length,
    "append": _append,
    "add_": _extend,
    "extend": _extend,
    "add": lambda operators, origin, items, more: [*items, *more],
    "copy": lambda operators, origin, items: [*items],
    "list": lambda operators, origin, items: [*items],
    "reverse": _reverse,
    "slice": _slice,
    "tensor": _joined,
    "unbind": _unbind,
    "unbind_copy": _unbind,
}

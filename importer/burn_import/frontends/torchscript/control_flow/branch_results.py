"""Merging of the values after two blocks, one of which runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from burn_import.frontends.torch_export.builder import (
    BOOL,
    FLOAT64,
    INT64,
    Value,
    kind_of,
)
from burn_import.frontends.torch_export.complex_as_real import is_complex
from burn_import.frontends.torchscript.expressions import Expressions
from burn_import.frontends.torchscript.node_writer import NodeWriter
from burn_import.frontends.torchscript.values import (
    UNINITIALIZED,
    UNKNOWN,
    PyValue,
    TensorRef,
    UnknownText,
    Without,
    is_unknown,
    rebuilt,
)
from burn_ir import UnsupportedModel
from burn_ir.graph_builder import Origin


def like(obj: PyValue, writer: NodeWriter, others: Iterable[PyValue]) -> PyValue:
    """Return a placeholder of the structure and type of ``obj``, valid in ``writer``.

    A tensor becomes one of ``others`` with the same extents; UNINITIALIZED if none has
    them.
    """
    if isinstance(obj, list | tuple):
        others = list(others)
        return rebuilt(obj, (like(item, writer, others) for item in obj))
    value = obj.value if isinstance(obj, TensorRef) else obj
    if not isinstance(value, Value) or writer.has(value):
        return obj
    if value.is_number:
        return {0: False, 1: 0}.get(kind_of(value.dtype), 0.0)
    kind = value.dtype, value.dims
    for other in others:
        if (
            isinstance(other, TensorRef)
            and not other.stale
            and writer.has(other.current)
        ):
            candidate = other.current
            if (candidate.dtype, candidate.dims) == kind:
                return replace(candidate, is_number=False)
    return UNINITIALIZED


_SCALARS = (bool, int, float)
Container = list[Any] | dict[Any, Any]


@dataclass(eq=False)
class Side:
    """Result of a block: its nodes, names, and tensors changed in place.

    ``result`` is the value returned by a side that continues to the end of the
    function, and ``contents`` are changed lists and dicts, with their new contents.
    """

    writer: NodeWriter
    names: dict[str, PyValue]
    changed: dict[TensorRef, Value] = field(default_factory=dict)
    result: PyValue = None
    contents: list[tuple[Container, Container]] = field(default_factory=list)


def fill(container: Container, contents: Container) -> None:
    """Replace the contents of a list or dict."""
    container.clear()
    if isinstance(container, list):
        container.extend(contents)
    else:
        container.update(contents)


def refuse(container: Container) -> UnsupportedModel:
    """Mark a list's contents as unknown; return the error about its change."""
    fill(container, [UNKNOWN] if isinstance(container, list) else {})
    return UnsupportedModel(
        "a list changes in a branch or loop that is decided at run time"
    )


class Join:
    """Merge of two blocks: each differing value becomes one result (a phi)."""

    def __init__(
        self, machine: Expressions, sides: Sequence[Side], origin: Origin
    ) -> None:
        self.machine = machine
        self.sides = sides
        self.origin = origin
        self.outputs: tuple[list[Value], list[Value]] = ([], [])
        self.numbers: list[bool] = []

    def pending(
        self, pairs: Mapping[str, tuple[PyValue, PyValue]]
    ) -> dict[str, PyValue]:
        """Return the merged value of each pair, with slots for results."""
        return {name: self.pair(a, b) for name, (a, b) in pairs.items()}

    def write(
        self, pending: Mapping[str, PyValue], condition: Value
    ) -> dict[str, PyValue]:
        """Write the branch; return the pending values with its results."""
        first, second = self.sides
        contents = self.contents()
        slots = {
            tensor: self.leaf(tensor, tensor)
            for tensor in {**first.changed, **second.changed}
            if self.machine.writer.has(tensor.current)
        }
        results = self.node(condition)
        for tensor, slot in slots.items():
            self.machine.journal.append((tensor, tensor.current))
            tensor.current = results[slot.index].current
        for container, joined in contents:
            fill(container, _with_results(joined, results))
        return {name: _with_results(obj, results) for name, obj in pending.items()}

    def contents(self) -> list[tuple[Container, Container]]:
        """Return the lists and dicts that a block changed, with merged contents.

        Raises:
            UnsupportedModel: the blocks leave different lengths or keys.
        """
        joined = []
        for container, a, b in self.changed_containers():
            if not _have_equal_keys(a, b):
                raise refuse(container)
            joined.append((container, self.pair(a, b)))
        return joined

    def changed_containers(self) -> Iterator[tuple[Container, Container, Container]]:
        """Yield each list or dict that a block changes, and its contents after both."""
        sides = [{id(old): (old, new) for old, new in s.contents} for s in self.sides]
        for key, (container, _) in {**sides[0], **sides[1]}.items():
            unchanged = (container, container.copy())
            a, b = (side.get(key, unchanged)[1] for side in sides)
            yield container, a, b

    def has_equal_containers(self) -> bool:
        """Return whether lists have equal lengths, and dicts equal keys, after both."""
        return all(_have_equal_keys(a, b) for _, a, b in self.changed_containers())

    def pair(self, a: PyValue, b: PyValue) -> PyValue:
        """Return the value of a name after both blocks, a slot where they differ."""
        if a is not b and (a is UNINITIALIZED or b is UNINITIALIZED):
            a, b = self.initialized(a, b)
        if a is b or (isinstance(a, UnknownText) and isinstance(b, UnknownText)):
            return a
        if is_unknown(a) or is_unknown(b):
            return UNKNOWN
        both = isinstance(a, list) and isinstance(b, list)
        both = both or (isinstance(a, tuple) and isinstance(b, tuple))
        if both and len(a) == len(b):
            return rebuilt(a, (self.pair(x, y) for x, y in zip(a, b, strict=True)))
        if isinstance(a, dict) and isinstance(b, dict) and list(a) == list(b):
            return {key: self.pair(a[key], b[key]) for key in a}
        same = type(a) is type(b) and not isinstance(a, TensorRef | Value)
        if same and not isinstance(a, list | tuple | dict) and a == b:
            return a
        if is_plain(a) and is_plain(b):
            return self.leaf(a, b)
        return UNDECIDED

    def initialized(self, a: PyValue, b: PyValue) -> tuple[PyValue, PyValue]:
        """Return both values, with a placeholder for an uninitialized one."""
        block = self.sides[0 if a is UNINITIALIZED else 1]
        others = block.names.values()
        if a is UNINITIALIZED:
            return like(b, block.writer, others), b
        return a, like(a, block.writer, others)

    def leaf(self, a: PyValue, b: PyValue) -> Slot:
        """Return the slot of a result that is ``a`` or ``b``."""
        for outputs, side, obj in zip(self.outputs, self.sides, (a, b), strict=True):
            is_tensor = isinstance(obj, TensorRef)
            value = side.changed.get(obj, obj) if is_tensor else obj
            outputs.append(to_value(side.writer, value, self.origin))
        self.numbers.append(are_numbers(a, b))
        return Slot(len(self.numbers) - 1)

    def node(self, condition: Value) -> list[PyValue]:
        """Write the ``If`` node and return its results."""
        if not self.numbers:
            return []
        if any(
            is_complex(a) != is_complex(b) for a, b in zip(*self.outputs, strict=True)
        ):
            raise UnsupportedModel("a value is complex on one side of a branch only")
        bodies = [
            side.writer.body({}, [value.name for value in outputs])
            for side, outputs in zip(self.sides, self.outputs, strict=True)
        ]
        writer = self.machine.writer
        begin = len(writer.nodes.nodes)
        builder = writer.builder(self.origin, self.outputs[0])
        results = builder.many(
            "If",
            len(self.numbers),
            condition,
            then_branch=bodies[0],
            else_branch=bodies[1],
        )
        writer.finish(begin)
        return [
            as_py_value(writer.typed(replace(value, dtype=side.dtype)), is_number)
            for value, side, is_number in zip(
                results, self.outputs[0], self.numbers, strict=True
            )
        ]


#: In place of a value that no result of a branch stands for.
UNDECIDED = Without("value that differs between the two sides of a branch")


def is_undecided(obj: PyValue) -> bool:
    """Return whether an object is, or contains, a value that no result stands for."""
    if isinstance(obj, dict):
        return any(map(is_undecided, obj.values()))
    if isinstance(obj, list | tuple):
        return any(map(is_undecided, obj))
    return obj is UNDECIDED


def _have_equal_keys(a: Container, b: Container) -> bool:
    return len(a) == len(b) and not (isinstance(a, dict) and list(a) != list(b))


@dataclass(frozen=True)
class Slot:
    """The index of a result of a branch that is not written yet."""

    index: int


def _with_results(obj: PyValue, results: Sequence[PyValue]) -> PyValue:
    """Return ``obj`` with results in place of slots; the same object without slots."""
    if isinstance(obj, Slot):
        return results[obj.index]
    if not isinstance(obj, list | tuple | dict):
        return obj
    parts = obj.values() if isinstance(obj, dict) else obj
    filled = [_with_results(part, results) for part in parts]
    if all(new is old for new, old in zip(filled, parts, strict=True)):
        return obj
    if isinstance(obj, dict):
        return dict(zip(obj, filled, strict=True))
    return rebuilt(obj, filled)


def are_numbers(a: PyValue, b: PyValue) -> bool:
    return all(
        isinstance(x, _SCALARS) or (isinstance(x, Value) and x.is_number)
        for x in (a, b)
    )


def is_plain(obj: PyValue) -> bool:
    return isinstance(obj, TensorRef | Value | bool | int | float)


def as_py_value(value: Value, is_number: bool) -> PyValue:
    if is_number:
        return Value(value.name, value.dtype, value.dims, True)
    return TensorRef(value)


def to_value(
    writer: NodeWriter, obj: PyValue, origin: Origin, inside: bool = True
) -> Value:
    """Return an object as a value of the graph.

    With ``inside`` it is the result of a node, as the outputs of a body must be.
    """
    begin = len(writer.nodes.nodes)
    value = obj.value if isinstance(obj, TensorRef) else obj
    builder = writer.builder(origin, [value] if isinstance(value, Value) else [])
    if not isinstance(value, Value):
        kinds = {bool: BOOL, int: INT64, float: FLOAT64}
        dtype = kinds[type(value)]
        value = builder.constant(value, dtype)
        builder = writer.builder(origin, [value])
    result = builder.op("Identity", value) if inside else value
    writer.finish(begin)
    return writer.typed(result)

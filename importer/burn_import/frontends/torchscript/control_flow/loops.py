"""Loops whose trip count is known only at run time."""

import ast
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from burn.dtypes import DType
from burn_import.frontends.torch_export.builder import BOOL, FLOAT64, INT64, Value
from burn_import.frontends.torch_export.complex_as_real import stored_type
from burn_import.frontends.torchscript.control_flow.branch_results import (
    Side,
    are_numbers,
    as_py_value,
    like,
    to_value,
)
from burn_import.frontends.torchscript.control_flow.control import (
    appended_names,
    left_by,
    local_names,
    side_of,
)
from burn_import.frontends.torchscript.control_flow.loop_carried import (
    Carried,
    is_same,
    plain_parts,
)
from burn_import.frontends.torchscript.expressions import Expressions, Frame
from burn_import.frontends.torchscript.node_writer import NodeWriter
from burn_import.frontends.torchscript.values import (
    UNINITIALIZED,
    Memory,
    PyValue,
    Rows,
    TensorRef,
)
from burn_ir import UnsupportedModel
from burn_ir.containers import widen
from burn_ir.types import Type


def write_loop(
    machine: Expressions,
    node: ast.For | ast.While,
    frame: Frame,
    count: Value | int | None,
) -> None:
    """Write a loop of ``count`` iterations, or one that runs while its test holds."""
    _Loop(machine, node, frame, count).write()


class _Loop:
    """A loop: its carried values and its body."""

    def __init__(
        self,
        machine: Expressions,
        node: ast.For | ast.While,
        frame: Frame,
        count: Value | int | None,
    ) -> None:
        self.machine = machine
        self.node = node
        self.frame = frame
        self.count = count
        self.origin = frame.origin("loop")
        #: The dtypes of the results of an iteration, after the condition.
        self.dtypes: list[DType] = []
        #: The name of the iteration number.
        self.target = ""
        if isinstance(node, ast.For) and isinstance(node.target, ast.Name):
            self.target = node.target.id
        skipped = {self.target, *local_names(node, frame)}
        stored = (name for name in left_by(node, frame) if name not in skipped)
        names = [name for name in stored if name in frame.names]
        self.carried = Carried(frame.names, names)
        self.carried.expect_growth(appended_names(node.body))
        self.rest = [name for name in names if self.carried.parts[name] is None]
        #: The memory of the items that an iteration appends to each list.
        self.memories: list[Memory] = []

    def write(self) -> None:
        """Write the loop, and bind names to their values after it."""
        writer = self.machine.writer
        condition = self.condition(self.frame, writer)
        body, inputs, outputs = self.typed_body()
        first = self.first()
        begin = len(writer.nodes.nodes)
        builder = writer.builder(self.origin, first or [condition])
        trips = None if self.count is None else builder.ints(self.count)
        if trips is not None:
            trips = builder.op("Reshape", trips, builder.constant([]))
        values = builder.many(
            "Loop",
            len(outputs) - 1,
            trips,
            condition,
            *first,
            body=body.body(inputs, outputs),
        )
        writer.finish(begin)
        results = [
            writer.typed(replace(value, dtype=dtype))
            for value, dtype in zip(values, self.dtypes, strict=True)
        ]
        self.finish(results[: len(first)], results[len(first) :])

    def first(self) -> list[Value]:
        """Return the values that flow into the first iteration."""
        objs = self.carried.first()
        self.numbers = [are_numbers(obj, 0) for obj in objs]
        writer = self.machine.writer
        return [to_value(writer, obj, self.origin, inside=False) for obj in objs]

    def finish(self, last: list[Value], rows: list[Value]) -> None:
        """Bind names and lists to the results of the last iteration."""
        for cell in self.carried.cells:
            self.machine.journal += [(alias, alias.current) for alias in cell.holders]
        self.carried.fill(self.frame.names, map(as_py_value, last, self.numbers))
        parts = zip(self.carried.growths, rows, self.memories, strict=True)
        for growth, value, memory in parts:
            joined = TensorRef(replace(value, is_number=False), memory)
            if growth.each > 1:
                flat = self.machine.operator("flatten", [joined, 0, 1], {}, self.origin)
                joined = flat
            growth.items.append(Rows(joined, growth.holds_numbers))

    def condition(self, frame: Frame, writer: NodeWriter) -> Value:
        """Return the value that tells whether there is another iteration."""
        if isinstance(self.node, ast.For):
            return to_value(writer, True, self.origin)
        test = self.machine.evaluate(self.node.test, frame)
        if isinstance(test, TensorRef):
            test = self.machine.convert(bool, test, self.origin)
        if not isinstance(test, Value | bool):
            raise UnsupportedModel(
                "expected a bool as loop condition, got another value"
            )
        return to_value(writer, test, self.origin)

    def typed_body(self) -> tuple[NodeWriter, dict[str, Type], list[str]]:
        """Return the body, with input types widened until its results fit them."""
        types: list[Type] | None = None
        while True:
            if types is None:
                objs = self.carried.first()
                self.numbers = [are_numbers(obj, 0) for obj in objs]
                types = [_type_of(self.machine.writer, obj) for obj in objs]
            writer, inputs, results = self.interpret_iteration(types)
            if results is None:
                types = None
                continue
            wider = [
                widen(type_, Type(value.dtype, value.dims))
                for type_, value in zip(types, results[1:], strict=False)
            ]
            if all(new is old for new, old in zip(wider, types, strict=True)):
                self.dtypes = [value.dtype for value in results[1:]]
                return writer, inputs, [value.name for value in results]
            types = wider

    def interpret_iteration(
        self, types: Sequence[Type]
    ) -> tuple[NodeWriter, dict[str, Type], list[Value] | None]:
        """Interpret one iteration; None in place of results to try again."""
        machine, outer = self.machine, self.machine.writer
        machine.writer = outer.inner()
        try:
            number = machine.writer.input("round", Type(INT64, ()))
            going = machine.writer.input("going", Type(BOOL, ()))
            inputs = {number.name: Type(INT64, ()), going.name: Type(BOOL, ())}
            names = dict(self.frame.names)
            index = replace(number, is_number=True)
            if self.target:
                names[self.target] = index
            values = [
                machine.writer.input(name, type_)
                for name, type_ in zip(self.carried.hints(), types, strict=True)
            ]
            inputs |= {
                value.name: stored_type(type_.dtype, type_.shape)
                for value, type_ in zip(values, types, strict=True)
            }
            self.carried.enter(names, map(as_py_value, values, self.numbers), index)
            frame = Frame(self.frame.function, self.frame.module, names)
            return machine.writer, inputs, self.interpret_body(frame, outer)
        finally:
            machine.writer = outer
            self.carried.leave()

    def interpret_body(self, frame: Frame, outer: NodeWriter) -> list[Value] | None:
        """Return the results: the condition, carried values, and appended items.

        None if the iteration has effects that were not expected.
        """
        side = side_of(self.machine, self.node.body, frame, self.machine.writer)
        if side is None:
            raise UnsupportedModel("a loop raises an error in its body")
        if self.carry_uninitialized(side, outer):
            return None
        for name in self.rest:
            if not is_same(side.names[name], self.frame.names[name]):
                raise UnsupportedModel(
                    f"a loop that changes {name!r}, which is not a tensor"
                )
        if self.carried.learn(side, outer):
            return None
        carried, added = self.carried.after(side)
        self.carried.check([*carried, *chain(*added)])
        self.memories = [_memory(items[-1]) for items in added]
        frame.names.update(side.names)
        writer = self.machine.writer
        condition = self.condition(frame, writer)
        flowing = carried + [self.stacked_items(items) for items in added]
        return [condition, *(to_value(writer, obj, self.origin) for obj in flowing)]

    def carry_uninitialized(self, side: Side, outer: NodeWriter) -> bool:
        """Carry names without a value before the loop; return if there are any."""
        names, rest = self.frame.names, self.rest
        unset = [name for name in rest if names[name] is UNINITIALIZED]
        for name in unset:
            first = like(side.names[name], outer, names.values())
            parts = plain_parts(first)
            if first is not UNINITIALIZED and parts is not None:
                names[name], self.carried.parts[name] = first, parts
        self.rest = [name for name in rest if self.carried.parts[name] is None]
        return len(self.rest) < len(rest)

    def stacked_items(self, items: list[PyValue]) -> PyValue:
        """Return the items appended in one iteration, as one tensor."""
        if len(items) == 1:
            return items[0]
        tensors = [self.machine.tensor(item, self.origin) for item in items]
        return self.machine.operator("stack", [tensors], {}, self.origin)


def _type_of(writer: NodeWriter, obj: PyValue) -> Type:
    """Return the type of a tensor or number."""
    value = obj.value if isinstance(obj, TensorRef) else obj
    if not isinstance(value, Value):
        return Type({bool: BOOL, int: INT64, float: FLOAT64}[type(value)], ())
    typed = writer.typed(value)
    return Type(typed.dtype, typed.dims)


def _memory(item: PyValue) -> Memory:
    """Return the memory of an item, shared by the items of all iterations."""
    return item.memory if isinstance(item, TensorRef) else Memory()

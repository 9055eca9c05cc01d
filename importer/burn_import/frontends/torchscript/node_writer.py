"""Graph builder of the interpreter, which infers each node's type at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from itertools import zip_longest
from typing import Any

import numpy as np

from burn_import.frontends.torch_export.builder import OPSETS, Builder, Nodes, Value
from burn_import.frontends.torch_export.complex_as_real import (
    stored_array,
    stored_type,
    viewed_as,
)
from burn_import.frontends.torch_export.registry import Entry
from burn_import.frontends.torch_export.rule_calls import call_rule
from burn_import.frontends.torchscript.archive import Budget, Pool
from burn_ir import InvalidModel, RawGraph, Type
from burn_ir.build import IncrementalBuilder
from burn_ir.graph_builder import Origin
from burn_ir.types import Array


class NodeWriter:
    """Builder of nodes from operator calls. ``inner()`` returns one for a body."""

    def __init__(self, outer: NodeWriter | None = None) -> None:
        self.nodes: Nodes = outer.nodes.inner() if outer else Nodes()
        self.growing: IncrementalBuilder = (
            outer.growing.inner() if outer else IncrementalBuilder(OPSETS)
        )
        #: Extents computed in a module, by the value and the axis.
        self.extents: dict[tuple[str, int, tuple[str, ...]], Value] = {}
        self.budget: Budget = outer.budget if outer else Budget(0, 0, Pool())

    def inner(self) -> NodeWriter:
        """Return a writer of a body, which can read the values of this graph."""
        return NodeWriter(self)

    def input(self, name: str, type_: Type) -> Value:
        """Add a value that no node produces."""
        unique = self.nodes.unique(name)
        self.growing.declare(unique, stored_type(type_.dtype, type_.shape))
        return Value(unique, type_.dtype, type_.shape)

    def stored(self, name: str, array: Array, is_varying: bool = False) -> Value:
        """Add a tensor of the model's state.

        If it varies from call to call, no type is inferred from its contents.
        """
        stored = stored_array(array)
        unique = self.nodes.store(name, stored)
        if is_varying:
            self.growing.declare_outermost(unique, Type.of(stored).forget())
        else:
            self.growing.store(unique, stored)
        return Value(unique, array.dtype, array.shape)

    def builder(self, origin: Origin, results: Sequence[Value]) -> Builder:
        """Return the graph builder that a rule receives."""
        return Builder(self.nodes, origin.name, results, origin.scope, origin.classes)

    def apply(
        self,
        entry: Entry,
        origin: Origin,
        results: Sequence[Value],
        args: Mapping[str, Any],
    ) -> list[Value | None]:
        """Return the results of an operator call, with their types.

        Raises:
            UnsupportedModel: the rule does not support the arguments, or the program
                becomes too large.
            InvalidModel: the operands do not fit.
        """
        builder = self.builder(origin, results)
        begin = len(self.nodes.nodes)
        done = False
        try:
            output = call_rule(entry, builder, list(args.items()))
            outputs = output if isinstance(output, tuple | list) else (output,)
            values = [self._value(builder, x) for x in outputs]
            self.finish(begin)
            done = True
        finally:
            if not done:  # drop the nodes of the failed call, which have no types
                del self.nodes.nodes[begin:]
        last = results[-1:]
        kinds = zip_longest(values, results[: len(values)], fillvalue=(*last, None)[0])
        return [
            x and self.typed(replace(x, dtype=(kind or x).dtype)) for x, kind in kinds
        ]

    def finish(self, begin: int) -> None:
        """Infer the types of the nodes from index ``begin`` on."""
        added = self.nodes.nodes[begin:]
        self.budget.node(len(added))
        for node in added:
            self.growing.add(node)

    def _value(self, builder: Builder, x: Any) -> Value | None:
        if x is None or isinstance(x, Value):
            return x
        return builder.constant(x, builder.dtype)

    def typed(self, value: Value) -> Value:
        """Return a value with the type inferred from its node.

        A complex dtype is kept: the node computes pairs of real numbers.
        """
        type_ = self.growing.type(value.name)
        if not isinstance(type_, Type):
            raise InvalidModel("expected a tensor")
        typed = Value(value.name, type_.dtype, type_.shape, value.is_number)
        return viewed_as(typed, value)

    def same(self, value: Value, name: str) -> str:
        """Copy a value with an ``Identity`` node called ``name``, if that is free."""
        begin = len(self.nodes.nodes)
        copy = self.builder(Origin(name), [value]).op("Identity", value)
        self.finish(begin)
        return copy.name

    def has(self, value: Value) -> bool:
        """Return whether the nodes of this graph can read a value."""
        try:
            self.growing.type(value.name)
        except KeyError:
            return False
        return True

    def number(self, value: Value) -> Any:
        """Return the number that a scalar is known to be, else None."""
        contents = self.growing.type(value.name).known
        if contents is None or contents.size != 1 or contents.dtype == object:
            return None
        return contents.reshape(-1)[0].item()

    def body(self, inputs: Mapping[str, Type], outputs: Sequence[str]) -> RawGraph:
        """Return the graph of the nodes written so far."""
        return self.nodes.body(inputs, outputs)


def have_equal_nodes(a: Nodes, b: Nodes) -> bool:
    """Return whether two graphs have the same nodes and stored arrays."""
    return _is_equal(a.nodes, b.nodes) and _is_equal(a.constants, b.constants)


def _is_equal(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_is_equal(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(_is_equal, a, b))
    if isinstance(a, np.ndarray):
        is_alike = a.dtype == b.dtype and a.shape == b.shape
        return bool(is_alike and a.tobytes() == b.tobytes())
    if is_dataclass(a):
        return all(_is_equal(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    return bool(a == b)

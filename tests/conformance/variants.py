"""Rewrites of a case that keep what it means: other places for its operands, other
knowledge of its extents, other passes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import onnx
from onnx import helper, numpy_helper

from tests.conformance.expected_failures import VARIANT_FAILURES
from tests.conformance.suite import Case

#: How an operand is stored: it becomes part of the graph.
Store = Callable[[onnx.GraphProto, str, Any], None]


@dataclass(frozen=True)
class Variant:
    """One way to put every case.

    Inputs at position ``first`` and every ``step``-th after it, up to ``last``, are
    stored in the model by ``store``; ``symbolic`` gives every axis of the other inputs
    a symbol of its own. ``passes`` are the passes that run; with ``each_alone`` every
    pass runs by itself, where it finds something to change.
    """

    name: str
    passes: tuple[str, ...] | None = None
    store: Store | None = None
    first: int = 1
    step: int = 1
    last: int | None = None
    symbolic: bool = False
    each_alone: bool = False

    def differs(self, case: Case) -> bool:
        """Return whether the variant changes the case, which may be the plain one."""
        if self.store is not None:
            places = self.places(len(case.inputs))
            return any(_stored(case.inputs[i]) for i in places)
        return not self.symbolic or any(map(_has_axes, case.inputs))

    def places(self, count: int) -> range:
        """The positions of the inputs that are stored, of ``count``."""
        stop = count if self.last is None else min(count, self.last + 1)
        return range(self.first, stop, self.step)

    def arrange(self, graph: onnx.GraphProto, inputs: list[Any]) -> list[Any]:
        """``graph`` rewritten in place, and the inputs that it still has."""
        left: list[Any] = []
        places = self.places(len(inputs))
        for position, value in reversed(list(enumerate(inputs))):
            info = graph.input[position]
            if self.store and position in places and _is_stored(info):
                self.store(graph, info.name, value)
                del graph.input[position]
            else:
                left.insert(0, value)
        if self.symbolic:
            del graph.value_info[:]
            for number, info in enumerate(graph.input):
                _name_axes(info.type, f"n{number}")
            for info in graph.output:
                _forget_shape(info.type)
        return left


def _stored(declared: str) -> bool:
    """Return whether an input of the type called ``declared`` can be a stored array."""
    return "[" in declared and not declared.startswith("string")


def _has_axes(declared: str) -> bool:
    return "[" in declared and not declared.endswith("[0]")


def _is_stored(info: onnx.ValueInfoProto) -> bool:
    string = onnx.TensorProto.STRING
    return (
        info.type.HasField("tensor_type") and info.type.tensor_type.elem_type != string
    )


def _name_axes(declared: onnx.TypeProto, prefix: str) -> None:
    for axis, dim in enumerate(declared.tensor_type.shape.dim):
        dim.dim_param = f"{prefix}_{axis}"


def _forget_shape(declared: onnx.TypeProto) -> None:
    if declared.HasField("tensor_type"):
        declared.tensor_type.ClearField("shape")


def as_initializer(graph: onnx.GraphProto, name: str, value: Any) -> None:
    """Store ``value`` as weights are."""
    graph.initializer.append(numpy_helper.from_array(value, name))


def as_node(graph: onnx.GraphProto, name: str, value: Any) -> None:
    """Store ``value`` in a Constant."""
    tensor = numpy_helper.from_array(value)
    graph.node.insert(0, helper.make_node("Constant", [], [name], value=tensor))


def as_computed(graph: onnx.GraphProto, name: str, value: Any) -> None:
    """Store ``value`` so that it has to be computed from what is stored."""
    as_initializer(graph, f"{name}_stored", value)
    graph.node.insert(0, helper.make_node("Identity", [f"{name}_stored"], [name]))


def _variants() -> list[Variant]:
    plain = [
        Variant("plain"),
        Variant("no_passes", passes=()),
        Variant("each_pass", each_alone=True),
    ]
    stored = [
        Variant("stored", store=as_initializer),
        Variant("stored_no_passes", store=as_initializer, passes=()),
        Variant("stored_each_pass", store=as_initializer, each_alone=True),
        Variant("constant", store=as_node),
        Variant("computed", store=as_computed, passes=()),
        Variant("all_stored", store=as_initializer, first=0),
        Variant("first_stored", store=as_initializer, first=0, last=0),
        Variant("even_stored", store=as_initializer, first=0, step=2),
        Variant("odd_stored", store=as_initializer, step=2),
    ]
    symbolic = [
        Variant("symbolic", symbolic=True),
        Variant("symbolic_no_passes", symbolic=True, passes=()),
        Variant("symbolic_stored", symbolic=True, store=as_initializer),
    ]
    return plain + stored + symbolic


#: Every variant by name.
VARIANTS: Mapping[str, Variant] = {variant.name: variant for variant in _variants()}


def variants_of(case: Case, every: bool = False) -> Sequence[Variant]:
    """The variants that a case is run in, of which the first is the plain one.

    The expansion of an operator into a function has two others, which the hash of its
    name chooses, unless a table names it: hundreds of them have the same many nodes.
    With ``every`` it has all.
    """
    if case.kind == "light":
        return [VARIANTS["plain"]]
    plain, *others = (v for v in VARIANTS.values() if v.differs(case))
    is_named = any(case.name in table for table in VARIANT_FAILURES.values())
    if case.is_expanded and not is_named and not every:
        start = crc32(case.name.encode()) % len(others)
        others = [*others[start:], *others[:start]][:: -(-len(others) // 2)]
    return [plain, *others]

"""Deduplication of classes: modules with equal code share a class."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from burn.dtypes import is_integer
from burn_import.provenance.path_segments import Path
from burn_import.provenance.trainable import is_kept
from burn_import.rewriting.arrays import digest
from burn_import.structure.module_tree import (
    IfCall,
    Instruction,
    ModuleNode,
    State,
    SubmoduleCall,
    Tree,
    calls_of,
)
from burn_import.tracing.extents import Extents, bindable
from burn_import.tracing.identifiers import FORBIDDEN, Namespace
from burn_ir.dim import Poly
from burn_ir.graph import Graph
from burn_ir.infer import KNOWN_LIMIT
from burn_ir.op import Op
from burn_ir.types import Array

#: Maximum elements of stored arrays that may be emitted as literals.
_INLINE = 8


def share_classes(root: ModuleNode) -> Tree:
    """Return the tree of ``root``, with a class per distinct signature."""
    run = _Sharing()
    run.visit(root, root)
    names = Namespace(FORBIDDEN)
    names.unique(root.class_name)
    if len(root.outputs) > 1:
        names.unique(tuple_name(root.class_name))
    name_classes(run.classes[1:], run.holder, names)
    for part in run.parts:
        part.class_name = run.model[id(part)].class_name
    return Tree(root, run.classes, run.model, run.parts, names)


def tuple_name(class_name: str) -> str:
    """Return the class name of a model's result with several values."""
    return f"{class_name}Output"


def name_classes(
    classes: Sequence[ModuleNode], holder: Mapping[int, ModuleNode], names: Namespace
) -> None:
    """Assign unique names to classes, enclosing classes first.

    Exporter names are numbered. Names from attributes get the enclosing class's
    name as a prefix if that distinguishes some of them, or if the name is taken, such
    as that of the root class.
    """
    reserved = set(names.names)
    holder_names: dict[str, set[str]] = {}
    stems: dict[int, str] = {}
    for part in classes:
        holder_names.setdefault(part.class_name, set()).add(holder[id(part)].class_name)
    for part in classes:
        parent = holder[id(part)]
        stem = part.class_name
        if (
            not part.has_exporter_name
            and (len(holder_names[stem]) > 1 or stem in reserved)
            and parent.class_name != stem
        ):
            stem = stems.get(id(parent), parent.class_name) + stem
        stems[id(part)] = stem
    for part in classes:
        part.class_name = names.unique(stems[id(part)])


class _Sharing:
    def __init__(self) -> None:
        self.first: dict[Hashable, ModuleNode] = {}
        self.model: dict[int, ModuleNode] = {}
        self.classes: list[ModuleNode] = []
        self.parts: list[ModuleNode] = []
        #: The module that first calls each module, by identity.
        self.holder: dict[int, ModuleNode] = {}
        #: The representative of the modules at each path, which have the same code.
        self.at_path: dict[Path, ModuleNode] = {}

    def visit(self, part: ModuleNode, holder: ModuleNode) -> None:
        """Assign ``part`` the class of an equal earlier module, or a new class."""
        # No submodule of the root can equal the root.
        key = id(part) if part is holder else signature(part)
        model = self.at_path.get(part.path) or self.first.get(key)
        self.at_path[part.path] = self.model[id(part)] = model or part
        self.holder[id(part)] = self.model[id(holder)]
        self.parts.append(part)
        if model is None:
            self.first[key] = part
            if not part.sequence:
                self.classes.append(part)
        for call in (call for item in part.items for call in calls_of(item)):
            self.visit(call.part, part)


def signature(part: ModuleNode) -> Hashable:
    """Return a key that is equal for modules with equal code up to value names."""
    return _Signature(part).key()


class _Signature:
    """A module's code with numbered values and dimensions numbered by input."""

    def __init__(self, part: ModuleNode) -> None:
        self.part = part
        self.graph = graph = part.graph
        #: The types of the values of the module, and of the body that is visited.
        self.types = graph.types
        #: The numbers of iterations of loops, by symbol.
        self.counters: dict[Any, str] = {}
        self.numbers: dict[str, int] = {}
        self.weights = _layer_operands(part)
        self.extents = Extents(Namespace())
        for name in part.inputs:
            for dim in graph.types[name].shape or ():
                if isinstance(dim, Poly) and dim not in self.extents.locals:
                    self.extents.locals[dim] = f"d{len(self.extents.locals)}"

    def key(self) -> Hashable:
        read = {name for node in self.part.nodes() for name in node.inputs}
        inputs = tuple(
            (self.number(n), self.shape(n) if n in read else self.symbols(n))
            for n in self.part.inputs
        )
        items = tuple(self.item(item) for item in self.part.items)
        outputs = tuple(self.number(name) for name in self.part.outputs)
        states = tuple(map(self.state, self.part.states))
        attributes = tuple(
            (self.attribute(n), p) for n, p in self.part.lent_arrays.items()
        )
        return inputs, items, outputs, states, attributes, repr(self.part.kept)

    def state(self, state: State) -> Hashable:
        """Return the key of a state with its attribute."""
        attribute_path = self.part.reached.get(state.constant, "")
        values = self.number(state.before), self.number(state.after)
        return self.attribute(state.constant), attribute_path, values

    def attribute(self, constant: str) -> Hashable:
        return constant.rpartition(".")[2], _kind(self.graph.constants[constant])

    def number(self, name: str | None) -> Hashable:
        if name is None:
            return None
        if name in self.graph.constants:
            owner_path = self.part.reached.get(name, self.weights.get(name))
            return _constant(self.graph, name), owner_path
        contents = self.types[name].known
        index = self.numbers.setdefault(name, len(self.numbers))
        if contents is None or index < len(self.part.inputs):
            return index
        if contents.size > KNOWN_LIMIT and contents.dtype != object:
            return index, contents.shape, digest(contents)
        return index, contents.shape, tuple(map(self.dim, contents.ravel().tolist()))

    def shape(self, name: str) -> Hashable:
        value_type = self.graph.types[name]
        dims = (
            None if value_type.shape is None else tuple(map(self.dim, value_type.shape))
        )
        return value_type.dtype.name, dims

    def symbols(self, name: str) -> Hashable:
        """Return the symbolic dimensions of a value that is read for these alone."""
        shape = self.graph.types[name].shape or ()
        return tuple(
            (axis, self.dim(d)) for axis, d in enumerate(shape) if isinstance(d, Poly)
        )

    def dim(self, dim: Any) -> Hashable:
        """Return a dimension in terms of those of the inputs, else as it is."""
        if bindable(dim, self.extents.locals):
            return self.extents.write(dim).text
        return self.counters.get(dim, str(dim))

    def call(self, call: SubmoduleCall) -> Hashable:
        inputs = tuple(self.number(name) for name in call.inputs)
        return call.path, signature(call.part), inputs

    def item(self, item: Instruction) -> Hashable:
        if isinstance(item, IfCall):
            sides = tuple(map(self.call, calls_of(item)))
            names = (item.node.inputs[0], *item.node.outputs)
            return sides, tuple(self.number(name) for name in names)
        if isinstance(item, SubmoduleCall):
            outputs = tuple(self.number(name) for name in item.outputs)
            return self.call(item), outputs
        names = (*item.inputs, *item.outputs)
        path = self.part.layer_paths.get(id(item))
        constants = self.graph.constants
        values = tuple(
            # The values of a layer's weights do not appear in the code.
            (
                _kind(constants[n])
                if path is not None and n is not None and n in constants
                else self.number(n)
            )
            for n in names
        )
        bodies = tuple(map(self.body, item.op.bodies().values()))
        return path, op_key(item.op, with_bodies=False), values, bodies

    def body(self, body: Graph) -> Hashable:
        """Return the key of a subgraph; captured values have their outer numbers."""
        outer, self.types = self.types, body.types
        for name in body.inputs:
            known = body.types[name].known
            if known is not None and known.size == 1:
                number = f"counter{len(self.counters)}"
                self.counters.setdefault(known.item(), number)
        inputs = tuple(map(self.number, body.inputs))
        items = tuple(map(self.item, body.nodes))
        outputs = tuple(map(self.number, body.outputs))
        self.types = outer
        return inputs, items, outputs


def _layer_operands(part: ModuleNode) -> dict[str, Hashable]:
    """Return the first layer and position of each stored array in a layer."""
    layer_of: dict[str, Hashable] = {}
    for node in part.nodes():
        path = part.layer_paths.get(id(node))
        if path is not None:
            for position, name in enumerate(node.inputs):
                if name is not None and name in part.graph.constants:
                    layer_of.setdefault(name, (path, position))
    return layer_of


def kind_of_constant(graph: Graph, name: str, is_of_layer: bool) -> Hashable:
    """Return the key of a stored array; its type only if a layer holds it."""
    return _kind(graph.constants[name]) if is_of_layer else _constant(graph, name)


def op_key(op: Op, *, with_bodies: bool = True) -> Hashable:
    """Return the operator with its attributes; subgraphs compare by identity."""
    attrs = {
        name: id(value) if isinstance(value, Graph) else _hashable(value)
        for name, value in op.attrs().items()
        if with_bodies or not isinstance(value, Graph)
    }
    return type(op).__name__, tuple(attrs.items())


def _hashable(value: Any) -> Hashable:
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    return value if isinstance(value, Hashable) else repr(value)


def _kind(array: Array) -> Hashable:
    return array.dtype.str, array.shape


def _constant(graph: Graph, name: str) -> Hashable:
    """Return a key of a stored array in source: its type, and small contents."""
    array = graph.constants[name]
    kind = _kind(array)
    if name in graph.constants.measured or is_kept(graph, name):
        return kind
    limit = _INLINE if is_integer(array.dtype) else 1
    if name not in graph.constants.inlined and array.size > limit:
        return kind
    return kind, array.tobytes() if array.dtype != object else repr(array.tolist())

"""Extraction of the subgraph between values that the caller names."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from burn_import.tracing.identifiers import symbol_name
from burn_import.transform.errors import WrongOptions, unknown
from burn_ir.dim import Dim, Poly, symbol, symbols
from burn_ir.errors import Problem
from burn_ir.graph import Graph, Node
from burn_ir.infer import infer
from burn_ir.names import free_name
from burn_ir.ops.cast import Cast
from burn_ir.ops.shape import Concat, Reshape, Shape
from burn_ir.ops.support import ELEMENT_NUMBERS
from burn_ir.raw import RawGraph, RawModel, RawNode
from burn_ir.types import Type


class Sizes:
    """Builder of nodes that read extents of ``graph`` from ``inputs``."""

    def __init__(self, graph: Graph, inputs: Mapping[str, Type]) -> None:
        self.graph = graph
        #: An input and an axis for each extent.
        self.places: dict[Dim, tuple[str, int]] = {}
        for name, value_type in inputs.items():
            for axis, dim in enumerate(value_type.shape or ()):
                self.places.setdefault(dim, (name, axis))

    def nodes(self, name: str) -> list[Node] | None:
        """Return nodes that compute value ``name``; None if its contents are unknown.

        The contents are known if inference found only numbers and extents of the
        inputs.
        """
        contents = self.graph.types[name].known
        if contents is None or contents.size == 0:
            return None
        dims: list[Dim] = list(contents.reshape(-1))
        if any(self.source_of(dim) is None and not _is_number(dim) for dim in dims):
            return None
        parts = [self.part(f"{name}_{i}", dim) for i, dim in enumerate(dims)]
        nodes = [node for node, _ in parts if node is not None]
        joined, shaped = f"{name}_joined", f"{name}_shaped"
        operands = tuple(operand for _, operand in parts)
        nodes.append(Node(Concat(0), operands, (joined,)))
        shape = self.number(f"{name}_shape", *contents.shape)
        nodes.append(Node(Reshape(), (joined, shape), (shaped,)))
        dtype = self.graph.types[name].dtype
        to = ELEMENT_NUMBERS[dtype]
        return [*nodes, Node(Cast(to), (shaped,), (name,))]

    def source_of(self, dim: Dim) -> tuple[str, int] | None:
        """Return an input and an axis with the extent ``dim``; None for numbers."""
        return None if _is_number(dim) else self.places.get(dim)

    def part(self, name: str, dim: Dim) -> tuple[Node | None, str]:
        """Return the name of a vector of ``dim``, and the node it needs if any."""
        source_axis = self.source_of(dim)
        if source_axis is None:
            return None, self.number(name, int(dim))
        source, axis = source_axis
        return Node(Shape(axis, axis + 1), (source,), (name,)), name

    def number(self, name: str, *values: int) -> str:
        """Store a vector and return its name."""
        array = np.array(values, np.int64)
        stored = self.graph.constants.add(name, array)
        self.graph.constants.literals.add(stored)
        return stored


def _is_number(dim: Dim) -> bool:
    return isinstance(dim, int | np.integer | np.bool_)


#: How to find the names of values.
_NAMES = "`burn-import inspect MODEL --graph net.svg` draws the names"


@dataclass(frozen=True)
class CutPoints:
    """Cut points of a model; see :func:`begin_cut`."""

    inputs: tuple[str, ...]
    #: The ``inputs`` that nodes of the model produce.
    computed: tuple[str, ...]
    #: Names in the file of the inputs of the whole model.
    boundary: tuple[str, ...]


def begin_cut(
    model: RawModel, inputs: Sequence[str], outputs: Sequence[str]
) -> tuple[RawModel, CutPoints]:
    """Return ``model`` with other outputs, and the cut for :func:`finish_cut`.

    Nodes that neither the outputs nor the types of the inputs depend on are removed, so
    that they need not be supported. Computed inputs are additional outputs, after the
    others, until the types of all values are inferred.

    Raises:
        WrongOptions: a named value does not exist, or is named twice.
    """
    graph = model.graph
    produced = {name for node in graph.nodes for name in node.outputs if name}
    stored = {*graph.constants, *graph.defaults}
    problems = [*_name_problems(graph, produced, "an input", inputs)]
    problems += _name_problems(graph, produced, "an output", outputs)
    if problems:
        raise WrongOptions(problems)
    computed = tuple(name for name in inputs if name in produced)
    ends = tuple(outputs) or graph.outputs
    replaced = [name for name in inputs if name in graph.constants]
    types = {name: Type.of(graph.constants[name]).forget() for name in replaced}
    new_inputs = {
        name: value_type
        for name, value_type in {**graph.inputs, **types}.items()
        if not inputs or name in inputs or name not in stored
    }
    constants = {**graph.constants, **graph.defaults}
    cut = CutPoints(tuple(inputs), computed, tuple(new_inputs))
    raw = replace(
        graph,
        inputs=new_inputs,
        outputs=(*ends, *computed),
        nodes=_needed_nodes(graph, {*ends, *computed}),
        constants={n: array for n, array in constants.items() if n not in new_inputs},
        defaults={n: a for n, a in graph.defaults.items() if n in new_inputs},
    )
    return replace(model, graph=raw), cut


def _name_problems(
    graph: RawGraph, produced: set[str], kind: str, names: Sequence[str]
) -> Iterator[Problem]:
    """Yield a problem for each name that does not exist or is repeated."""
    candidates = [*graph.inputs, *graph.constants, *(n for n in produced if n)]
    valid = set(candidates)
    for number, name in enumerate(names):
        if name in names[:number]:
            yield Problem(f"expected different names, got {kind} {name!r} twice")
        elif name not in valid:
            problem = unknown(
                f"{kind} among the values of the model", name, sorted(candidates)
            )
            yield replace(problem, hint=problem.hint or _NAMES)


def _needed_nodes(graph: RawGraph, names: set[str]) -> tuple[RawNode, ...]:
    """Return the nodes that ``names`` depend on; nodes may be in any order."""
    producers = {out: node for node in graph.nodes for out in node.outputs if out}
    pending, seen = list(names), set(names)
    needed: set[int] = set()
    while pending:
        node = producers.get(pending.pop())
        if node is None or id(node) in needed:
            continue
        needed.add(id(node))
        reads = set(_read_names(node)) - seen
        seen |= reads
        pending += reads
    return tuple(node for node in graph.nodes if id(node) in needed)


def _read_names(node: RawNode) -> Iterator[str]:
    """Yield the names that a node may read, including those in its bodies."""
    yield from filter(None, node.inputs)
    for body in node.attrs.values():
        if isinstance(body, RawGraph):
            yield from body.outputs
            for inner in body.nodes:
                yield from _read_names(inner)


def finish_cut(graph: Graph, cut: CutPoints) -> Graph:
    """Return the part of ``graph`` from the cut's inputs to its outputs.

    ``graph`` is the typed graph of the model that :func:`begin_cut` returned.

    Extents are read from the new inputs where they have them.

    Raises:
        WrongOptions: the outputs depend on other inputs, or not on one of these.
    """
    if not cut.inputs:
        return graph
    count = len(graph.outputs) - len(cut.computed)
    unique = dict(zip(cut.boundary, graph.inputs, strict=True))
    unique.update(zip(cut.computed, graph.outputs[count:], strict=True))
    inputs = {unique[name]: name for name in cut.inputs}
    whole = replace(graph, outputs=graph.outputs[:count])
    types = _open_types(whole, inputs)
    nodes, needed = _SubgraphSearch(whole, types).nodes()
    _check(whole, cut, inputs, needed)
    part = replace(
        whole,
        inputs=tuple(inputs),
        nodes=tuple(nodes),
        types=types,
        defaults={n: d for n, d in whole.defaults.items() if n in inputs},
    )
    return infer(part)


def _open_types(graph: Graph, inputs: Mapping[str, str]) -> dict[str, Type]:
    """Return the types of new inputs; extents that are expressions get a new name."""
    types = {name: graph.types[name].forget() for name in inputs}
    extents = [dim for value_type in types.values() for dim in value_type.shape or ()]
    plain = {str(dim) for dim in extents if isinstance(dim, Poly)}
    plain = {name for name in plain if name.isidentifier()}
    used_names = {name for dim in extents for name in symbols(dim)}
    names: dict[Dim, Dim] = {}
    for name, called in inputs.items():
        for axis, dim in enumerate(types[name].shape or ()):
            if not plain.issuperset(symbols(dim)) and dim not in names:
                base = symbol_name(called[:40], "value")
                extent = free_name(f"{base}_dim_{axis}", used_names)
                used_names.add(extent)
                names[dim] = symbol(extent)
    return {
        name: (
            value_type
            if value_type.shape is None
            else value_type.with_shape(
                [names.get(dim, dim) for dim in value_type.shape]
            )
        )
        for name, value_type in types.items()
    }


class _SubgraphSearch:
    """Search for the nodes between the new inputs and the outputs."""

    def __init__(self, graph: Graph, inputs: Mapping[str, Type]) -> None:
        self.graph = graph
        self.inputs = inputs
        self.sizes = Sizes(graph, inputs)
        self.outside = self._outside()

    def _outside(self) -> set[str]:
        """Return the values that depend on inputs that are removed."""
        outside = set(self.graph.inputs) - set(self.inputs)
        for node in self.graph.nodes:
            if not outside.isdisjoint(node.inputs):
                outside.update(n for n in node.outputs if n and n not in self.inputs)
        return outside

    def nodes(self) -> tuple[list[Node], set[str]]:
        """Return the nodes, and all names that they and the outputs read."""
        needed = set(self.graph.outputs)
        replacements: list[Node] = []
        for node in reversed(self.graph.nodes):
            wanted = [n for n in node.outputs if n in needed and n not in self.inputs]
            if not wanted:
                continue
            for replacement in reversed(self.replacements(node, wanted)):
                replacements.append(replacement)
                needed.update(name for name in replacement.inputs if name is not None)
        replacements.reverse()
        return replacements, needed

    def replacements(self, node: Node, wanted: Iterable[str]) -> list[Node]:
        """Return ``node``, or nodes that read its extents from the new inputs."""
        if not self.outside.isdisjoint(node.inputs):
            per_value = [self.sizes.nodes(name) for name in wanted]
            if all(nodes is not None for nodes in per_value):
                return [
                    one for nodes in per_value if nodes is not None for one in nodes
                ]
        outputs = tuple(
            f"{name}_inside" if name in self.inputs else name for name in node.outputs
        )
        return [node if outputs == node.outputs else replace(node, outputs=outputs)]


def _check(
    graph: Graph, cut: CutPoints, inputs: Mapping[str, str], needed: set[str]
) -> None:
    called = dict(zip(graph.inputs, cut.boundary, strict=True))
    problems = [
        Problem(
            f"expected outputs that need only the named inputs, they also need {n!r}"
        )
        for name, n in called.items()
        if name in needed and name not in inputs
    ]
    problems += [
        Problem(f"expected inputs that the outputs depend on, got {inputs[name]!r}")
        for name in inputs
        if name not in needed and name not in graph.inputs
    ]
    if problems:
        raise WrongOptions(problems)

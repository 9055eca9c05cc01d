"""Construction of a typed graph of current operators from a model as stored.

Names are made unique in the whole model, subgraphs are closed (captured values become
operands), constants of all subgraphs are put in one store, and nodes are sorted,
upgraded and typed. All problems are reported together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from burn_ir.blocked import unblocked
from burn_ir.derivatives import with_functions
from burn_ir.dim import counting_unnamed
from burn_ir.error_context import FAULTS, error_text
from burn_ir.errors import InvalidModel, InvalidOperand, Problem
from burn_ir.graph import Constants, Graph, Node
from burn_ir.infer import changed_states, fixed_point, infer_op
from burn_ir.names import UniqueNames
from burn_ir.nodes import make_op, upgraded
from burn_ir.op import operators
from burn_ir.order import sort_nodes
from burn_ir.quirks import with_exporter_corrections
from burn_ir.raw import RawGraph, RawModel, RawNode
from burn_ir.signature import arity
from burn_ir.support_check import check_operators, newest_version, operator_version
from burn_ir.types import Array, Type


def build(model: RawModel) -> Graph:
    """Return the typed graph of ``model``.

    Raises:
        UnsupportedModel: operators or versions are not supported; all are listed.
        InvalidModel: nodes contradict their operators; all are listed.
    """
    model = unblocked(model)
    check_operators(model)
    model = with_exporter_corrections(model)
    builder = _Builder(model.opsets)
    with counting_unnamed():
        graph = builder.main(model.graph)
    if builder.problems:
        raise InvalidModel(builder.problems) from builder.cause
    return replace(graph, opsets=dict(model.opsets), producer=model.producer)


@dataclass
class _Scope:
    """The names that one graph's nodes can see."""

    outer: _Scope | None = None
    names: dict[str, str] = field(default_factory=dict)  # as written -> unique
    types: dict[str, Type] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    captured: dict[str, None] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)


class _Builder:
    def __init__(self, opsets: Mapping[str, int]) -> None:
        self.opsets = opsets
        self.constants = Constants()
        self.problems: list[Problem] = []
        self.cause: Exception | None = None
        self.names = UniqueNames()

    def main(self, raw: RawGraph) -> Graph:
        scope = _Scope()
        states = tuple(self.store(name, array) for name, array in raw.states.items())
        for name, declared in raw.inputs.items():
            scope.types[self.define(scope, name)] = declared
        defaults = {
            scope.names[name]: self.store(f"{name}_default", array)
            for name, array in raw.defaults.items()
        }
        inputs = tuple(scope.names[name] for name in raw.inputs)
        if len(raw.outputs) == len(raw.states):
            self.problems.append(Problem("expected a graph with outputs, got none"))
        graph = self.fill(raw, scope, inputs)
        flags = ((scope.names.get(name), flag) for name, flag in raw.trained.items())
        self.constants.trained.update((name, flag) for name, flag in flags if name)
        self.constants.trained.update(
            (state, True)
            for state, name in zip(states, raw.states, strict=True)
            if raw.trained.get(name)
        )
        self.constants.tells_transient = raw.transient is not None
        hidden = (scope.names.get(name) for name in raw.transient or ())
        self.constants.transient.update(name for name in hidden if name)
        graph = replace(graph, defaults=defaults, states=states, doc=raw.doc)
        self.problems += changed_states(graph)
        return graph

    def fill(self, raw: RawGraph, scope: _Scope, inputs: tuple[str, ...]) -> Graph:
        """Return the graph of ``raw``, whose inputs are already in ``scope``."""
        raw = with_functions(raw)
        for name, array in raw.constants.items():
            scope.names[name] = self.store(name, array)
        for node in sort_nodes(raw, self.report):
            self.add(scope, node)
        outputs = tuple(self.output(scope, raw, name) for name in raw.outputs)
        return Graph(
            raw.name, inputs, outputs, tuple(scope.nodes), scope.types, self.constants
        )

    def output(self, scope: _Scope, raw: RawGraph, name: str) -> str:
        unique = self.resolve(scope, name)
        if unique is None:
            message = f"expected graph {raw.name!r} to compute its output {name!r}"
            self.problems.append(Problem(message))
        return unique or name

    def define(self, scope: _Scope, name: str) -> str:
        """Return a unique name for the value ``name`` of ``scope``."""
        unique = scope.names[name] = self.names.unique(name)
        return unique

    def store(self, name: str, array: Array) -> str:
        """Return the unique name of a stored array; the same array is stored once."""
        unique = self.names.unique(name)
        if unique in self.constants and self.constants[unique] is array:
            return unique
        unique = self.constants.add(unique, array)
        self.names.add(unique)
        return unique

    def store_literal(self, name: str, array: Array) -> str:
        """Store an array that is an attribute in the file; see :meth:`store`."""
        unique = self.store(name, array)
        self.constants.literals.add(unique)
        return unique

    def resolve(self, scope: _Scope, name: str) -> str | None:
        """Return the unique name of ``name`` in ``scope``; capture outer values."""
        if name in scope.names:
            return scope.names[name]
        if scope.outer is None:
            return None
        unique = self.resolve(scope.outer, name)
        if unique is None or unique in self.constants:
            return unique
        if unique in scope.outer.broken:
            scope.broken.add(unique)
        else:
            scope.types[unique] = scope.outer.types[unique]
        scope.captured[unique] = None
        return unique

    def add(self, scope: _Scope, raw: RawNode) -> None:
        """Type one node and append it; report errors and mark its results broken."""
        version = operator_version(raw, self.opsets)
        inputs = tuple(name and self.resolve(scope, name) for name in raw.inputs)
        pairs = zip(raw.inputs, inputs, strict=True) if None in inputs else ()
        missing = [name for name, unique in pairs if name and not unique]
        for name in missing:
            self.report(raw, f"expected a value called {name!r}, found none")
        try:
            if raw.op_type == "Constant" and raw.domain == "":
                self.constant(scope, raw)
            elif missing or not scope.broken.isdisjoint(inputs):
                self.give_up(scope, raw)
            else:
                same = inputs == raw.inputs  # most names are unique already
                node = raw if same else replace(raw, inputs=inputs)
                self.typed(scope, node, version)
        except FAULTS as error:
            self.cause = self.cause or error
            self.report(raw, error_text(error))
            self.give_up(scope, raw)

    def constant(self, scope: _Scope, raw: RawNode) -> None:
        (output,) = raw.outputs
        assert output is not None
        if set(raw.attrs) != {"value"}:
            raise InvalidOperand(f"expected one value, got {sorted(raw.attrs)}")
        scope.names[output] = self.store_literal(output, raw.attrs["value"])

    def give_up(self, scope: _Scope, raw: RawNode) -> None:
        for output in raw.outputs:
            if output is not None:
                scope.broken.add(self.define(scope, output))

    def report(self, raw: RawNode, message: str) -> None:
        opset = self.opsets.get(raw.domain)
        self.problems.append(
            Problem(message, raw.name or _label(raw), raw.op_type, opset)
        )

    def typed(self, scope: _Scope, raw: RawNode, version: int) -> None:
        """Upgrade, construct and type a node whose inputs have unique names."""
        raw = _with_omitted(raw)
        raw, types = upgraded(
            raw,
            version,
            learn=lambda name: self.type(scope, name),
            store=self.store_literal,
            insert=lambda node: self.insert(scope, node),
        )
        graphs, captured = self.bodies(scope, raw, types)
        operands = [*types, *(scope.types[name] for name in captured)]
        op = make_op(raw, graphs)
        results = infer_op(op, operands)
        scope.nodes.append(
            Node(
                op,
                raw.inputs + captured,
                self.outputs(scope, raw, results),
                raw.name,
                raw.scope,
                raw.classes,
            )
        )

    def outputs(
        self, scope: _Scope, raw: RawNode, results: tuple[Type, ...]
    ) -> tuple[str | None, ...]:
        if len(raw.outputs) > len(results):
            raise InvalidOperand(
                f"expected at most {len(results)} outputs, got {len(raw.outputs)}"
            )
        names: list[str | None] = []
        for output, result in zip(raw.outputs, results, strict=False):
            unique = None if output is None else self.define(scope, output)
            if unique is not None:
                scope.types[unique] = result
            names.append(unique)
        return tuple(names)

    def type(self, scope: _Scope, name: str) -> Type:
        return scope.types.get(name) or Type.of(self.constants[name])

    def insert(self, scope: _Scope, raw: RawNode) -> str:
        """Insert a node of the newest version; return the name of its first output."""
        newest = newest_version(raw)
        self.typed(scope, raw, newest)
        return scope.nodes[-1].output

    def bodies(
        self, scope: _Scope, raw: RawNode, operands: Sequence[Type | None]
    ) -> tuple[dict[str, Graph], tuple[str, ...]]:
        """Return the closed subgraphs in the attributes and the names they capture."""
        if not raw.attrs:
            return {}, ()
        captured: dict[str, None] = {}
        names = [n for n, body in raw.attrs.items() if isinstance(body, RawGraph)]
        graphs: dict[str, Graph] = {}
        if names:
            # Exporters write branches for other ranks, which do not fit these operands.
            only = operators()[raw.domain, raw.op_type].only_branch(operands)
            for name in names if only is None else [only]:
                graphs[name] = self.body(scope, raw, name, operands, captured)
            graphs = {name: graphs[only or name] for name in names}
        closed = {
            name: _with_inputs(graph, captured, scope.types)
            for name, graph in graphs.items()
        }
        return closed, tuple(captured)

    def body(
        self,
        scope: _Scope,
        raw: RawNode,
        name: str,
        operands: Sequence[Type | None],
        captured: dict[str, None],
    ) -> Graph:
        """Return the subgraph ``name``; add its captured values to ``captured``."""
        body: RawGraph = raw.attrs[name]
        op = operators()[raw.domain, raw.op_type]
        flow = op.flow(raw.attrs, operands, list(body.inputs.values()))
        if len(flow.types) != len(body.inputs):
            expected = f"expected its body {name!r} to have {len(flow.types)} inputs"
            raise InvalidOperand(f"{expected}, got {len(body.inputs)}")
        if flow.back and max(flow.back) >= len(body.outputs):
            expected = (
                f"expected its body {name!r} to have {max(flow.back) + 1} outputs"
            )
            raise InvalidOperand(f"{expected} or more, got {len(body.outputs)}")
        names, problems = len(self.names.log), len(self.problems)

        def run(types: Sequence[Type]) -> Graph:
            self.names.forget(names)  # so that names do not depend on the rounds
            inner = _Scope(scope)
            for parameter, type_ in zip(body.inputs, types, strict=True):
                inner.types[self.define(inner, parameter)] = type_
            inputs = tuple(inner.names[parameter] for parameter in body.inputs)
            graph = self.fill(body, inner, inputs)
            if inner.broken or len(self.problems) > problems:
                raise InvalidOperand(f"its body {name!r} has problems")
            captured.update(inner.captured)
            return graph

        return fixed_point(flow, run)


class IncrementalBuilder:
    """Builder of a graph that types each node as it is appended.

    Nodes arrive in topological order; the caller enters ``counting_unnamed``.
    """

    def __init__(
        self, opsets: Mapping[str, int], outer: IncrementalBuilder | None = None
    ) -> None:
        self._builder: _Builder = outer._builder if outer else _Builder(opsets)
        self._scope: _Scope = _Scope(outer._scope if outer else None)

    def inner(self) -> IncrementalBuilder:
        """Return a builder of a subgraph, which can read the values of this graph."""
        return IncrementalBuilder(self._builder.opsets, self)

    def declare(self, name: str, type_: Type) -> None:
        """Add a value without a producer: an input, or a loop-carried value."""
        self._scope.types[self._builder.define(self._scope, name)] = type_

    def store(self, name: str, array: Array) -> None:
        """Add a stored array that all graphs can read."""
        self._outermost().names[name] = self._builder.store(name, array)

    def declare_outermost(self, name: str, type_: Type) -> None:
        """Add a value without a producer that all graphs can read."""
        scope = self._outermost()
        scope.types[self._builder.define(scope, name)] = type_

    def _outermost(self) -> _Scope:
        scope = self._scope
        while scope.outer is not None:
            scope = scope.outer
        return scope

    def add(self, node: RawNode) -> None:
        """Type a node.

        Raises:
            InvalidModel: it contradicts its operator, or an operand does not exist.
        """
        before = len(self._builder.problems)
        self._builder.add(self._scope, node)
        if len(self._builder.problems) > before:
            raise InvalidModel(self._builder.problems[before:])

    def type(self, name: str) -> Type:
        """Return the type of a value.

        Raises:
            KeyError: the value does not exist.
        """
        unique = self._builder.resolve(self._scope, name)
        if unique is None:
            raise KeyError(name)
        return self._builder.type(self._scope, unique)


def _with_omitted(raw: RawNode) -> RawNode:
    """Return ``raw`` with None for omitted operands before captured ones."""
    attrs = raw.attrs
    if not attrs or not any(isinstance(v, RawGraph) for v in attrs.values()):
        return raw
    least = arity(operators()[raw.domain, raw.op_type]).plain
    missing = (None,) * (least - len(raw.inputs))
    return replace(raw, inputs=(*raw.inputs, *missing))


def _with_inputs(
    graph: Graph, captured: Mapping[str, None], types: Mapping[str, Type]
) -> Graph:
    """Return ``graph`` with the names in ``captured`` as last inputs."""
    return replace(
        graph,
        inputs=(*graph.inputs, *captured),
        types={**graph.types, **{name: types[name] for name in captured}},
    )


def _label(raw: RawNode) -> str:
    """Return the label of an unnamed node: its first output."""
    return next((name for name in raw.outputs if name), "")

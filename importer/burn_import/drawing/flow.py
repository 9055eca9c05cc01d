"""The data flow between the modules of a tree, down to a depth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from burn_import.structure.module_tree import (
    IfCall,
    ModuleNode,
    SubmoduleCall,
    calls_of,
)
from burn_ir.layers import layer_of

if TYPE_CHECKING:
    from burn_import.codegen.module.module import Assembly
    from burn_import.provenance.path_segments import Path
    from burn_ir.graph import Graph, Node

#: Maximum number of boxes without ``--depth``, unless depth 1 already has more.
MOST_BOXES = 200


@dataclass(frozen=True)
class FlowBox:
    """A module, an operator that joins modules, or an input or output of the model.

    ``kind`` is ``module``, ``operator``, ``input`` or ``output``.
    """

    kind: str
    title: str
    lines: tuple[str, ...] = ()


@dataclass
class Flow:
    """Boxes in order of execution, and edges as pairs of box indices.

    An edge leads from a box to a later one. ``depth`` is the depth of the drawn
    modules, ``deeper`` the number of boxes one level below if these are too many,
    else 0.
    """

    title: str
    depth: int
    boxes: list[FlowBox] = field(default_factory=list)
    edges: list[tuple[int, int]] = field(default_factory=list)
    deeper: int = 0

    def add(self, box: FlowBox, sources: Iterable[int]) -> int:
        """Append a box with edges from ``sources``; return its position."""
        self.boxes.append(box)
        number = len(self.boxes) - 1
        self.edges += [(source, number) for source in sorted(set(sources))]
        return number


def flow_of(model: Assembly, depth: int | None = None) -> Flow:
    """Return the flow between modules down to ``depth``, where the root has depth 0.

    The default is the largest depth with at most ``MOST_BOXES`` boxes.
    """
    sizes = _parameters(model)
    if depth is not None:
        return _Builder(model, sizes, depth).flow
    flow = _Builder(model, sizes, 0).flow
    for number in range(1, _tree_depth(model.tree.root) + 1):
        deeper = _Builder(model, sizes, number).flow
        if len(deeper.boxes) > MOST_BOXES:
            flow.deeper = len(deeper.boxes)
            break
        flow = deeper
    return flow


def _tree_depth(part: ModuleNode) -> int:
    calls = [call for item in part.items for call in calls_of(item)]
    return 1 + max((_tree_depth(call.part) for call in calls), default=0)


def _parameters(model: Assembly) -> dict[Path, int]:
    """Return the number of stored elements by path, including inner modules."""
    sizes: dict[Path, int] = {}
    for entry in model.entries:
        size = model.tree.root.graph.constants[entry.constant].size
        for length in range(len(entry.key)):
            path = entry.key[:length]
            sizes[path] = sizes.get(path, 0) + size
    return sizes


class _Builder:
    """Builder of a flow from the instructions in order.

    ``values`` maps each value to the boxes that produce it. An operator forwards
    the boxes of its inputs; if its inputs come from different boxes, it becomes a
    box itself, so that a chain of additions does not multiply edges.
    """

    def __init__(self, model: Assembly, sizes: Mapping[Path, int], depth: int) -> None:
        self.sizes = sizes
        root = model.tree.root
        self.flow = Flow(root.class_name, depth)
        values: dict[str, frozenset[int]] = {}
        for name in root.inputs:
            box = FlowBox("input", name, (_type(root.graph, name),))
            values[name] = frozenset({self.flow.add(box, ())})
        if depth:
            self._walk(root, values, depth)
        else:
            self._module(SubmoduleCall((), root, root.inputs, root.outputs), (), values)
        for name in root.outputs:
            box = FlowBox("output", name, (_type(root.graph, name),))
            self.flow.add(box, values.get(name, ()))

    def _walk(
        self, part: ModuleNode, values: dict[str, frozenset[int]], depth: int
    ) -> None:
        for item in part.items:
            if isinstance(item, SubmoduleCall):
                self._call(item, part, values, depth)
            elif isinstance(item, IfCall):
                self._branches(item, part, values, depth)
            else:
                self._node(item, part, values)

    def _call(
        self,
        call: SubmoduleCall,
        caller: ModuleNode,
        values: dict[str, frozenset[int]],
        depth: int,
    ) -> None:
        if depth == 1 or not call.part.items:
            self._module(call, caller.path, values)
            return
        # Modules of one graph share its names; the names of a subgraph are mapped at
        # its call.
        is_renamed = call.inputs != call.part.inputs
        inner = dict(values) if is_renamed else values
        for name, operand in zip(call.part.inputs, call.inputs, strict=False):
            inner[name] = values.get(operand, frozenset())
        self._walk(call.part, inner, depth - 1)
        for name, result in zip(call.outputs, call.part.outputs, strict=False):
            values[name] = inner.get(result, frozenset())

    def _module(
        self, call: SubmoduleCall, around: Path, values: dict[str, frozenset[int]]
    ) -> None:
        part, path = call.part, (*around, *call.path)
        kind = "Sequential" if part.sequence else part.class_name
        lines = self._lines(kind, path, part.graph, part.outputs)
        box = FlowBox("module", ".".join(path) or "(model)", lines)
        self._add(box, call.inputs, call.outputs, values)

    def _branches(
        self,
        item: IfCall,
        part: ModuleNode,
        values: dict[str, frozenset[int]],
        depth: int,
    ) -> None:
        """Draw both branches and the operator that selects one of them."""
        results: list[str] = []
        for number, call in enumerate((item.then, item.orelse)):
            names = [f"{name}\0{number}\0{id(item)}" for name in call.outputs]
            sides = SubmoduleCall(call.path, call.part, call.inputs, names)
            self._call(sides, part, values, depth)
            results += names
        outputs = [name for name in item.node.outputs if name is not None]
        operands = [name for name in (*item.node.inputs[:1], *results) if name]
        lines = (_type(part.graph, outputs[0]),) if outputs else ()
        self._add(FlowBox("operator", "If", lines), operands, outputs, values)

    def _node(
        self, node: Node, part: ModuleNode, values: dict[str, frozenset[int]]
    ) -> None:
        operands = [name for name in node.inputs if name is not None]
        outputs = [name for name in node.outputs if name is not None]
        layer_path = part.layer_paths.get(id(node))
        if layer_path is not None:
            path = (*part.path, *layer_path)
            layer = layer_of(part.graph, node)
            kind = "" if layer is None else layer.name
            lines = self._lines(kind, path, part.graph, outputs[:1])
            self._add(
                FlowBox("module", ".".join(path), lines), operands, outputs, values
            )
            return
        sources = frozenset[int]().union(*(values.get(n, ()) for n in operands))
        if len(sources) > 1 or node.op.bodies():
            lines = tuple(_type(part.graph, name) for name in outputs[:1])
            box = FlowBox("operator", node.op.onnx, lines)
            self._add(box, operands, outputs, values)
        else:
            values.update(dict.fromkeys(outputs, sources))

    def _lines(
        self, kind: str, path: Path, graph: Graph, outputs: Sequence[str]
    ) -> tuple[str, ...]:
        count = self.sizes.get(path, 0)
        types = ", ".join(_type(graph, name) for name in outputs)
        return kind, f"{count:,} parameters", types

    def _add(
        self,
        box: FlowBox,
        inputs: Iterable[str],
        outputs: Iterable[str],
        values: dict[str, frozenset[int]],
    ) -> None:
        sources = frozenset[int]().union(*(values.get(name, ()) for name in inputs))
        number = frozenset({self.flow.add(box, sources)})
        values.update(dict.fromkeys(outputs, number))


def _type(graph: Graph, name: str) -> str:
    return str(getattr(graph.type(name), "name", "?"))

"""Inputs that a module does not read, and results that no caller reads.

An extent is such a result, as ``batch * 64``: callers write it with the shapes of their
tensors. A tensor that is passed for its extents is such an input, if the module reads
these from another tensor.
"""

from collections import defaultdict

from burn.dtypes import is_integer
from burn_import.codegen.trace.function import trace_part
from burn_import.structure.module_tree import (
    IfCall,
    ModuleNode,
    SubmoduleCall,
    Tree,
    calls_of,
)
from burn_import.tracing.extents import Extents
from burn_import.tracing.identifiers import Namespace
from burn_import.tracing.statements import live_symbols
from burn_ir.graph import Graph


def drop_unread_results(tree: Tree) -> None:
    """Remove the outputs of each class that are read after none of its calls."""
    chosen = {id(tree.model[id(part)]) for part in _branches(tree)}
    changed = True
    while changed:
        changed = False
        read = _read_positions(tree)
        for part in tree.parts:
            model = id(tree.model[id(part)])
            if model in read and model not in chosen:
                changed |= _keep(part, read[model])
        _share_outputs(tree)


def drop_unread_inputs(tree: Tree) -> None:
    """Remove the inputs of each class that its body does not read."""
    chosen = {id(tree.model[id(part)]) for part in _branches(tree)}
    classes = [c for c in tree.classes[1:] if id(c) not in chosen]
    changed = True
    while changed:
        changed = False
        for model in classes:
            positions = _read_inputs(model)
            if 0 < len(positions) < len(model.inputs):
                _keep_inputs(tree, model, positions)
                changed = True


def _read_inputs(part: ModuleNode) -> list[int]:
    """Return the positions of the inputs that a module reads."""
    operands = {name for node in part.nodes() for name in node.inputs}
    if operands.issuperset(part.inputs):
        return list(range(len(part.inputs)))
    names = _names_read(part)
    return [at for at, name in enumerate(part.inputs) if name in names]


def _keep_inputs(tree: Tree, model: ModuleNode, positions: list[int]) -> None:
    """Keep these inputs of all modules of the class of ``model`` and of their calls."""
    for part in tree.parts:
        if tree.model[id(part)] is model:
            part.inputs = [part.inputs[at] for at in positions]
        for call in (c for item in part.items for c in calls_of(item)):
            if tree.model[id(call.part)] is model:
                call.inputs = [call.inputs[at] for at in positions]


def _branches(tree: Tree) -> list[ModuleNode]:
    """Return the modules that an ``If`` chooses: both return the same values."""
    items = (item for part in tree.parts for item in part.items)
    calls = (call for i in items if isinstance(i, IfCall) for call in calls_of(i))
    return [call.part for call in calls]


def _read_positions(tree: Tree) -> dict[int, set[int]]:
    """Return which outputs are read, by the identity of the model of a class.

    Only classes that return extents beside other values are looked at.
    """
    read: defaultdict[int, set[int]] = defaultdict(set)
    for part in tree.parts:
        calls = [c for c in part.items if isinstance(c, SubmoduleCall)]
        calls = [c for c in calls if _returns_extents(c.part.graph, c.outputs)]
        names = _names_read(part) if calls else set()
        for call in calls:
            positions = (i for i, name in enumerate(call.outputs) if name in names)
            read[id(tree.model[id(call.part)])].update(positions)
    return read


def _returns_extents(graph: Graph, names: list[str]) -> bool:
    """Return whether one of several values may be an extent."""
    if len(names) < 2:
        return False
    types = filter(None, map(graph.type, names))
    return any(
        t.shape is not None and len(t.shape) < 2 and is_integer(t.dtype) for t in types
    )


def _names_read(part: ModuleNode) -> set[str]:
    """Return the names of the values that the body of a module reads."""
    trace = trace_part(part)
    probe = Extents(Namespace(), is_partial=True)
    probe.plan(trace.parameters, trace.body)
    return {symbol.name for symbol in live_symbols(trace.body, probe.sources)}


def _keep(part: ModuleNode, positions: set[int]) -> bool:
    """Keep these outputs of a module, at least one; return whether some are gone."""
    outputs = [name for i, name in enumerate(part.outputs) if i in positions]
    if not outputs or len(outputs) == len(part.outputs):
        return False
    part.outputs = outputs
    return True


def _share_outputs(tree: Tree) -> None:
    for part in tree.parts:
        for item in part.items:
            if isinstance(item, SubmoduleCall):
                item.outputs = item.part.outputs

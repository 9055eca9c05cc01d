"""Assignment of states, arrays that a call of the model replaces, to modules.

The owner is the innermost module around the state's key that contains all readers and
the producer of the next state. Other modules get the state as an input and return its
next value. The attribute is at the path of the key, which may be further inside.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from burn_import.provenance.path_segments import Path, clean
from burn_import.provenance.weight_owners import original
from burn_import.structure.listed_tensors import home_of
from burn_import.structure.module_tree import (
    IfCall,
    Instruction,
    ModuleNode,
    State,
    SubmoduleCall,
    calls_of,
    layers_of,
)
from burn_import.tracing.identifiers import Namespace, attribute
from burn_ir.graph import Graph, Node
from burn_ir.layers import layer_of
from burn_ir.op import Layer
from burn_ir.ops.conv import Conv
from burn_ir.ops.fused import Linear


def states_of(graph: Graph) -> list[State]:
    """The states of a model."""
    before = graph.inputs[len(graph.arguments) :]
    after = graph.outputs[len(graph.results) :]
    return [State(*names) for names in zip(graph.states, before, after, strict=True)]


def hold_states(root: ModuleNode) -> None:
    """Assign every state of the model to its owning module."""
    for state in states_of(root.graph):
        part = root
        while (call := _owning_call(part, state)) is not None:
            call.inputs.remove(state.before)
            if not _is_read(part, state.after, call):
                call.outputs.remove(state.after)
            part = call.part
        part.states.append(state)
        _assign_attribute(part, state.constant)


def share_inner_tensors(part: ModuleNode) -> None:
    """Let modules read tensors whose keys are in their submodules.

    The tensors are attributes there, as in the author's model, or weights of a
    layer.
    """
    keep_read_layers(part)
    for constant in _directly_read_arrays(part):
        if constant not in part.reached and home_of(part.graph, constant) is not None:
            _assign_attribute(part, constant)
    for call in _calls(part):
        share_inner_tensors(call.part)


def keep_read_layers(part: ModuleNode) -> None:
    """Make layers whose weights ``part`` reads itself attributes of it.

    ``F.linear(x, self.qkv.weight, bias)`` with a bias computed from ``self.qkv.bias``
    calls no layer, and has the keys of one.
    """
    for path, constants in _weights_below(part).items():
        layers = (_layer_with(part.graph, node, constants) for node in part.nodes())
        layer = next(filter(None, layers), None)
        if layer is not None:
            part.kept[path] = layer
            for leaf, constant in constants.items():
                part.reached[constant] = ".".join((*path, leaf))


def _weights_below(part: ModuleNode) -> dict[Path, dict[str, str]]:
    """Return the listed arrays that ``part`` reads, by the path of their layer.

    Only modules below ``part`` that run nothing are returned.
    """
    running = {call.path[0] for item in part.items for call in calls_of(item)}
    running |= {path[0] for path, _, _ in layers_of(part)}
    weights: dict[Path, dict[str, str]] = {}
    for constant in _directly_read_arrays(part):
        home = home_of(part.graph, constant)
        if home is None or not _is_around(part, home) or home == part.path:
            continue
        path = home[len(part.path) :]
        if path[0] not in running and not any(map(str.isdigit, path)):
            leaf = _path(part.graph, constant)[-1]
            weights.setdefault(path, {})[leaf] = constant
    return weights


def _layer_with(graph: Graph, node: Node, constants: Mapping[str, str]) -> Layer | None:
    """Return the layer with these weights, if ``node`` applies it with another bias."""
    if not isinstance(node.op, Linear | Conv) or set(constants) != {"weight", "bias"}:
        return None
    weight, bias = constants["weight"], constants["bias"]
    if node.inputs[1] != weight or bias in node.inputs:
        return None
    if graph.constants[bias].shape != graph.constants[weight].shape[:1]:
        return None
    return layer_of(graph, replace(node, inputs=(node.inputs[0], weight, bias)))


def _directly_read_arrays(part: ModuleNode) -> Iterator[str]:
    """Yield the stored arrays that a module's nodes read outside of its layers."""
    constants = part.graph.constants
    layers = {
        node.inputs[position]
        for _, node, layer in layers_of(part)
        for position in layer.weights.values()
    }
    for node in part.nodes():
        for name in node.inputs:
            if name is not None and name in constants and name not in layers:
                yield name


def _assign_attribute(part: ModuleNode, constant: str) -> None:
    """Make ``constant`` an attribute of the module that its key names."""
    text, owner, key = "", part, _path(part.graph, constant)
    while calls := [call for call in _calls(owner) if _is_around(call.part, key)]:
        inner = calls[0].part
        is_weight = key[len(inner.path) :] in _layer_weights(inner)
        if inner.sequence and not is_weight:
            break
        text, owner = text + _access_text(calls[0].path), inner
        if is_weight:
            part.reached[constant] = (text + _access_text(key[len(owner.path) :]))[1:]
            return
    if owner is not part:
        if constant not in owner.lent_arrays:
            owner.lent_arrays[constant] = _free_path(owner, key[len(owner.path) :])
        part.reached[constant] = (text + _access_text(owner.lent_arrays[constant]))[1:]


def _free_path(part: ModuleNode, path: Path) -> Path:
    """The attribute path of an array in ``part``: ``path``, or a name of its own.

    An array has a name of its own where ``path`` is inside of a layer, of a module with
    a class or of a list.
    """
    modules = {call.path[0] for call in _calls(part)}
    modules |= {layer_path[0] for layer_path, _, _ in layers_of(part)}
    modules |= {layer_path[0] for layer_path in part.kept}
    others = part.lent_arrays.values()
    is_taken = any(
        all(a == b for a, b in zip(one, path, strict=False)) for one in others
    )
    is_listed = any(name.isdigit() for name in path)
    if len(path) > 1 and path[0] not in modules and not (is_taken or is_listed):
        return path
    names = Namespace(modules | {one[0] for one in others})
    return (names.unique(attribute(path[-1])),)


def _access_text(path: Path) -> str:
    return "".join(f"[{name}]" if name.isdigit() else f".{name}" for name in path)


def _layer_weights(part: ModuleNode) -> set[Path]:
    """Return the paths of the layer weights in a module."""
    return {
        (*path, *name.split("."))
        for path, _, layer in layers_of(part)
        for name in layer.weights
    }


def _path(graph: Graph, constant: str) -> Path:
    return clean(original(graph, constant).split("."))


def _is_around(part: ModuleNode, key: Path) -> bool:
    """Return whether the path of ``part`` is a prefix of ``key``."""
    return part.path == key[: len(part.path)]


def _owning_call(part: ModuleNode, state: State) -> SubmoduleCall | None:
    """Return the call in ``part`` that alone reads and replaces ``state``, or None."""
    for call in part.items:
        if not isinstance(call, SubmoduleCall) or state.after not in call.outputs:
            continue
        alone = not _is_read(part, state.before, call)
        again = sum(other.path == call.path for other in _calls(part)) > 1
        is_owner = _is_around(call.part, _path(part.graph, state.constant))
        is_owner &= not call.part.sequence
        more = len(call.outputs) > 1 or _is_read(part, state.after, call)
        if state.before in call.inputs and alone and is_owner and more and not again:
            return call
    return None


def _calls(part: ModuleNode) -> Iterator[SubmoduleCall]:
    for item in part.items:
        yield from calls_of(item)


def _is_read(part: ModuleNode, name: str, call: SubmoduleCall) -> bool:
    """Return whether ``name`` is a result of ``part`` or read besides ``call``."""
    others = (item for item in part.items if item is not call)
    return name in part.outputs or any(name in _reads(item) for item in others)


def _reads(item: Instruction) -> list[str | None]:
    """Return the names that an instruction reads, including subgraphs."""
    return list(item.node.inputs if isinstance(item, IfCall) else item.inputs)

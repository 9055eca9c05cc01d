"""Which module keeps a state: an array that a call of the model replaces.

It is the innermost one around the state's key in which all that reads the state runs,
and what makes the next one. Others are handed the state, and hand the next one back.
The attribute is where the key says, which may be further inside.
"""

from __future__ import annotations

from collections.abc import Iterator

from burn_import.provenance.path_segments import Path, clean
from burn_import.provenance.weight_owners import original
from burn_import.structure.module_paths import home_of
from burn_import.structure.module_tree import (
    Call,
    Fork,
    Item,
    Part,
    State,
    calls_of,
    layers_of,
)
from burn_ir.graph import Graph


def states_of(graph: Graph) -> list[State]:
    """The states of a model."""
    before = graph.inputs[len(graph.given) :]
    after = graph.outputs[len(graph.results) :]
    return [State(*names) for names in zip(graph.states, before, after, strict=True)]


def hold_states(root: Part) -> None:
    """Give every state of the model to the part that keeps it."""
    for state in states_of(root.graph):
        part = root
        while (call := _inside(part, state)) is not None:
            call.inputs.remove(state.before)
            if not _is_read(part, state.after, call):
                call.outputs.remove(state.after)
            part = call.part
        part.states.append(state)
        _give_place(part, state.constant)


def reach_inside(part: Part) -> None:
    """Let modules read tensors that keys place in modules inside of them.

    They are attributes there, as in the author's model, or weights of a layer.
    """
    for constant in _read_alone(part):
        if constant not in part.reached and home_of(part.graph, constant) is not None:
            _give_place(part, constant)
    for call in _calls(part):
        reach_inside(call.part)


def _read_alone(part: Part) -> Iterator[str]:
    """Yield the stored arrays that nodes of a part read, but no layer of it holds."""
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


def _give_place(part: Part, constant: str) -> None:
    """Make ``constant`` an attribute of the part that its key names."""
    text, owner, key = "", part, _path(part.graph, constant)
    while calls := [call for call in _calls(owner) if _is_around(call.part, key)]:
        inner = calls[0].part
        is_weight = key[len(inner.path) :] in _layer_weights(inner)
        if inner.sequence and not is_weight:
            break
        text, owner = text + _access(calls[0].path), inner
        if is_weight:
            part.reached[constant] = (text + _access(key[len(owner.path) :]))[1:]
            return
    if owner is not part:
        if constant not in owner.held:
            owner.held.append(constant)
        part.reached[constant] = (text + _access(key[-1:]))[1:]


def _access(path: Path) -> str:
    return "".join(f"[{name}]" if name.isdigit() else f".{name}" for name in path)


def _layer_weights(part: Part) -> set[Path]:
    """Return the paths of the weights of layers in a part."""
    return {
        (*path, name) for path, _, layer in layers_of(part) for name in layer.weights
    }


def _path(graph: Graph, constant: str) -> Path:
    return clean(original(graph, constant).split("."))


def _is_around(part: Part, key: Path) -> bool:
    """Whether ``part`` has something at ``key``, as a class of ours or a sequence."""
    return part.path == key[: len(part.path)]


def _inside(part: Part, state: State) -> Call | None:
    """The call of ``part`` that keeps ``state``, if no other item has to do with it."""
    for call in part.items:
        if not isinstance(call, Call) or state.after not in call.outputs:
            continue
        alone = not _is_read(part, state.before, call)
        again = sum(other.path == call.path for other in _calls(part)) > 1
        around = _is_around(call.part, _path(part.graph, state.constant))
        around &= not call.part.sequence
        more = len(call.outputs) > 1 or _is_read(part, state.after, call)
        if state.before in call.inputs and alone and around and more and not again:
            return call
    return None


def _calls(part: Part) -> Iterator[Call]:
    for item in part.items:
        yield from calls_of(item)


def _is_read(part: Part, name: str, call: Call) -> bool:
    """Whether ``part`` hands out ``name``, or something else in it reads it."""
    others = (item for item in part.items if item is not call)
    return name in part.outputs or any(name in _reads(item) for item in others)


def _reads(item: Item) -> list[str | None]:
    """What an item reads; a body has all that it uses among the inputs of its node."""
    return list(item.node.inputs if isinstance(item, Fork) else item.inputs)

"""Parameters and buffers that the program never reads, at the keys that they have.

A ``state_dict`` of the author's module has them. Without them it would not load, and
one of ours would not load there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from burn_import.provenance.path_segments import Path, clean
from burn_import.provenance.weight_owners import original
from burn_import.structure.module_tree import Part, calls_of, layers_of
from burn_ir.graph import Constants, Graph

#: What PyTorch makes itself where a ``state_dict`` lacks it.
_COUNTER = "num_batches_tracked"
#: So many tensors are kept for the keys alone, and so many of their elements; more only
#: if the program reads more.
_MOST_TENSORS, _MOST_ELEMENTS = 64, 1 << 20


def hold_unread(root: Part) -> None:
    """Make attributes of what no node reads, in the parts that the keys name.

    A layer may have one already, under a second name of its weight.
    """
    keys = set(_layer_keys(root))
    for constant in _kept(root.graph):
        owner, key = root, clean(constant.split("."))
        if key in keys:
            continue
        while inside := [p for p in _parts(owner) if _is_around(p, key)]:
            owner = max(inside, key=lambda part: len(part.path))
        owner.held.append(constant)


def unread_notes(graph: Graph) -> tuple[str, ...]:
    """Return a note for the docstring if unread tensors are not in the module."""
    missing = len(still_unread(graph)) - len(_kept(graph))
    if not missing:
        return ()
    return (
        f"The program never reads {missing} of the tensors in the file, which are not "
        "in this module: a state_dict with them does not load.",
    )


def unread(graph: Graph) -> tuple[str, ...]:
    """Return the stored tensors of the author's that no node of a program reads.

    Another name of a tensor that is read is one of them; counts of batches are not.
    """
    constants = graph.constants
    named = {*_read(graph), *graph.states}
    skipped = {original(graph, name) for name in named if name in constants}
    skipped |= constants.transient
    return tuple(
        name
        for name in constants.trained
        if name in constants and name not in skipped and not name.endswith(_COUNTER)
    )


def still_unread(graph: Graph) -> tuple[str, ...]:
    """Return what neither the program nor what passes made of it reads."""
    before = set(graph.constants.unread)
    return tuple(name for name in unread(graph) if name in before)


def _kept(graph: Graph) -> tuple[str, ...]:
    """The unread tensors that the module has: all of them, or none.

    What a pass has made needless (a folded norm) is not among them: a ``state_dict``
    with it must not load, since other weights hold it already.
    """
    constants = graph.constants
    found = still_unread(graph)
    elements = _elements(constants, found)
    others = {name for name in constants.trained if name in constants} - set(found)
    known = _elements(constants, others)
    is_small = elements <= max(known, _MOST_ELEMENTS)
    return found if is_small and len(found) <= _MOST_TENSORS else ()


def _elements(constants: Constants, names: Iterable[str]) -> int:
    return sum(constants[name].size for name in names)


def _layer_keys(part: Part) -> Iterator[Path]:
    """Yield the paths of all parameters of layers in ``part``."""
    for path, _, layer in layers_of(part):
        yield from ((*part.path, *path, name) for name in layer.weights)
    for inner in _parts(part):
        yield from _layer_keys(inner)


def _read(graph: Graph) -> Iterator[str]:
    """Every name that nodes read or that is a result, in bodies too."""
    yield from (name for name in graph.outputs if name)
    for node in graph.nodes:
        yield from (name for name in node.inputs if name)
        for body in node.op.bodies().values():
            yield from _read(body)


def _parts(part: Part) -> Iterator[Part]:
    return (call.part for item in part.items for call in calls_of(item))


def _is_around(part: Part, key: tuple[str, ...]) -> bool:
    """Whether ``part`` is a class of ours that has something at ``key``."""
    return part.path == key[: len(part.path)] and not part.sequence

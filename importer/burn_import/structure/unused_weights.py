"""Parameters and buffers that the program never reads, at their original keys.

The author's ``state_dict`` has them: without them it would not load here, and ours
would not load there.
"""

from collections.abc import Iterable, Iterator

from burn_import.provenance.path_segments import Path, clean
from burn_import.provenance.weight_owners import original
from burn_import.structure.module_tree import ModuleNode, calls_of, layers_of
from burn_ir.graph import Constants, Graph

#: A buffer that PyTorch creates if a ``state_dict`` lacks it.
_COUNTER = "num_batches_tracked"
#: Maximum number of unread tensors that are kept, and of their elements; more elements
#: only if the program reads more.
_MOST_TENSORS, _MOST_ELEMENTS = 64, 1 << 20


def hold_unread(root: ModuleNode) -> None:
    """Add attributes for unread weights to the modules of their keys.

    A layer may have one already, under a second name of its weight.
    """
    keys = set(_layer_keys(root))
    for constant in _kept_tensors(root.graph):
        owner, key = root, clean(constant.split("."))
        if key in keys:
            continue
        while inside := [p for p in _parts(owner) if _is_around(p, key)]:
            owner = max(inside, key=lambda part: len(part.path))
        owner.lent_arrays.setdefault(constant, ())


def unread_notes(graph: Graph) -> tuple[str, ...]:
    """Return a note for the docstring if unread tensors are not in the module."""
    missing = len(still_unread(graph)) - len(_kept_tensors(graph))
    if not missing:
        return ()
    return (
        f"The program never reads {missing} of the tensors in the file, which are not "
        "in this module: a state_dict with them does not load.",
    )


def unread(graph: Graph) -> tuple[str, ...]:
    """Return the author's stored tensors that no node of a program reads.

    Aliases of read tensors count as unread; batch counters are left out.
    """
    constants = graph.constants
    named = {*_read_names(graph), *graph.states}
    skipped = {original(graph, name) for name in named if name in constants}
    skipped |= constants.transient
    return tuple(
        name
        for name in constants.trained
        if name in constants and name not in skipped and not name.endswith(_COUNTER)
    )


def still_unread(graph: Graph) -> tuple[str, ...]:
    """Return the tensors that neither the program nor the passes' result reads."""
    before = set(graph.constants.unread)
    return tuple(name for name in unread(graph) if name in before)


def _kept_tensors(graph: Graph) -> tuple[str, ...]:
    """Return the unread tensors that the module keeps: all of them, or none.

    Tensors that a pass made unnecessary (a folded norm) are left out: a
    ``state_dict`` with them must not load, since other weights contain them
    already.
    """
    constants = graph.constants
    unread = still_unread(graph)
    elements = _elements(constants, unread)
    others = {name for name in constants.trained if name in constants} - set(unread)
    read_elements = _elements(constants, others)
    is_small = elements <= max(read_elements, _MOST_ELEMENTS)
    return unread if is_small and len(unread) <= _MOST_TENSORS else ()


def _elements(constants: Constants, names: Iterable[str]) -> int:
    return sum(constants[name].size for name in names)


def _layer_keys(part: ModuleNode) -> Iterator[Path]:
    """Yield the paths of all parameters of layers in ``part``."""
    for path, _, layer in layers_of(part):
        names = (name.split(".") for name in layer.weights)
        yield from ((*part.path, *path, *segments) for segments in names)
    for inner in _parts(part):
        yield from _layer_keys(inner)


def _read_names(graph: Graph) -> Iterator[str]:
    """Yield every name that nodes read or that is a result, including subgraphs."""
    yield from (name for name in graph.outputs if name)
    for node in graph.nodes:
        yield from (name for name in node.inputs if name)
        for body in node.op.bodies().values():
            yield from _read_names(body)


def _parts(part: ModuleNode) -> Iterator[ModuleNode]:
    return (call.part for item in part.items for call in calls_of(item))


def _is_around(part: ModuleNode, key: tuple[str, ...]) -> bool:
    """Return whether ``key`` is inside ``part``, which has a class of its own."""
    return part.path == key[: len(part.path)] and not part.sequence

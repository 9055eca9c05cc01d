"""Fixed extents of inputs made symbolic: a batch of 1 becomes ``batch``.

Exporters without dynamic axes write the extents of the example input into the file: in
the targets of Reshape, the sizes of Resize, the initial states of LSTM. The constants
that follow from the opened extent are rewritten, and the result is compared with the
file: examples in one batch must give what each gives alone.
"""

from collections.abc import Mapping
from dataclasses import replace

from burn_import.options import Extents
from burn_import.transform.errors import WrongOptions
from burn_import.transform.opening.graph import BatchGraph
from burn_import.transform.opening.rules import adapted
from burn_ir.dim import counting_unnamed, symbol, symbols
from burn_ir.error_context import error_context
from burn_ir.errors import Problem
from burn_ir.graph import Graph, Node
from burn_ir.types import Type

#: Names of opened extents by input and axis.
Opened = Mapping[str, Mapping[int, str]]


def split_opened(
    types: Mapping[str, Type], shapes: Mapping[str, Extents]
) -> tuple[dict[str, Extents], dict[str, dict[int, str]]]:
    """Return ``shapes`` without names for fixed extents, and these names by axis."""
    rest: dict[str, Extents] = {}
    opened: dict[str, dict[int, str]] = {}
    for name, extents in shapes.items():
        shape = types[name].shape if name in types else None
        if shape is None or len(shape) != len(extents):
            rest[name] = extents
            continue
        kept: list[int | str] = []
        for axis, (old, new) in enumerate(zip(shape, extents, strict=True)):
            opens = isinstance(old, int) and isinstance(new, str) and new.isidentifier()
            kept.append(int(old) if opens else new)
            if opens:
                opened.setdefault(name, {})[axis] = str(new)
        rest[name] = tuple(kept)
    return rest, opened


def open_extents(graph: Graph, opened: Opened) -> Graph:
    """Return ``graph`` with fixed extents of inputs replaced by a symbol.

    ``opened`` has the names of the new symbols by input and axis. The extents of one
    name must be equal in the file.

    Raises:
        WrongOptions: the name or the extents do not fit.
        InvalidModel: an operator does not accept the symbol; the error names its node.
    """
    (name,) = _one_name(opened)
    extent = _extent_of(graph, opened)
    types = {
        value: _with_symbol(graph.types[value], opened.get(value, {}))
        for value in graph.inputs
    }
    batch = BatchGraph(graph, symbol(name), extent, types)
    with counting_unnamed():
        nodes = _nodes(batch)
    return replace(graph, nodes=nodes, types=batch.types)


def _nodes(batch: BatchGraph) -> tuple[Node, ...]:
    """Return the nodes for the types of the inputs; store the types of all values."""
    nodes: list[Node] = []
    for node in batch.graph.nodes:
        if all(batch.is_unchanged(name) for name in node.inputs):
            batch.keep(node)
            nodes.append(node)
            continue
        with error_context(node, batch.graph.opsets):
            batch.inserted = []
            changed = adapted(batch, node)
            nodes += [batch.typed(one) for one in (*batch.inserted, changed)]
            batch.check_extents(node)
            batch.note_outer(node)
    return tuple(nodes)


def _one_name(opened: Opened) -> set[str]:
    names = {name for axes in opened.values() for name in axes.values()}
    if len(names) != 1:
        shown = ", ".join(sorted(names))
        message = f"expected one name for extents that the file fixes, got {shown}"
        raise WrongOptions([Problem(message)])
    return names


def _extent_of(graph: Graph, opened: Opened) -> int:
    """Return the extent in the file of all opened axes."""
    (name,) = _one_name(opened)
    if any(
        name in symbols(dim)
        for value in graph.inputs
        for dim in graph.types[value].shape or ()
    ):
        message = f"expected a name that no extent of the file has, got {name!r}"
        raise WrongOptions([Problem(message)])
    extents = {
        f"input {value!r}, axis {axis}": graph.types[value].dims[axis]
        for value, axes in opened.items()
        for axis in axes
    }
    if len(set(extents.values())) != 1:
        shown = ", ".join(f"{where} has {extent}" for where, extent in extents.items())
        message = f"expected equal extents to call {name!r}: {shown}"
        raise WrongOptions([Problem(message)])
    extent = next(iter(extents.values()))
    assert isinstance(extent, int)
    if extent == 0:
        raise WrongOptions([Problem(f"expected an extent above 0 to call {name!r}")])
    return extent


def _with_symbol(value_type: Type, names: Mapping[int, str]) -> Type:
    if not names:
        return value_type
    dims = list(value_type.dims)
    for axis, name in names.items():
        dims[axis] = symbol(name)
    return value_type.with_shape(dims)

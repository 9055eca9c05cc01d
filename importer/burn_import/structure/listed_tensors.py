"""Owners and readers of tensors that the file lists with the author's keys."""

from burn_import.provenance.path_segments import Path, clean
from burn_import.provenance.weight_owners import original
from burn_import.rewriting.arrays import same_view
from burn_ir.graph import Graph


def home_of(graph: Graph, constant: str) -> Path | None:
    """Return the module that owns a listed tensor, None for other arrays.

    Only arrays with the author's shape and layout qualify.
    """
    name, constants = original(graph, constant), graph.constants
    if name not in constants.trained or name in graph.states:
        return None
    if not same_view(constants[name], constants[constant]):
        return None
    return clean(name.split("."))[:-1]


def reader_of(graph: Graph, constant: str) -> Path | None:
    """Return the module whose code reads a listed tensor, None for other arrays.

    An ``nn.ParameterList`` has no code: the module around it reads its tensors.
    """
    home = home_of(graph, constant)
    if home and original(graph, constant).rpartition(".")[2].isdigit():
        return home[:-1]
    return home

"""Keys of weights that have several: the one of the module that reads them.

A decoder that holds the encoder lists the weights of the encoder once more, and a
program may name them there, although the encoder is called outside of the decoder.
"""

from dataclasses import replace

from burn_import.provenance.path_segments import Path, clean
from burn_import.rewriting.arrays import same_view
from burn_import.rewriting.graphs import with_nodes
from burn_ir.graph import Graph, Node


def with_scoped_keys(graph: Graph) -> Graph:
    """Return ``graph`` with the keys of the scopes that read weights.

    Only keys of modules that are no scope are replaced: tied weights of two modules
    keep theirs.
    """
    constants = graph.constants
    listed = {
        clean(key.split(".")): key for key in constants.trained if key in constants
    }
    scopes = {clean(node.scope) for node in graph.nodes}

    def scoped_key(node: Node, key: str | None) -> str | None:
        if key is None or key not in constants or key not in constants.trained:
            return key
        path: Path = clean(key.split("."))
        other = listed.get((*clean(node.scope), path[-1]))
        if other is None or path[:-1] in scopes:
            return key
        return other if same_view(constants[other], constants[key]) else key

    nodes = [
        replace(node, inputs=tuple(scoped_key(node, name) for name in node.inputs))
        for node in graph.nodes
    ]
    return with_nodes(graph, nodes)

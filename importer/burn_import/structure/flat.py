"""A graph as a single module, without recovered submodules."""

from burn_import.provenance.path_segments import Path
from burn_import.structure.module_paths import assign_paths
from burn_import.structure.module_tree import ModuleNode, Tree
from burn_import.structure.shared_classes import share_classes
from burn_import.structure.state_owners import states_of
from burn_import.structure.unused_weights import hold_unread
from burn_import.tracing.identifiers import Namespace, camel, identifier
from burn_ir.graph import Graph


def flatten(graph: Graph, class_name: str) -> Tree:
    """Return a tree of ``graph`` with only its root, called ``class_name``.

    Layers are its attributes, with paths of one segment: ``encoder.0.query``
    becomes ``encoder_0_query``.
    """
    layers = assign_paths(graph, ()).layers
    names = Namespace()
    flat: dict[Path, Path] = {}
    for path in layers.values():
        if path not in flat:
            flat[path] = (names.unique(identifier("_".join(path), "layer")),)
    part = ModuleNode(
        (),
        camel(class_name),
        list(graph.nodes),
        list(graph.arguments),
        list(graph.results),
        graph,
        {key: flat[path] for key, path in layers.items()},
    )
    part.states = states_of(graph)
    hold_unread(part)
    return share_classes(part)

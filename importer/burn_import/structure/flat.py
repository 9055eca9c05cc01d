"""A graph as one module, whatever its file tells of others inside it."""

from __future__ import annotations

from burn_import.provenance.path_segments import Path
from burn_import.structure.module_paths import places
from burn_import.structure.module_tree import Part, Tree
from burn_import.structure.shared_classes import share_classes
from burn_import.structure.state_owners import states_of
from burn_import.structure.unused_weights import hold_unread
from burn_import.tracing.identifiers import Namespace, camel, identifier
from burn_ir.graph import Graph


def flattened(graph: Graph, class_name: str) -> Tree:
    """The tree of ``graph`` that is its root alone, called ``class_name``.

    Layers are its attributes, with paths of one segment: ``encoder.0.query`` is
    ``encoder_0_query``.
    """
    layers = places(graph, ()).layers
    names = Namespace()
    flat: dict[Path, Path] = {}
    for path in layers.values():
        if path not in flat:
            flat[path] = (names.unique(identifier("_".join(path), "layer")),)
    part = Part(
        (),
        camel(class_name),
        list(graph.nodes),
        list(graph.given),
        list(graph.results),
        graph,
        {key: flat[path] for key, path in layers.items()},
    )
    part.states = states_of(graph)
    hold_unread(part)
    return share_classes(part)

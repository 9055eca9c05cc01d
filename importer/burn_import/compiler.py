"""The compiler's back end: from a typed graph to the source of a module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from burn_import.codegen.module.module import Source, emit
from burn_import.passes import simplify
from burn_import.passes.cleanup.dead_code import dead_code
from burn_import.passes.cleanup.repeated_constants import repeated
from burn_import.provenance.exporter_folding import folding_notes
from burn_import.provenance.merged_parameters import with_own_parameters
from burn_import.provenance.path_segments import ROOT
from burn_import.provenance.stored_lookups import with_embeddings
from burn_import.provenance.weight_owners import is_list
from burn_import.rewriting.graphs import apply_with_bodies
from burn_import.structure import Tree, flatten, recover
from burn_import.structure.constant_roles import note_fills
from burn_import.structure.folded_expressions import with_derivations
from burn_import.structure.foreign_tensors import pass_tensors_down
from burn_import.structure.literals import with_literals
from burn_import.structure.requirements import dropout_notes, extra_notes
from burn_import.structure.scopes.scoped_keys import with_scoped_keys
from burn_import.structure.unused_weights import unread, unread_notes
from burn_ir.graph import Graph

if TYPE_CHECKING:
    from burn_import.options import Options

__all__ = ["Source", "compile_graph"]


def compile_graph(
    graph: Graph,
    options: Options,
    record: str,
    notes: Sequence[str] = (),
    inside: str = "",
) -> Source:
    """Return the source of ``graph`` and its weights.

    ``record`` is the file name of the weights beside the module; ``notes`` are
    sentences for its docstring. ``inside`` is the attribute of a module that is the
    whole model; its name is left out of keys.

    Raises:
        ValueError: the options name an unknown pass.
        burn_ir.InvalidModel: an operand that must be constant is computed at run time.
    """
    graph = simplified(graph, options)
    notes = (*notes, *folding_notes(graph), *unread_notes(graph), *extra_notes(graph))
    if options.dropout:
        notes = (*notes, *dropout_notes(graph, notes))
    tree = module_tree(graph, options)
    inside = inside or ROOT * is_list(graph)
    if options.target == "torch":
        from burn_import.codegen.torch.module import emit_torch

        return emit_torch(tree, graph, record, notes, inside)
    return emit(tree, graph, record, notes, inside)


def simplified(graph: Graph, options: Options) -> Graph:
    """Return ``graph`` after the passes, ready for the recovery of modules.

    Raises:
        ValueError: the options name an unknown pass.
    """
    # Dead code is removed even without passes: modules of dead nodes would return
    # nothing.
    graph = with_scoped_keys(apply_with_bodies(dead_code, graph))
    graph.constants.unread = unread(graph)
    graph = apply_with_bodies(dead_code, simplify(graph, options.passes))
    graph = with_embeddings(with_own_parameters(graph))
    note_fills(graph)
    graph = with_literals(with_derivations(repeated(graph)))
    return graph if options.flat else pass_tensors_down(graph)


def module_tree(graph: Graph, options: Options) -> Tree:
    """Return the tree of modules of a simplified graph."""
    name = options.class_name or graph.name
    if options.flat:
        return flatten(graph, name)
    return recover(graph, name, keeps_keys=options.target == "burn")

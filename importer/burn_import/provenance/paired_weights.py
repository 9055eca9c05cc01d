"""Names of transposed matrices, from the author's names of the biases beside them."""

from itertools import chain

from burn_import.provenance.exporter_folding import is_computed, is_folded
from burn_import.provenance.path_segments import Path, clean
from burn_import.provenance.weight_owners import (
    is_authored,
    is_uniform,
    moved_to_sibling,
    original,
)
from burn_ir.graph import Graph, nested_nodes
from burn_ir.ops.fused import Linear

_BIAS, _WEIGHT = "_bias", "_weight"


def weights_of_biases(graph: Graph) -> dict[str, Path]:
    """Return paths of matrices that an exporter stored transposed, without their names.

    The ``in_proj_weight`` of ``nn.MultiheadAttention`` is the matrix that is applied
    with ``in_proj_bias``: no array of the file has the key. A matrix that is applied
    with several biases has no path. Equal biases, such as new ones of zeros, are stored
    once; the matrix then is in the module that applies it.
    """
    constants = graph.constants
    paths: dict[str, set[Path]] = {}
    for node in chain.from_iterable(map(nested_nodes, graph.nodes)):
        if not isinstance(node.op, Linear):
            continue
        _, weight, bias = (*node.inputs, None)[:3]
        if weight not in constants or bias not in constants:
            continue
        assert weight is not None and bias is not None
        name = original(graph, bias)
        if not is_folded(graph, weight) or is_computed(original(graph, weight)):
            continue
        key = f"{name.removesuffix(_BIAS)}{_WEIGHT}"
        is_bias = name.endswith(_BIAS) and is_authored(graph, bias)
        path, scope = clean(key.split(".")), clean(node.scope)
        if scope and is_uniform(constants[bias]):  # one for all modules
            path = (*scope, path[-1])
        path = moved_to_sibling(scope, path) or path
        if is_bias and ".".join(path) not in constants:
            paths.setdefault(weight, set()).add(path)
    single = {w: min(own) for w, own in paths.items() if _are_siblings(own)}
    taken = list(single.values())
    return {weight: path for weight, path in single.items() if taken.count(path) == 1}


def _are_siblings(paths: set[Path]) -> bool:
    """Return whether paths differ only in the element of a list that they are in."""
    first = min(paths)
    return all(moved_to_sibling(p, first) == p for p in paths if p != first)

"""Every case of every pass keeps the gradients.

Constants that folding computed from unnamed arrays are not compared.
"""

from math import prod

import pytest

from burn_import.passes import OPTIONAL_PASSES, PASSES, simplify
from burn_ir import Graph
from burn_ir.dim import Dim
from tests.importer.passes.cases import Case, cases, graph_of
from tests.importer.passes.gradients.derivatives import compare

NAMES = [apply.__name__ for apply in (*PASSES, *OPTIONAL_PASSES)]
CASES = [case for name in NAMES for case in cases(name)]
#: Errors allowed for half types, and for float64.
HALF, DOUBLE = 3e-2, 1e-5
#: Larger graphs are skipped because their gradients take too long.
LARGE = 1 << 16


def extent(dim: Dim) -> int:
    """Return an extent, 1 for a symbol."""
    return dim if isinstance(dim, int) else 1


def doubled(case: Case) -> tuple[Graph, float]:
    """Return the graph of a case, in float64 if possible, and the error allowed."""
    graph = graph_of(case.doubled())
    if not all(node.op.deterministic for node in graph.nodes):
        pytest.skip("a random operator draws anew in every run")
    if any(prod(map(extent, t.shape or ())) > LARGE for t in graph.types.values()):
        pytest.skip("a case about memory")
    return graph, HALF if "float16" in case.model else DOUBLE


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
@pytest.mark.sampled(8)
def test_the_pass_keeps_gradients(case: Case) -> None:
    graph, error = doubled(case)
    after = simplify(graph, [case.file])
    if after is not graph:
        compare(graph, after, error, weights=case.file != "fold_constants")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
@pytest.mark.sampled(8)
def test_all_passes_keep_gradients(case: Case) -> None:
    graph, error = doubled(case)
    compare(graph, simplify(graph), error, weights=False)

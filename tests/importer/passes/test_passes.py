"""Every case of every pass: the remaining nodes, and equal outputs."""

import pytest

from burn_import.passes import (
    OPTIONAL_PASSES,
    PASSES,
    pass_names,
    simplify,
    summary,
)
from burn_import.rewriting.pattern import FormulaPass
from burn_ir import Graph
from tests.importer.passes.cases import (
    FOLDER,
    Case,
    cases,
    graph_of,
    listing,
    same_values,
)

NAMES = [apply.__name__ for apply in (*PASSES, *OPTIONAL_PASSES)]
CASES = [case for name in NAMES for case in cases(name)]
#: The least number of cases that a pass changes, and that it leaves alone.
POSITIVE, NEGATIVE = 3, 5
#: Passes that change rounding, with the error allowed.
ROUNDING = {
    "attention",
    "batch_norm_affine",
    "conv_bias",
    "einsum_attention",
    "elu",
    "expand_quantized_operators",
    "expand_skip_norms",
    "fold_batch_norm",
    "gelu",
    "group_norm",
    "hard_sigmoid",
    "hard_swish",
    "instance_norm",
    "layer_norm",
    "leading_transposes",
    "leaky_relu",
    "linear",
    "mish",
    "multihead_attention",
    "prelu",
    "recurrent",
    "recurrent_cells",
    "repeat_kv",
    "rms_norm",
    "rope",
    "rotations",
    "silu",
    "softmax",
    "softplus",
    "softsign",
}
#: Errors of half types where they are rounded less often than before.
HALF = 5e-3


def test_every_pass_is_in_a_file_of_its_name() -> None:
    passes = (*PASSES, *OPTIONAL_PASSES)
    functions = [one for one in passes if not isinstance(one, FormulaPass)]
    files = [apply.__module__.rpartition(".")[2] for apply in functions]
    assert files == [apply.__name__ for apply in functions]


def test_every_pass_has_a_summary_of_its_own() -> None:
    summaries = [summary(name) for name in pass_names()]
    assert all(len(one) > 25 and one.endswith(".") for one in summaries)
    assert len(set(summaries)) == len(summaries)


def test_every_pass_has_its_cases() -> None:
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_pass_has_enough_cases(name: str) -> None:
    graphs = [graph_of(case.model) for case in cases(name)]
    changed = sum(simplify(graph, [name]) is not graph for graph in graphs)
    assert changed >= POSITIVE and len(graphs) - changed >= NEGATIVE


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
@pytest.mark.sampled(6)
def test_listing(case: Case) -> None:
    graph = graph_of(case.model)
    assert listing(simplify(graph, [case.file])) == case.expected


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
@pytest.mark.parametrize("double", [False, True], ids=["float32", "float64"])
@pytest.mark.sampled(6)
def test_the_pass_keeps_values(case: Case, double: bool) -> None:
    graph = graph_of(case.doubled() if double else case.model)
    skip_random(graph)
    error = allowed(case, 1e-6 if double else 1e-5) if case.file in ROUNDING else 0.0
    same_values(graph, simplify(graph, [case.file]), error)


def allowed(case: Case, error: float) -> float:
    """Return the error allowed for a case, given ``error`` for other types."""
    return HALF if "float16" in case.model else error


def skip_random(graph: Graph) -> None:
    if not all(node.op.deterministic for node in graph.nodes):
        pytest.skip("a random operator draws anew in every run")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
@pytest.mark.sampled(6)
def test_all_passes_keep_values(case: Case) -> None:
    graph = graph_of(case.doubled())
    skip_random(graph)
    simple = simplify(graph)
    same_values(graph, simple, allowed(case, 1e-6))
    assert simplify(simple) is simple

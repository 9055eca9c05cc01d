"""Whole models with every pass, with none, and with each alone: the same results.

Graphs are evaluated as they are, without their source. ``--zoo`` says where the models
are. A pass that changes nothing of a model gives the very same graph, which is not
evaluated again.
"""

from pathlib import Path

import numpy as np
import pytest

from burn_import.frontends.onnx import read
from burn_import.passes import PASSES, simplify
from burn_ir import Graph, build
from burn_ir.evaluate import evaluate
from tests.zoo.known import REFUSED
from tests.zoo.recorded import Case, Value, given, zoo_cases
from tests.zoo.test_recorded import ZOO

#: What the manifest says for a whole import holds for a graph as well.
CHOICES: tuple[tuple[str, list[str] | None], ...] = (
    ("none", []),
    ("all", None),
    *((apply.__name__, [apply.__name__]) for apply in PASSES),
)


def models(zoo: Path) -> list[object]:
    """Return the parameters of the test: one for each model, or one that is skipped."""
    if not (zoo / "manifest.json").is_file():
        skip = pytest.mark.skip(reason=f"no models in {zoo.name}/ (see --zoo)")
        return [pytest.param(None, id="--zoo", marks=skip)]
    return [
        pytest.param(case, id=case.name, marks=pytest.mark.models)
        for case in zoo_cases(zoo)
        if case.goldens and case.name.split("/")[0] in ZOO and case.name not in REFUSED
    ]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Return nothing; one test for each model."""
    metafunc.parametrize("case", models(metafunc.config.getoption("--zoo")))


@pytest.mark.sampled(12)
def test_passes_keep_results(case: Case) -> None:
    graph = build(read(case.path))
    for name, names in CHOICES:
        after = simplify(graph, names)
        if after is graph and names != []:
            continue
        for golden in case.goldens:
            inputs, expected = golden.read()
            results = computed(after, inputs)
            for position, value in expected.items():
                where = f"{golden.path.name}, output {position}, passes {name}"
                case.compare(results[position], value, where)


def computed(graph: Graph, inputs: list[Value]) -> list[Value]:
    """Return what ``graph`` gives for ``inputs``."""
    with np.errstate(all="ignore"):
        return list(evaluate(graph, [given(value) for value in inputs]))

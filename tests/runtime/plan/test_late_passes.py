"""Passes that are imported when a plan has steps for them."""

import subprocess
import sys
from typing import Any

import pytest

import burn.plan.passes
from burn.plan.passes.graph import Graph, Pass, Steps
from tests.runtime.plan.graphs import Maker
from tests.runtime.plan.test_random_graphs import LENGTH, forward, gradients

ELEMENTWISE = """
import sys
import burn
from burn import ops

function = burn.compile(lambda x: ops.sigmoid(x) * 2.0)
x = burn.tensor([[[0.0], [1.0]]])
for _ in range(3):
    print(function(x).shape)
fusions = (name for name in sys.modules if name.startswith("burn.plan.passes.fusion."))
print(sorted(name.rpartition(".")[2] for name in fusions))
"""


def checked(function: Pass) -> Pass:
    """A pass that fails where it leaves out a plan that it would change."""

    def check(steps: Steps, graph: Graph) -> Steps:
        result, whole = function(steps, graph), getattr(function, "__wrapped__", None)
        if result is steps and whole is not None:
            others = whole(list(steps), graph)
            same = [one is other for one, other in zip(others, steps, strict=True)]
            assert all(same), f"{whole.__name__} changes steps: {steps}"
        return result

    return check


@pytest.mark.parametrize("seed", range(12))
def test_passes_are_left_out_where_they_change_nothing(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes: Any = burn.plan.passes
    for names in ("PASSES", "LAST"):
        monkeypatch.setattr(passes, names, tuple(map(checked, getattr(passes, names))))
    graph = Maker(seed).graph(LENGTH)
    assert forward(graph) is None
    assert gradients(graph) is None


def test_a_plan_without_layers_imports_no_passes_for_them() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ELEMENTWISE], capture_output=True, text=True, check=True
    )
    *shapes, modules = done.stdout.splitlines()
    assert shapes == ["(1, 2, 1)"] * 3
    assert modules in ("['chains']", "[]")  # without oneDNN kernels are generated


def test_an_unknown_pass_fails_where_it_is_needed() -> None:
    from burn.plan.passes.late import late

    step: Any = type("Step", (), {})()
    graph: Any = type("Graph", (), {"primitives": {"add"}})()
    assert late("absent", "absent", "mul")([step], graph) == [step]
    with pytest.raises(ModuleNotFoundError):
        late("absent", "absent", "add mul")([step], graph)

"""The uses of a plan's places are counted again only where a pass changed steps."""

import numpy as np
import pytest

from burn import ops
from burn.plan import passes
from burn.plan.passes import run_passes
from burn.plan.passes.graph import Graph, Pass, Steps
from burn.plan.plan_ir import Segment, Slot, Step


def unchanged(steps: Steps, graph: Graph) -> Steps:
    return list(steps)


def without_last(steps: Steps, graph: Graph) -> Steps:
    del steps[-1]
    return steps


def with_unused_step(steps: Steps, graph: Graph) -> Steps:
    graph.new_step(ops.relu, (Slot(0),), (3,))
    return steps


@pytest.mark.parametrize(
    ("order", "count"),
    [
        ((unchanged, unchanged, unchanged), 1),
        ((unchanged, without_last, unchanged), 2),
        ((with_unused_step, unchanged), 2),
    ],
)
def test_graph_is_built_after_changes_alone(
    monkeypatch: pytest.MonkeyPatch, order: tuple[Pass, ...], count: int
) -> None:
    built: list[Graph] = []

    class Counted(Graph):
        def __init__(self, *args: object) -> None:
            super().__init__(*args)  # type: ignore[arg-type]
            built.append(self)

    monkeypatch.setattr(passes, "Graph", Counted)
    float32 = np.dtype(np.float32)
    steps = [
        Step(ops.relu, (Slot(place),), {}, (place + 1,), ((3,),), (float32,))
        for place in (0, 1)
    ]
    root = Segment(list(steps), result=Slot(1))
    result = run_passes(root, [((3,), float32)], order)
    assert len(built) == count
    assert len(root.steps) == 2
    assert len(result.steps) == 2 - (without_last in order)

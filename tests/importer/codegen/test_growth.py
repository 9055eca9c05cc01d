"""Import time grows in proportion to the size of the model."""

import gc
import itertools
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from burn_import.pipeline import import_model
from burn_ir import InvalidModel
from tests.importer.onnx_files import graph, model, saved, stored
from tests.pace import counted_calls

#: Maximum number of Python calls per node that stays in the graph, in an import from
#: end to end; 320 were counted.
CALLS = 400
#: The same for nodes with a weight of their own; 2820 were counted.
WEIGHT_CALLS = 3100
RELU = helper.make_node("Relu", ["x"], ["y"], name="act")


@pytest.mark.parametrize("enabled", [False, True])
def test_an_import_leaves_the_collector_as_it_was(
    tmp_path: Path, enabled: bool
) -> None:
    good = saved(tmp_path / "good.onnx", model(graph([RELU])))
    bad = saved(tmp_path / "bad.onnx", model(graph([RELU], {})))
    before = gc.isenabled()
    try:
        gc.enable() if enabled else gc.disable()
        import_model(good)
        assert gc.isenabled() == enabled
        with pytest.raises(InvalidModel):
            import_model(bad)
        assert gc.isenabled() == enabled
    finally:
        gc.enable() if before else gc.disable()


def chain(folder: Path, count: int, with_weights: bool) -> Path:
    """A file with ``count`` nodes in a row, each with a weight of its own or none."""
    values = ["x", *(f"v{number}" for number in range(count - 1)), "y"]
    nodes, weights = [], []
    for number, (a, b) in enumerate(itertools.pairwise(values)):
        inputs = [a, f"w{number}"] if with_weights else [a]
        nodes.append(helper.make_node("Mul" if with_weights else "Relu", inputs, [b]))
        weights.append(stored(f"w{number}", np.array([1.0, number, 3.0], np.float32)))
    proto = graph(nodes, initializers=tuple(weights) if with_weights else ())
    return saved(folder / f"chain_{count}.onnx", model(proto))


@pytest.mark.parametrize(
    ("with_weights", "start", "most"),
    [
        (False, 100, CALLS),
        pytest.param(True, 400, WEIGHT_CALLS, marks=pytest.mark.thorough),
    ],
)
def test_a_node_costs_so_many_calls_however_many_there_are(
    tmp_path: Path, with_weights: bool, start: int, most: int
) -> None:
    """``start`` is a size at which the cost of splitting long functions is in all."""
    counts = (start, 2 * start, 4 * start)
    paths = [chain(tmp_path, count, with_weights) for count in counts]
    import_model(paths[0])  # what is imported and looked up once
    few, more, many = (counted_calls(partial(import_model, path)) for path in paths)
    first, second = (more - few) / start, (many - more) / (2 * start)
    assert second <= first * 1.05
    assert second < most

"""Import time grows in proportion to the size of the model."""

import gc
import itertools
import sys
from pathlib import Path

import pytest
from onnx import helper

from burn_import.pipeline import import_model
from burn_ir import InvalidModel
from tests.importer.onnx_files import graph, model, saved

#: Maximum number of Python calls per node that stays in the graph, in an import from
#: end to end; 320 were counted.
CALLS = 400
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


def calls(path: Path) -> int:
    """Return the number of Python function calls in an import."""
    count = 0

    def note(_: object, event: str, __: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        import_model(path)
    finally:
        sys.setprofile(before)
    return count


def test_a_node_costs_so_many_calls_however_many_there_are(tmp_path: Path) -> None:
    paths = []
    for count in (100, 200, 400):
        values = ["x", *(f"v{number}" for number in range(count - 1)), "y"]
        nodes = [
            helper.make_node("Relu", [a], [b]) for a, b in itertools.pairwise(values)
        ]
        paths.append(saved(tmp_path / f"chain_{count}.onnx", model(graph(nodes))))
    import_model(paths[0])  # what is imported and looked up once
    few, more, most = map(calls, paths)
    first, second = (more - few) / 100, (most - more) / 200
    assert second <= first * 1.05
    assert second < CALLS

"""What keeps the time of an import in proportion to the model."""

import gc
import itertools
import sys
from pathlib import Path

import pytest
from onnx import helper

from burn_import.pipeline import import_model
from burn_ir import InvalidModel
from tests.importer.onnx_files import graph, model, saved

#: What a node that nothing removes at once may cost, in calls of Python functions by
#: the import from end to end; 320 were counted.
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
    """Return how many functions of Python an import calls."""
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

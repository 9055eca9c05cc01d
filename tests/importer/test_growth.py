"""What keeps the time of an import in proportion to the model."""

import gc
from pathlib import Path

import pytest
from onnx import helper

from burn_import.pipeline import import_model
from burn_ir import InvalidModel
from tests.importer.onnx_files import graph, model, saved

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

"""Explanations of gradients that differ from PyTorch's, of functions with kinks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

torch: Any = pytest.importorskip("torch")

from tests.wild import torch_results  # noqa: E402
from tests.wild.entry import Case  # noqa: E402
from tests.wild.exporters import unexplained_arrays  # noqa: E402
from tests.wild.verdict import explain_difference, follows  # noqa: E402

pytestmark = pytest.mark.torch


class Function(torch.nn.Module):
    """A module that applies a function to its weight and an input."""

    def __init__(self, function: Any, weight: list[float]) -> None:
        super().__init__()
        self.function = function
        self.weight = torch.nn.Parameter(torch.tensor(weight))

    def forward(self, x: Any) -> Any:
        return self.function(x, self.weight)


def explain(case: Case, found64: Any, change: Any = 0.0) -> str:
    """Return the explanation of gradients that are ``found64``, changed in float32."""
    expected = torch_results.gradients(case.module, case.inputs)
    results = {"weight": np.asarray(found64 + change, np.float32)}
    return explain_difference(case, expected, results, {"weight": found64})


def test_a_lost_detach_is_told_from_a_wrong_gradient() -> None:
    module = Function(lambda x, w: x * w * w.detach(), [2.0, 3.0])
    case = Case(module, (torch.ones(2),))
    gradient = torch_results.gradients64(case)["weight"]
    assert explain(case, 2 * gradient) == "detached"
    assert explain(case, 3 * gradient) == ""


def test_a_smooth_function_leaves_no_room() -> None:
    case = Case(Function(lambda x, w: (x * w).exp(), [2.0, 3.0]), (torch.ones(2),))
    gradient = torch_results.gradients64(case)["weight"]
    assert explain(case, gradient, 0.01 * gradient) == ""
    assert explain(case, gradient, 2e-5 * gradient) == "rounding"


def test_a_gradient_across_a_kink_is_rounding() -> None:
    case = Case(Function(lambda x, w: (w - x).relu(), [3.0, 1.0]), (torch.ones(2),))
    gradient = torch_results.gradients64(case)["weight"]
    assert gradient[1] == 0.0
    other_side = torch_results.output_weights(0, (2,)) * [0, 1]
    assert explain(case, gradient, other_side) == "rounding"


def test_models_store_tensors_with_a_history() -> None:
    def store(x: Any, w: Any) -> Any:
        module.stored = x * w
        return module.stored * w

    module = Function(store, [2.0])
    case = Case(module, (torch.ones(1),))
    torch_results.gradients(module, case.inputs)
    factor = torch_results.output_weights(0, (1,))[0]
    gradient = torch_results.gradients64(case)["weight"]
    np.testing.assert_allclose(gradient, [4.0 * factor], rtol=1e-12)
    assert torch_results.gradient_noise(case, {"weight": gradient}) < 1e-4


def test_without_float64_small_differences_can_be_rounding() -> None:
    def single(x: Any, w: Any) -> Any:
        if w.dtype != torch.float32:
            raise RuntimeError("float32 only")
        return (w - x).relu()

    module = Function(single, [3.0, 1.0])
    case = Case(module, (torch.ones(2),))
    expected = torch_results.gradients(module, case.inputs)
    for change, reason in ((1e-3, "rounding"), (0.1, "")):
        actual = {"weight": expected["weight"] * np.float32(1 + change)}
        assert explain_difference(case, expected, actual, {}) == reason


def test_a_lost_detach_of_a_model_in_float32_only() -> None:
    """The finite difference is then that of the module."""

    def single(x: Any, w: Any) -> Any:
        if w.dtype != torch.float32:
            raise RuntimeError("float32 only")
        return x * w * w.detach()

    case = Case(Function(single, [2.0, 3.0]), (torch.ones(2),))
    expected = torch_results.gradients(case.module, case.inputs)
    factors = torch_results.output_weights(0, (2,)).astype(np.float64)
    right = 2 * factors * [2.0, 3.0]

    def slope(direction: Any) -> float:
        return float((direction["weight"] * right).sum())

    for factor, reason in ((1.0, "detached"), (1.5, "")):
        actual = {"weight": factor * right}
        args = (case, expected, actual, actual)
        assert explain_difference(*args, slope64=slope) == reason


def test_what_onnxruntime_refuses_is_no_miss(tmp_path: Path) -> None:
    from burn_ir import InvalidModel
    from tests.wild.entry import Entry, Task
    from tests.wild.examine import Examination
    from tests.wild.exporters import run_onnxruntime

    text = '<ir_version: 8, opset_import: ["" : 18]> g (float[2] x) => (float[2] y)'
    bad = onnx.parser.parse_model(text + "{ y = Reshape <allowzero = 2> (x) }")
    onnx.save(bad, tmp_path / "bad.onnx")
    with pytest.raises(Exception) as refusal:  # noqa: B017, PT011  by another package
        run_onnxruntime(tmp_path / "bad.onnx", {"x": np.ones(2, np.float32)})
    entry = Entry("lib", "nets", "bad", lambda: Case(torch.nn.ReLU(), ()))
    outcomes = []
    for error in (NotImplementedError("no kernel"), refusal.value):
        examination = Examination(Task(entry, "onnx-dynamo"), tmp_path, print)
        examination.expected = []
        assert not examination._is_final("reference", error)
        assert examination._is_final("import", InvalidModel("no such axis"))
        outcomes.append(examination.row.outcome)
    assert outcomes == ["refused", "invalid file"]


def test_arrays_that_the_exporter_computed_are_told_from_copies(tmp_path: Path) -> None:
    module = Function(lambda x, w: x * w, [2.0, 3.0])
    arrays = {"turned": [3.0, 2.0], "less_one": [1.0, 2.0]}
    tensors = [
        onnx.numpy_helper.from_array(np.array(values, np.float32), name)
        for name, values in arrays.items()
    ]
    graph = onnx.helper.make_graph([], "g", [], [], tensors)
    onnx.save(onnx.helper.make_model(graph), tmp_path / "model.onnx")
    assert unexplained_arrays(tmp_path / "model.onnx", module) == ["less_one"]


def test_gradients_follow_the_slope_along_themselves() -> None:
    found = {"weight": np.array([3.0, 4.0])}
    assert follows(found, lambda direction: 25.0)
    assert not follows(found, lambda direction: 5.0)


class Stored:
    """Results in place of a generated module's."""

    def __init__(self, values: list[float]) -> None:
        self.values = values

    def load(self) -> None:
        """Return no model: there is none."""

    def call(self, model: None, arrays: Any) -> list[Any]:
        """Return the results."""
        return [np.array(self.values)]


@pytest.mark.parametrize("value", [1.0, 1.1])
def test_results_that_rounding_decides_are_compared_in_float64(
    value: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.wild import examine
    from tests.wild.entry import Entry, Task
    from tests.wild.exporters import Exported

    case = Case(Function(lambda x, w: (x + w) - w, [1e8, 1e8]), (torch.ones(2),))
    task = Task(Entry("lib", "nets", "rounded", lambda: case), "pt2")
    examination = examine.Examination(task, tmp_path, print)
    examination.case = case
    examination.expected = torch_results.run(case.module, case.inputs)
    examination.references = examination.expected
    examination.exported = Exported(tmp_path, 0, False, lambda x: [], (0,))
    examination.generated, examination.model = Stored([0.5, 2.0]), None  # type: ignore[assignment]
    double = Stored([1.0, value])
    monkeypatch.setattr(examine, "import_exported", lambda *_: double)
    if value == 1.0:
        examination.call_eager()
        assert examination.row.reference == "PyTorch in float64"
        assert examination.row.error == 0.0
    else:
        with pytest.raises(examine.WrongResultError):
            examination.call_eager()


@pytest.mark.filterwarnings("ignore")
def test_a_trace_does_not_know_where_gradients_stop(tmp_path: Path) -> None:
    from tests.wild.entry import Entry, Task
    from tests.wild.examine import Examination

    def stopped(x: Any, w: Any) -> Any:
        with torch.no_grad():
            y = x * w
        return y * w

    entry = Entry(
        "l", "f", "stop", lambda: Case(Function(stopped, [2.0]), (torch.ones(1),))
    )
    row = Examination(Task(entry, "torchscript"), tmp_path, lambda name: None).run()
    assert row.outcome == "right", row.cause
    assert row.gradient.startswith("detached: weight, the file has no such stop")

"""Export of modules: onnxruntime and a second import agree with the module."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import burn
from burn import Autodiff, Buffer, Cpu, Tensor, nn, ops
from burn_import import export_onnx, load
from burn_import.export.errors import ExportError, VerificationError
from burn_import.output import OutputRefused
from burn_import.verification.session import run_model
from tests.golden.make import BUILDERS
from tests.golden.test_golden import cases
from tests.modules import Array, call

ROOT = Path(__file__).parent.parent
GOLDEN = ROOT / "golden"
DIGITS = ROOT.parent / "models" / "digits" / "digits.onnx"
WAVES = ROOT.parent / "models" / "waves" / "waves.onnx"
#: Golden models whose control flow depends on values.
BRANCHED = {"loops", "nested_if"}


def images(count: int = 2) -> Array:
    """Return images of random numbers."""
    return np.random.default_rng(3).random((count, 1, 8, 8), np.float32)


@pytest.mark.parametrize("opset", [17, 20, 23])
@pytest.mark.parametrize("name", sorted(BUILDERS.keys() - BRANCHED))
@pytest.mark.sampled(3)
def test_golden_models_survive_the_round_trip(
    name: str, opset: int, tmp_path: Path
) -> None:
    model = load(GOLDEN / name / "model.onnx")
    for inputs, _ in cases(name):
        example = tuple(None if x is None else burn.tensor(x) for x in inputs)
        written = export_onnx(
            model, example, tmp_path / "out.onnx", opset=opset, force=True
        )
        assert written.difference is not None and written.difference <= 1e-4
        given = [x for x in inputs if x is not None]
        again = call(load(written.path), given)
        for a, b in zip(again, call(model, inputs), strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", sorted(BRANCHED))
def test_control_flow_by_values_is_refused_with_its_line(
    name: str, tmp_path: Path
) -> None:
    model = load(GOLDEN / name / "model.onnx")
    inputs, _ = next(cases(name))
    example = tuple(burn.tensor(x) for x in inputs)
    with pytest.raises(ExportError, match=r":\d+: Python reads the value of a tensor"):
        export_onnx(model, example, tmp_path / "out.onnx")
    assert not any(tmp_path.iterdir())
    written = export_onnx(model, example, tmp_path / "out.onnx", specialize=True)
    assert written.notes and all("that of the example" in n for n in written.notes)


@pytest.mark.parametrize("path", [DIGITS, WAVES])
def test_a_named_extent_takes_every_size(path: Path, tmp_path: Path) -> None:
    model: Any = load(path)
    shape = (2, 1, 8, 8) if path is DIGITS else (2, 32, 1)
    name = "image" if path is DIGITS else "wave"
    example = np.random.default_rng(1).random(shape, np.float32)
    dynamic = {name: {0: "batch"}}
    written = export_onnx(model, example, tmp_path / "out.onnx", dynamic=dynamic)
    proto = onnx.load(str(written.path))
    for value in (proto.graph.input[0], proto.graph.output[0]):
        assert value.type.tensor_type.shape.dim[0].dim_param == "batch"
    for count in (1, 2, 5):
        wide = np.random.default_rng(count).random((count, *shape[1:]), np.float32)
        (actual,), _ = run_model(str(written.path), {name: wide})
        np.testing.assert_allclose(actual, model(burn.tensor(wide)).numpy(), atol=1e-5)


def test_parameters_keep_their_keys_and_bytes_are_repeatable(tmp_path: Path) -> None:
    model = load(DIGITS)
    first = export_onnx(model, images(), tmp_path / "a.onnx")
    second = export_onnx(load(DIGITS), images(), tmp_path / "b.onnx")
    assert first.path.read_bytes() == second.path.read_bytes()
    graph = onnx.load(str(first.path)).graph
    assert set(model.state_dict()) <= {tensor.name for tensor in graph.initializer}
    assert {n.name.split("/")[1] for n in graph.node} >= {"stem", "block", "head"}
    assert load(first.path).state_dict().keys() == model.state_dict().keys()


def test_a_fine_tuned_model_is_exported_with_its_weights(tmp_path: Path) -> None:
    model: Any = load(DIGITS).to(Autodiff(Cpu()))
    before = {k: v.numpy().copy() for k, v in model.state_dict().items()}
    labels = burn.tensor(np.array([1, 7]))
    for _ in range(3):
        logits = model(burn.tensor(images()))
        loss = ops.cross_entropy(logits, labels)
        gradients = loss.backward()
        for _, box in model.parameters():
            if box in gradients:
                box.set(box.value.detach() - 0.05 * gradients[box])
    state = {k: v.numpy() for k, v in model.state_dict().items()}
    assert any((state[k] != before[k]).any() for k in state)
    written = export_onnx(model, images(), tmp_path / "tuned.onnx")
    stored = {
        tensor.name: onnx.numpy_helper.to_array(tensor)
        for tensor in onnx.load(str(written.path)).graph.initializer
    }
    for key, array in state.items():
        np.testing.assert_array_equal(stored[key], array)
    (actual,), _ = run_model(str(written.path), {"image": images()})
    expected = model.valid()(burn.tensor(images())).numpy()
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


class Tree(nn.Module):
    """A module with nested arguments, results and dtypes."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Linear(3, 4)

    def __call__(self, pair: Any, scale: Tensor | None = None) -> dict[str, Any]:
        x, index = pair["x"], pair["index"]
        dense = self.dense(x) if scale is None else self.dense(x) * scale
        half = dense.cast(burn.float16)
        return {"dense": dense, "more": (half, [index + 1, dense > 0])}


def test_nested_arguments_and_results_have_names(tmp_path: Path) -> None:
    x = np.ones((2, 3), np.float32)
    example = ({"x": x, "index": np.arange(4)},)
    written = export_onnx(Tree(), example, tmp_path / "tree.onnx")
    graph = onnx.load(str(written.path)).graph
    assert [v.name for v in graph.input] == ["pair_x", "pair_index"]
    names = ["dense", "more_0", "more_1_0", "more_1_1"]
    assert [v.name for v in graph.output] == names
    kinds = [v.type.tensor_type.elem_type for v in graph.output]
    proto = onnx.TensorProto
    assert kinds == [proto.FLOAT, proto.FLOAT16, proto.INT64, proto.BOOL]
    given = ["a", "b", "c", "d"]
    again = export_onnx(Tree(), example, tmp_path / "b.onnx", output_names=given)
    assert [v.name for v in onnx.load(str(again.path)).graph.output] == given
    with pytest.raises(ValueError, match="expected 4 output names"):
        export_onnx(Tree(), example, tmp_path / "c.onnx", output_names=["a"])


def test_outputs_have_the_names_that_the_module_documents(tmp_path: Path) -> None:
    generated: Any = load(DIGITS)
    written = export_onnx(generated, images(), tmp_path / "digits.onnx")
    (original,) = onnx.load(str(DIGITS)).graph.output
    (exported,) = onnx.load(str(written.path)).graph.output
    assert exported.name == original.name == "logits"
    part = export_onnx(generated.stem, images(), tmp_path / "part.onnx")
    assert onnx.load(str(part.path)).graph.output[0].name == "output"
    with pytest.raises(OutputRefused, match=r"distinct names, got \['a', 'a'"):
        names = ["a", "a", "b", "c"]
        example = ({"x": np.ones((2, 3), np.float32), "index": np.arange(4)},)
        export_onnx(Tree(), example, tmp_path / "c.onnx", output_names=names)


def test_a_file_is_not_replaced_unless_forced(tmp_path: Path) -> None:
    path = tmp_path / "out.onnx"
    path.write_bytes(b"mine")
    with pytest.raises(OutputRefused, match="already exists"):
        export_onnx(load(DIGITS), images(), path)
    assert path.read_bytes() == b"mine"
    export_onnx(load(DIGITS), images(), path, force=True)
    assert sorted(tmp_path.iterdir()) == [path]


def test_external_data_is_a_file_beside(tmp_path: Path) -> None:
    model = load(DIGITS)
    path = tmp_path / "out.onnx"
    written = export_onnx(model, images(), path, external_data=True)
    assert written.data == tmp_path / "out.onnx.data" and written.data.exists()
    onnx.checker.check_model(str(path), full_check=True)
    (actual,) = call(load(path), [images()])
    np.testing.assert_allclose(actual, call(model, [images()])[0], atol=1e-5)


class Inverted(nn.Module):
    """A module with a primitive that ONNX lacks."""

    def __call__(self, x: Tensor) -> Tensor:
        return ops.inverse(x) + 1


def test_a_primitive_without_a_form_is_named_with_its_line(tmp_path: Path) -> None:
    line = Inverted.__call__.__code__.co_firstlineno + 1
    with pytest.raises(ExportError) as caught:
        export_onnx(Inverted(), np.eye(3, dtype=np.float32), tmp_path / "out.onnx")
    assert f"{Path(__file__).name}:{line}" in str(caught.value)
    assert "ops.inverse has no form in ONNX" in str(caught.value)
    assert not any(tmp_path.iterdir())


class Counter(nn.Module):
    """A module with a state of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.total = Buffer(burn.tensor(np.zeros(3, np.float32)))

    def __call__(self, x: Tensor) -> Tensor:
        self.total.set(self.total + x)
        return self.total * 2


def test_a_module_that_sets_its_state_is_refused(tmp_path: Path) -> None:
    model = Counter()
    with pytest.raises(ExportError, match=r"sets its state \(total\)"):
        export_onnx(model, np.ones(3, np.float32), tmp_path / "out.onnx")
    assert not model.total.value.numpy().any()


def test_a_wrong_file_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from burn_import.export import registry

    def wrong(w: Any, x: Any) -> Any:
        return w.node("Sigmoid", x)

    monkeypatch.setitem(registry.FORMS, "tanh", wrong)
    with pytest.raises(VerificationError, match="output 'output'"):
        export_onnx(ops.tanh, np.ones(3, np.float32), tmp_path / "out.onnx")
    assert not any(tmp_path.iterdir())


def looped(x: Tensor) -> Tensor:
    """Return a running sum by a loop over a dimension."""
    total = x[0]
    for row in range(1, x.shape[0]):
        total = total + x[row]
    return total


def test_a_loop_over_a_named_extent_is_refused(tmp_path: Path) -> None:
    x = np.ones((3, 2), np.float32)
    with pytest.raises(ExportError, match="other operations"):
        export_onnx(looped, x, tmp_path / "a.onnx", dynamic={"x": {0: "rows"}})
    unnamed: Any
    for unnamed in (["x"], {"x": [0]}):
        with pytest.raises(TypeError, match=r"expected dynamic=\{'x': \{0: 'batch'\}"):
            export_onnx(looped, x, tmp_path / "a.onnx", dynamic=unnamed)
    export_onnx(looped, x, tmp_path / "a.onnx")


def masked(x: Tensor) -> Tensor:
    """Return rows weighted by positions, whose number is a dimension."""
    length = x.shape[1]
    positions = ops.arange(length)
    hidden = ops.where(positions[None, :] > positions[:, None], -1e9, 0.0)
    scores = x.reshape(x.shape[0] * length, 4) @ ops.ones((4, 4))
    return ops.softmax(scores.reshape(*x.shape) @ x.transpose(1, 2) + hidden)


@pytest.mark.parametrize("opset", [17, 23])
def test_constants_that_follow_from_extents_are_computed(
    opset: int, tmp_path: Path
) -> None:
    x = np.random.default_rng(0).random((2, 3, 4), np.float32)
    dynamic = {"x": {0: "batch", 1: "length"}}
    path = tmp_path / "a.onnx"
    export_onnx(masked, x, path, dynamic=dynamic, opset=opset)
    other = np.random.default_rng(1).random((5, 7, 4), np.float32)
    (actual,), _ = run_model(str(path), {"x": other})
    np.testing.assert_allclose(actual, masked(burn.tensor(other)).numpy(), atol=1e-5)


@pytest.mark.parametrize("opset", [16, 24])
def test_other_opsets_are_refused(opset: int, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="from 17 to 23"):
        export_onnx(ops.tanh, images(), tmp_path / "out.onnx", opset=opset)


class Angle(nn.Module):
    """The angle of points."""

    def __call__(self, y: Tensor, x: Tensor) -> Tensor:
        return ops.atan2(y, x)


def test_angles_are_composed(tmp_path: Path) -> None:
    ends = np.array([0.0, 1.0, -2.0, 0.3], np.float32)
    y, x = (part.ravel() for part in np.meshgrid(ends, ends))
    example = burn.tensor(y), burn.tensor(x)
    written = export_onnx(Angle(), example, tmp_path / "angle.onnx")
    (actual,) = call(load(written.path), [y, x])
    np.testing.assert_allclose(actual, np.arctan2(y, x), rtol=1e-6)


def test_numbers_that_are_nan_do_not_vary(tmp_path: Path) -> None:
    def model(x: Tensor) -> Tensor:
        return ops.where(x > 0.5, float("nan"), x)

    example = np.array([[0.2, 0.8]], np.float32)
    path = export_onnx(
        model, (example,), tmp_path / "nan.onnx", dynamic={"x": {0: "batch"}}
    ).path
    results, _ = run_model(str(path), {"x": np.repeat(example, 3, 0)})
    np.testing.assert_array_equal(results[0], [[np.float32(0.2), np.nan]] * 3)

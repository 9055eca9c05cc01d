"""The command ``quantize``: what it writes, what it reports, and what it refuses."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import burn
from burn_import import load
from burn_import.cli.modules import load_module
from burn_import.quantization.qdq import (
    Quantizer,
    calibrate,
    check_float_model,
    prepare,
)
from tests.cli.commands import run
from tests.modules import onnxruntime_outputs

FOLDER = Path(__file__).parent.parent.parent / "models" / "digits"
DIGITS = FOLDER / "digits.onnx"


def quantize(*args: str | Path | int) -> Any:
    """Return the JSON that ``quantize`` prints."""
    answer = run("quantize", *args, "--format", "json")
    assert answer.exit_code == 0, answer.output
    return json.loads(answer.stdout)


def digits(part: str) -> tuple[Any, Any]:
    """Return the images and the labels of the ``train`` or the ``test`` part."""
    with np.load(FOLDER / f"digits_{part}.npz") as data:
        return data["images"].astype(np.float32), data["labels"]


@pytest.fixture
def samples(tmp_path: Path) -> tuple[Path, Path]:
    """Files to calibrate with and to compare with."""
    files = (tmp_path / "train.npz", tmp_path / "test.npz")
    for file in files:
        np.savez(file, image=digits(file.stem)[0])
    return files


def square_layer(path: Path, node: str, *, opset: int = 20, more: str = "") -> Path:
    """Return a file with one node, of ``x`` and weights ``w``, that computes ``y``."""
    weight = "float[4, 4] w = {" + ", ".join(map(str, np.eye(4).ravel())) + "}"
    weight += f", {more}" if more else ""
    text = f"agraph (float[n, 4] x) => (float[n, 4] y) <{weight}> {{ y = {node} }}"
    head = f'<ir_version: 8, opset_import: ["": {opset}]>'
    onnx.save(onnx.parser.parse_model(head + text), path)
    return path


def accuracy(logits: Any, labels: Any) -> float:
    """Return how many of the rows have their largest number at the label."""
    return float((logits.argmax(1) == labels).mean())


def test_int8_keeps_the_accuracy_of_digits(
    tmp_path: Path, samples: tuple[Path, Path]
) -> None:
    output = tmp_path / "new" / "digits_int8.onnx"
    calibration, evaluation = samples
    facts = quantize(
        *(DIGITS, "-o", output, "--calibration", calibration),
        *("--evaluation", evaluation),
    )
    images, labels = digits("test")
    (before,) = onnxruntime_outputs(DIGITS, {"image": images})
    (after,) = onnxruntime_outputs(output, {"image": images})
    assert accuracy(before, labels) - accuracy(after, labels) < 0.005
    assert np.abs(after - before).max() > 1e-3  # it is another model
    (row,) = facts["outputs"]
    assert row["is_classification"]
    measured = row["accuracy"]
    same = float((after.argmax(1) == before.argmax(1)).mean())
    assert measured["agreement"] == pytest.approx(same)
    assert measured["largest"] == pytest.approx(np.abs(after - before).max(), rel=1e-5)
    assert measured["mean"] == pytest.approx(np.abs(after - before).mean(), rel=1e-5)
    model = onnx.load(output)
    stored = {t.name: t.data_type for t in model.graph.initializer}
    assert stored["stem.conv.weight_quantized"] == onnx.TensorProto.INT8
    assert [entry.domain for entry in model.opset_import] == [""]
    assert run("verify", output, "--inputs", evaluation).exit_code == 0


def test_layers_are_ordered_by_what_they_cost(
    tmp_path: Path, samples: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    facts = quantize(DIGITS, "--calibration", samples[0])
    assert facts["paths"] == ["digits_int8.onnx"]
    assert {row["operator"] for row in facts["layers"]} == {"Conv", "Gemm"}
    decibels = [row["accuracy"]["decibels"] for row in facts["layers"]]
    assert len(decibels) == 3 and decibels == sorted(decibels)


def test_excluded_layers_stay_in_float(
    tmp_path: Path, samples: tuple[Path, Path]
) -> None:
    errors = []
    for number, exclude in enumerate(((), ("Gemm", "*Conv_36"))):
        output = tmp_path / f"{number}.onnx"
        options = [word for name in exclude for word in ("--exclude", name)]
        facts = quantize(DIGITS, "-o", output, "--calibration", samples[0], *options)
        errors.append(facts["outputs"][0]["accuracy"]["mean"])
    stored = {t.name for t in onnx.load(tmp_path / "1.onnx").graph.initializer}
    assert {"head.linear.weight", "stem.conv.weight"} <= stored
    assert "block.conv.weight_quantized" in stored
    assert errors[1] < errors[0]


def test_per_tensor_has_one_scale(tmp_path: Path, samples: tuple[Path, Path]) -> None:
    output = tmp_path / "net.onnx"
    quantize(DIGITS, "-o", output, "--calibration", samples[0], "--per-tensor")
    shapes = {t.name: list(t.dims) for t in onnx.load(output).graph.initializer}
    assert shapes["stem.conv.weight_scale"] in ([], [1])


def test_a_module_computes_what_the_onnx_file_does(
    tmp_path: Path, samples: tuple[Path, Path]
) -> None:
    module, file = tmp_path / "net.py", tmp_path / "net.onnx"
    for output in (module, file):
        quantize(DIGITS, "-o", output, "--calibration", samples[0], "--no-sensitivity")
    assert "nn.WeightQuantizedConv2d(" in module.read_text()
    assert run("verify", file, "--module", module).exit_code == 0
    images, labels = digits("test")
    logits = load_module(module)(burn.tensor(images)).numpy()
    assert accuracy(logits, labels) > 0.97


@pytest.mark.parametrize("name", ["net.onnx", "net.py"])
def test_bfloat16(tmp_path: Path, samples: tuple[Path, Path], name: str) -> None:
    output = tmp_path / name
    options = ("--to", "bf16", "--calibration", samples[1])
    facts = quantize(DIGITS, "-o", output, *options)
    assert facts["outputs"][0]["accuracy"]["agreement"] > 0.99
    assert facts["outputs"][0]["name"] == "logits"
    if name.endswith(".onnx"):
        assert run("verify", output).exit_code == 0
    model: Any = load_module(output) if name.endswith(".py") else load(output)
    images, labels = digits("test")
    result = model(burn.tensor(images.astype(burn.bfloat16)))
    assert result.dtype == burn.bfloat16
    assert accuracy(result.numpy().astype(np.float32), labels) > 0.97


def test_a_module_is_quantized_by_its_export(
    tmp_path: Path, samples: tuple[Path, Path]
) -> None:
    module = tmp_path / "net.py"
    assert run(DIGITS, "-o", module).exit_code == 0
    output = tmp_path / "net.onnx"
    quantize(module, "-o", output, "--calibration", samples[0], "--no-sensitivity")
    images, labels = digits("test")
    (logits,) = onnxruntime_outputs(output, {"image": images})
    assert accuracy(logits, labels) > 0.97


def test_nothing_is_replaced_without_force(
    tmp_path: Path, samples: tuple[Path, Path]
) -> None:
    for name in ("net.onnx", "net.py"):
        output = tmp_path / name
        output.write_text("mine")
        options = ("-o", output, "--calibration", samples[0], "--no-sensitivity")
        answer = run("quantize", DIGITS, *options)
        assert answer.exit_code == 2 and "--force" in answer.output
        assert output.read_text() == "mine"
        assert run("quantize", DIGITS, *options, "--force").exit_code == 0


def test_old_opsets_are_converted(tmp_path: Path) -> None:
    path = square_layer(tmp_path / "old.onnx", "MatMul (x, w)", opset=9)
    output = tmp_path / "new.onnx"
    facts = quantize(path, "-o", output, "--samples", 2)
    assert facts["notes"] == ["turned from opset 9 into 17"]
    assert onnx.load(output).opset_import[0].version == 17


REFUSALS = [
    ((), "expected samples: --calibration"),
    (("--samples", 1, "--calibration", "x.npz"), "expected one of --calibration"),
    (("--samples", 1, "--exclude", "nobody"), "matches no node"),
    (("--samples", 1, "--exclude", "*"), "leaves no layer"),
    (("--samples", 1, "--to", "bf16", "--exclude", "*"), "--exclude is for int8"),
    (("--calibration", "missing.npz"), "there is no such file"),
    (("--samples", 1, "-o", "net.txt"), "expected an output that ends in .py"),
]


@pytest.mark.parametrize(("options", "message"), REFUSALS)
def test_mistakes_are_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[Any, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = run("quantize", DIGITS, *options)
    assert answer.exit_code == 2
    assert message in answer.output
    assert not list(tmp_path.iterdir())


def test_biases_of_one_row_are_quantized(tmp_path: Path) -> None:
    bias = "float[1, 4] b = {1, 2, 3, 4}"
    path = square_layer(tmp_path / "row.onnx", "Gemm (x, w, b)", more=bias)
    facts = quantize(path, "-o", tmp_path / "net.onnx", "--samples", 2)
    assert facts["outputs"][0]["accuracy"]["decibels"] > 30


def test_calibration_of_other_types_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "calibration.npz"
    np.savez(file, image=np.zeros((2, 3, 8, 8), np.float32))
    answer = run("quantize", DIGITS, "--calibration", file, "-o", tmp_path / "x.onnx")
    assert answer.exit_code == 2
    assert "expected float32[batch, 1, 8, 8], got float32[2, 3, 8, 8]" in answer.output


def test_quantized_models_and_those_without_layers_are_refused(
    tmp_path: Path, samples: tuple[Path, Path]
) -> None:
    output = tmp_path / "net.onnx"
    quantize(DIGITS, "-o", output, "--calibration", samples[0], "--no-sensitivity")
    answer = run("quantize", output, "--samples", 1, "-o", tmp_path / "again.onnx")
    assert answer.exit_code == 4
    assert "quantized already" in answer.output and "is a Dequantize" in answer.output
    path = square_layer(tmp_path / "sum.onnx", "Add (x, w)")
    answer = run("quantize", path, "--samples", 1, "-o", tmp_path / "x.onnx")
    assert answer.exit_code == 4 and "expected a layer to quantize" in answer.output


def test_a_module_names_the_model_and_the_command(
    samples: tuple[Path, Path], tmp_path: Path
) -> None:
    source, module = tmp_path / "net.onnx", tmp_path / "small.py"
    source.write_bytes(DIGITS.read_bytes())
    quantize(
        *(source, "-o", module, "--to", "int8", "--calibration", samples[0]),
        *("--per-tensor", "--exclude", "Gemm*", "--no-sensitivity"),
    )
    text = module.read_text("ascii")
    first = text.partition("\n")[0]
    assert " from net.onnx (quantize --to int8, opset 20" in first
    command = "burn-import quantize net.onnx --to int8 --per-tensor --exclude 'Gemm*'"
    assert f"Quantized by `{command}`, with" in text.replace("\n", " ")
    assert run("check", module, "--model", source).exit_code == 0
    source.write_bytes((FOLDER.parent / "waves" / "waves.onnx").read_bytes())
    answer = run("check", module, "--model", source)
    assert answer.exit_code == 1
    assert "stale: net.onnx changed since; quantize it again, by the" in answer.output


def test_a_quantized_module_of_a_module_names_it(
    samples: tuple[Path, Path], tmp_path: Path
) -> None:
    source, module = tmp_path / "net.py", tmp_path / "narrow.py"
    assert run(DIGITS, "-o", source).exit_code == 0
    quantize(source, "-o", module, "--to", "bf16", "--calibration", samples[0])
    assert " from net.py (quantize --to bf16" in module.read_text().partition("\n")[0]
    assert run("check", module, "--model", source).exit_code == 0


def test_layers_are_quantized_in_place(
    samples: tuple[Path, Path], tmp_path: Path
) -> None:
    model, _ = prepare(check_float_model(DIGITS), tmp_path)
    with np.load(samples[0]) as data:
        ranges = calibrate(model, [{"image": data["image"][:8]}], tmp_path)
    quantizer = Quantizer(model, ranges, per_channel=True)
    before = sorted_bytes(model)
    for name in quantizer.nodes:
        copied = sorted_bytes(quantizer.quantize([name]))
        with quantizer.quantized([name]) as same:
            assert same is model
            assert sorted_bytes(model) == copied != before
        assert sorted_bytes(model) == before


def sorted_bytes(model: onnx.ModelProto) -> bytes:
    """Return the bytes of a model with its weights by name."""
    other = onnx.ModelProto()
    other.CopyFrom(model)
    weights = sorted(other.graph.initializer, key=lambda tensor: tensor.name)
    del other.graph.initializer[:]
    other.graph.initializer.extend(weights)
    return bytes(other.SerializeToString(deterministic=True))

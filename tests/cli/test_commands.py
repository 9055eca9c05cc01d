"""The commands of the command line except ``import``."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from burn.record import write_record
from burn_import import load
from burn_import.cli.command import LAZY
from tests.cli.commands import run
from tests.modules import onnxruntime_outputs

ROOT = Path(__file__).parent.parent.parent
DIGITS = ROOT / "models" / "digits" / "digits.onnx"


def data(*args: str | Path) -> Any:
    """Return the JSON that a command prints."""
    answer = run(*args, "--format", "json")
    assert answer.exit_code == 0, answer.output
    return json.loads(answer.stdout)


@pytest.fixture
def module(tmp_path: Path) -> Path:
    """Return a generated module in a new folder."""
    path = tmp_path / "app" / "net.py"
    assert run(DIGITS, "-o", path).exit_code == 0
    return path


def test_bench_times_a_model_and_shows_its_steps() -> None:
    answer = run("bench", DIGITS, "--runs", "2", "--profile")
    assert answer.exit_code == 0, answer.output
    assert "burn" in answer.stdout and "conv_then" in answer.stdout
    assert "block" in answer.stdout  # the path of a module
    facts = data("bench", DIGITS, "--runs", "2", "--profile")
    assert facts["ms"]["burn"] > 0
    rows = facts["profile"]["rows"]
    assert sum(row["share"] for row in rows) == pytest.approx(1)
    assert "profile" not in data("bench", DIGITS, "--runs", "2")


def test_every_command_has_help() -> None:
    listed = run("--help").output
    for name in LAZY:
        assert name in listed
        assert run(name, "--help").exit_code == 0


def test_details_can_be_asked_for_before_the_model(tmp_path: Path) -> None:
    result = run("-v", DIGITS, "-o", tmp_path / "net.py")
    assert result.exit_code == 0, result.output
    missing = run("-v", "nope.onnx", "-o", tmp_path / "no.py")
    assert "cannot read 'nope.onnx'" in missing.output
    assert run("-v", "doctor").exit_code == 0


def test_python_m_works_and_the_version_is_quick() -> None:
    roots = [str(ROOT / name) for name in ("importer", "ir", "templates", "runtime")]
    code = f"import sys; sys.path[:0] = {roots!r}; import runpy; sys.argv[1:] = "
    code += "['--version']; runpy.run_module('burn_import', run_name='__main__')"
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True
        )
        seconds.append(time.perf_counter() - start)
        assert done.stdout.startswith("burn-import, version ")
    bare = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import click"], capture_output=True)
    bare = time.perf_counter() - bare
    assert min(seconds) < max(0.15, 3 * bare)


def test_verify(module: Path, tmp_path: Path) -> None:
    answer = run("verify", DIGITS, "--module", module)
    assert answer.exit_code == 0 and "onnxruntime" in answer.output
    report = data("verify", DIGITS, "--gradients", "--size", "batch=3")
    assert report["ok"] and report["outputs"][0]["shape"] == [3, 10]
    assert report["gradient"] < 1e-5
    text = module.read_text().replace("ops.relu(", "ops.tanh(", 1)
    assert text != module.read_text()
    module.write_text(text)
    answer = run("verify", DIGITS, "--module", module, "--bisect")
    assert answer.exit_code == 1
    assert "DIFFERS" in answer.output and "the module differs" in answer.output
    answer = run("verify", DIGITS, "--inputs", tmp_path / "none.npz")
    assert answer.exit_code == 2 and "expected a .npz file" in answer.stderr


def test_check(module: Path, tmp_path: Path) -> None:
    assert run("check", module, "--model", DIGITS).output == f"{module}: ok\n"
    other = tmp_path / "other.onnx"
    other.write_bytes(DIGITS.read_bytes() + b"\0\0")
    answer = run("check", module, "--model", other)
    assert answer.exit_code == 1 and "stale: other.onnx changed since" in answer.output
    text = module.read_text()
    module.write_text(text + "# mine\n")
    answer = run("check", module)
    assert answer.exit_code == 1 and "edited since it was written" in answer.output
    module.write_text(text)
    record = module.with_suffix(".safetensors")
    content = record.read_bytes()
    record.write_bytes(content[:-8] + b"\1" * 8)
    answer = run("check", module)
    assert answer.exit_code == 1 and "net.safetensors was changed" in answer.output
    record.write_bytes(content[:40])
    assert "net.safetensors is damaged" in run("check", module).output
    record.unlink()
    assert "net.safetensors does not exist" in run("check", module).output
    assert run("check", tmp_path / "none.py").exit_code == 1


def test_check_sees_the_record_of_another_model(module: Path, tmp_path: Path) -> None:
    proto = onnx.load(str(DIGITS))
    for tensor in proto.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT:
            array = onnx.numpy_helper.to_array(tensor) * 2
            tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
    onnx.save(proto, str(tmp_path / "digits.onnx"))
    other = tmp_path / "other" / "net.py"
    assert run(tmp_path / "digits.onnx", "-o", other).exit_code == 0
    record = other.with_suffix(".safetensors")
    module.with_suffix(".safetensors").write_bytes(record.read_bytes())
    answer = run("check", module)
    assert answer.exit_code == 1 and "is of another model" in answer.output


def test_export_and_update(module: Path, tmp_path: Path) -> None:
    target = tmp_path / "new" / "out.onnx"
    answer = run("export", module, "-o", target)
    assert answer.exit_code == 0 and "onnxruntime agrees" in answer.output
    batch = onnx.load(str(target)).graph.input[0].type.tensor_type.shape.dim[0]
    assert batch.dim_param == "batch"
    assert onnx.load(str(target)).graph.output[0].name == "logits"
    answer = run("export", module, "-o", target)
    assert answer.exit_code == 2 and "already exists" in answer.stderr
    written = data(
        "export", module, "-o", target, "--force", "--fixed", "--opset", "17"
    )
    assert written["engine"] == "onnxruntime" and written["difference"] < 1e-4

    state = load(DIGITS).state_dict()
    arrays = {key: value.numpy() * 1.5 for key, value in state.items()}
    tuned, updated = tmp_path / "tuned.safetensors", tmp_path / "u" / "updated.onnx"
    write_record(tuned, list(arrays.items()))
    done = data("update", DIGITS, "--weights", tuned, "-o", updated)
    assert sorted(done["replaced"]) == sorted(arrays) and not done["missing"]
    images = np.random.default_rng(1).random((2, 1, 8, 8), np.float32)
    (scores,) = onnxruntime_outputs(updated, {"image": images})
    (before,) = onnxruntime_outputs(DIGITS, {"image": images})
    assert not np.allclose(scores, before)
    write_record(tuned, [*arrays.items(), ("extra", np.ones(2, np.float32))])
    answer = run("update", DIGITS, "--weights", tuned, "-o", updated, "--force")
    assert answer.exit_code == 4 and "extra (no key)" in answer.stderr
    answer = run(
        *("update", DIGITS, "--weights", tuned, "-o", updated, "--force", "--partial")
    )
    assert answer.exit_code == 0 and "left out extra" in answer.stderr


def test_inspect() -> None:
    facts = data("inspect", DIGITS)
    weights = load(DIGITS).state_dict()
    assert facts["parameters"] == sum(w.numpy().size for w in weights.values())
    assert facts["operators"]["Conv"] == 2 and facts["operators"]["Gemm"] == 1
    assert {row["path"] for row in facts["layers"]} >= {"stem.conv", "head.linear"}
    assert facts["unknown"] == 0
    convs = 2 * 64 * (16 * 9) + 2 * 64 * (32 * 16 * 9)
    assert facts["flops"] >= convs + 2 * 512 * 10
    larger = data("inspect", DIGITS, "--size", "batch=4")
    assert larger["flops"] == 4 * facts["flops"]
    assert larger["peak_bytes"] == 4 * facts["peak_bytes"]
    assert "stem.conv" in run("inspect", DIGITS).output


def test_ops(tmp_path: Path) -> None:
    report = data("ops", DIGITS)
    assert {row["status"] for row in report["operators"]} == {"supported"}
    proto = onnx.load(str(DIGITS))
    for number, node in enumerate(proto.graph.node[:2]):
        node.op_type = f"Unknown{number}"
    onnx.save(proto, str(tmp_path / "bad.onnx"))
    answer = run("ops", tmp_path / "bad.onnx")
    assert answer.exit_code == 4
    for name in ("Unknown0", "Unknown1"):
        (row,) = [line for line in answer.stdout.splitlines() if name in line]
        assert row.endswith("not supported")
        assert name in answer.stderr


def test_weights_and_doctor(module: Path) -> None:
    rows = data("weights", module.with_suffix(".safetensors"))["weights"]
    assert rows == data("weights", DIGITS)["weights"]
    assert {row["name"] for row in rows} == set(load(DIGITS).state_dict())
    facts = data("doctor")
    assert facts["numpy"] == np.__version__ and facts["CPU engine"]
    assert "CPU engine" in run("doctor").output


def test_the_published_hook_runs_the_command(
    module: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (line,) = re.findall("entry: (.*)", (ROOT / ".pre-commit-hooks.yaml").read_text())
    program, *args = line.split()
    assert program == "burn-import"
    monkeypatch.chdir(module.parent.parent)
    (module.parent / "other.py").write_text("x = 1")
    assert run(*args).exit_code == 0
    module.write_text(module.read_text() + "# mine\n")
    assert run(*args).exit_code == 1


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands(shell: str) -> None:
    page = (ROOT / "docs" / "options.md").read_text()
    assert f"_BURN_IMPORT_COMPLETE={shell}_source burn-import" in page
    code = "from burn_import.cli import main; main()"
    env = {**os.environ, "_BURN_IMPORT_COMPLETE": f"{shell}_complete"}
    words = {
        "COMP_WORDS": "burn-import qu",
        "COMP_CWORD": "qu" if shell == "fish" else "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", code], env=env | words, capture_output=True, text=True
    )
    assert "quantize" in done.stdout, done.stderr


@pytest.mark.parametrize("name", ["bench", "doctor", "inspect", "ops", "weights"])
def test_tables_are_printed_on_github_too(name: str) -> None:
    model = [] if name == "doctor" else [DIGITS]
    options = ["--runs", "1"] if name == "bench" else []
    answer = run(name, *model, *options, "--format", "github")
    assert answer.exit_code == 0 and "::" not in answer.stdout and answer.stdout
    broken = run(name, "missing.onnx", "--format", "github").stderr
    assert name == "doctor" or broken.startswith("::error title=missing.onnx::")


def test_failed_checks_are_annotations(module: Path) -> None:
    module.write_text(module.read_text() + "# mine\n")
    checked = run("check", module, "--format", "github")
    message = f"::error title={module}::edited since it was written"
    assert checked.exit_code == 1 and message in checked.stdout
    options = ("--tolerance", "0", "--format", "github")
    verified = run("verify", DIGITS, *options)
    assert verified.exit_code == 1
    assert f"::error title={DIGITS}::output logits: differs by" in verified.stdout

"""Conversion of weights to records: output, messages and refusals."""

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from burn.record import open_record, write_record
from burn_import.version import VERSION
from tests.cli.commands import run
from tests.importer.checkpoints.test_files import V, W, same
from tests.importer.checkpoints.test_names import sharded
from tests.importer.pytorch_files import (
    CONTAINERS,
    ORDERED,
    Name,
    New,
    Reduce,
    Stored,
    storage,
    tensor,
    view,
    zip_file,
)

HALF = W.astype(ml_dtypes.bfloat16)
ROOT = {
    "state_dict": {
        "w": tensor("0", W),
        "t": view(storage("0", W), (5, 3), (1, 5), 15),
        "half": tensor("1", HALF),
        "n": tensor("2", V[0, 0, 0]),
    },
    "args": New(Name("argparse", "Namespace")),
}
EXPECTED = {"w": W, "t": W[1].T, "half": HALF, "n": V[0, 0, 0]}


@pytest.fixture
def net(tmp_path: Path) -> Path:
    """A checkpoint of four tensors."""
    path = tmp_path / "net.ckpt"
    path.write_bytes(zip_file(ROOT))
    return path


@pytest.mark.parametrize("container", CONTAINERS)
def test_a_record_has_every_tensor(container: str, tmp_path: Path) -> None:
    (tmp_path / "net.pt").write_bytes(CONTAINERS[container](ROOT))
    output = tmp_path / "out.safetensors"
    answer = run(tmp_path / "net.pt", "-o", output)
    assert (answer.exit_code, answer.stderr) == (0, "")
    record = open_record(output)
    assert list(record) == [f"state_dict.{name}" for name in EXPECTED]
    for name, array in EXPECTED.items():
        same(record[f"state_dict.{name}"], np.asarray(array))
    about = {"format": "pt", "importer": f"burn-import {VERSION}"}
    assert record.metadata == about


def test_the_table(net: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.safetensors"
    answer = run(net, "-o", output, "--top-level-key", "state_dict")
    assert answer.stdout.splitlines() == [
        "w     2 x 3 x 5  float32   120 bytes",
        "t     5 x 3      float32    60 bytes",
        "half  2 x 3 x 5  bfloat16   60 bytes",
        "n     scalar     int64       8 bytes",
        "4 tensors, 248 bytes, of a zip file of pytorch",
        f"wrote {output}",
    ]
    again = run(net, "-o", output, "--top-level-key", "state_dict")
    assert again.stdout.splitlines()[-1] == f"unchanged {output}"
    other = run(net, "-o", output)
    assert "skipped args: an object of argparse.Namespace" in other.stdout
    assert other.stdout.splitlines()[-1] == f"wrote {output}"


def test_the_table_in_json(net: Path, tmp_path: Path) -> None:
    answer = run(net, "-o", tmp_path / "o.safetensors", "--format", "json", "--dry-run")
    data = json.loads(answer.stdout)
    tensors = data["tensors"]
    assert tensors[0] == {
        "name": "state_dict.w",
        "dtype": "float32",
        "shape": [2, 3, 5],
        "size": 120,
    }
    assert (len(tensors), data["schema"], data["changed"]) == (4, 1, True)
    assert list(data["skipped"]) == ["args"]
    assert [path.name for path in tmp_path.iterdir()] == ["net.ckpt"]


def test_a_long_table_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "net.pt"
    path.write_bytes(zip_file([tensor(str(n), W) for n in range(130)]))
    lines = run(path, "-o", tmp_path / "o.safetensors").stdout.splitlines()
    assert len(lines) == 103 and lines[100] == "and 30 more"


def test_a_dry_run_says_what_it_would_write(net: Path, tmp_path: Path) -> None:
    answer = run(net, "-o", tmp_path / "o.safetensors", "--dry-run")
    assert answer.stdout.splitlines()[-1].startswith("would write ")
    assert [path.name for path in tmp_path.iterdir()] == ["net.ckpt"]


def test_names_are_cleaned(tmp_path: Path) -> None:
    path = tmp_path / "net.pt"
    path.write_bytes(zip_file({"a\x1b[31m\n::error::b": tensor("0", W), "\x07": None}))
    answer = run(path, "-o", tmp_path / "o.safetensors")
    assert answer.exit_code == 0
    assert "a\\x1b[31m\\n::error::b  2 x 3 x 5  float32" in answer.stdout
    assert "\x1b" not in answer.stdout and "\n::" not in answer.stdout


@pytest.mark.parametrize("kind", ["safetensors", "bin"])
def test_shards_become_one_record(kind: str, tmp_path: Path) -> None:
    index, arrays = sharded(tmp_path, kind)
    output = tmp_path / "whole.safetensors"
    assert run(index, "-o", output).exit_code == 0
    record = open_record(output)
    assert sorted(record) == sorted(arrays)
    for name, array in arrays.items():
        same(record[name], array)


def test_quantized_tensors_keep_how_they_are_scaled(tmp_path: Path) -> None:
    integers = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    stored = Stored("0", "QUInt8Storage", integers.tobytes(), 24)
    how = (Name("torch", "per_tensor_affine"), 0.5, 7)
    args = (stored, 0, (2, 3, 4), (12, 4, 1), how, False, ORDERED)
    path = tmp_path / "net.pt"
    rebuild = Name("torch._utils", "_rebuild_qtensor")
    path.write_bytes(zip_file({"q": Reduce(rebuild, args)}))
    assert run(path, "-o", tmp_path / "o.safetensors").exit_code == 0
    record = open_record(tmp_path / "o.safetensors")
    same(record["q"], integers)
    assert (record["q.scale"].item(), record["q.zero_point"].item()) == (0.5, 7)


def test_records_of_others_are_kept(net: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.safetensors"
    write_record(output, [("mine", W)])
    before = output.read_bytes()
    answer = run(net, "-o", output)
    assert answer.exit_code == 2 and "was not written by burn-import" in answer.stderr
    assert "--force replaces it" in answer.stderr and output.read_bytes() == before
    assert run(net, "-o", output, "--force").exit_code == 0
    assert "mine" not in open_record(output)
    output.write_text("mine")
    assert run(net, "-o", output).exit_code == 2


@pytest.mark.parametrize(
    ("content", "code", "message"),
    [
        (
            zip_file(Reduce(Name("os", "system"), ("touch pwned",))),
            4,
            "calls os.system",
        ),
        (zip_file([view(storage("0", W), (99,))]), 5, "reaches to element 98"),
        (zip_file(ROOT)[:-9], 3, "damaged or cut off"),
        (b"", 3, "empty file"),
        (
            zip_file([tensor("0", W.astype(np.complex128))]),
            4,
            "dtype complex128 has",
        ),
        (zip_file({"\ud800": tensor("0", W)}), 4, "lone surrogate"),
    ],
)
def test_what_is_refused_leaves_nothing(
    content: bytes, code: int, message: str, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "net.pt"
    path.write_bytes(content)
    answer = run(path, "-o", "o.safetensors")
    assert answer.exit_code == code and message in answer.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["net.pt"]


def test_a_refused_call_comes_with_a_remedy(tmp_path: Path) -> None:
    path = tmp_path / "net.pt"
    path.write_bytes(zip_file([Reduce(Name("mine", "Kind"), ("x",))]))
    answer = run(path, "-o", tmp_path / "o.safetensors")
    assert "calls mine.Kind, which is refused" in answer.stderr
    assert "= help: where you trust the file" in answer.stderr


def test_a_key_that_is_not_there(net: Path, tmp_path: Path) -> None:
    answer = run(net, "-o", tmp_path / "o.safetensors", "--top-level-key", "model")
    assert answer.exit_code == 5 and "got 'state_dict', 'args'" in answer.stderr


def test_a_module_of_weights_is_to_be_completed(net: Path, tmp_path: Path) -> None:
    answer = run(net, "-o", tmp_path / "net.py")
    assert answer.exit_code == 0
    assert "without the program" in answer.stderr
    assert "torch.onnx.export" in answer.stderr


def test_a_failure_while_writing_keeps_the_old_record(
    net: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "o.safetensors"
    assert run(net, "-o", output, "--top-level-key", "state_dict").exit_code == 0
    before = output.read_bytes()

    def broken(*_: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", broken)
    assert run(net, "-o", output).exit_code == 2
    assert output.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["net.ckpt", "o.safetensors"]

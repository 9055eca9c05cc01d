"""Conversion of weights to records of every format, by the command."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from burn.record import FORMATS, format_named, read_record, record_bytes
from tests.cli.commands import run
from tests.importer.checkpoints.test_weights import EXPECTED, ROOT
from tests.importer.pytorch_files import tensor, zip_file


@pytest.fixture
def net(tmp_path: Path) -> Path:
    """A checkpoint of four tensors."""
    (tmp_path / "net.pt").write_bytes(zip_file(ROOT))
    return tmp_path / "net.pt"


def check(path: Path) -> None:
    """Return if a record has the four tensors."""
    record = read_record(path)
    assert set(record) == set(EXPECTED)
    for name, array in EXPECTED.items():
        assert record[name].tobytes() == np.asarray(array).tobytes()


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_is_written_and_known_again(
    kind: str, net: Path, tmp_path: Path
) -> None:
    output = tmp_path / f"out.{kind}"
    answer = run(net, "-o", output, "--top-level-key", "state_dict")
    assert (answer.exit_code, answer.stderr) == (0, "")
    assert answer.stdout.splitlines()[-1] == f"wrote {output}"
    check(output)
    assert read_record(output).metadata["importer"].startswith("burn-import ")
    before = output.read_bytes()
    again = run(net, "-o", output, "--top-level-key", "state_dict")
    assert again.stdout.splitlines()[-1] == f"unchanged {output}"
    assert run(net, "-o", output).stdout.splitlines()[-1] == f"wrote {output}"
    assert output.read_bytes() != before


@pytest.mark.parametrize("kind", FORMATS)
def test_records_of_every_format_are_sources(
    kind: str, net: Path, tmp_path: Path
) -> None:
    record, output = tmp_path / f"a.{kind}", tmp_path / "b.safetensors"
    run(net, "-o", record, "--top-level-key", "state_dict")
    answer = run(record, "-o", output)
    assert answer.exit_code == 0, answer.stderr
    word = "safetensors file" if kind == "safetensors" else f"{kind} record"
    assert f"248 bytes, of a {word}" in answer.stdout
    check(output)
    if kind != "safetensors":
        refused = run(record, "-o", output, "--top-level-key", "x")
        assert refused.exit_code == 5 and "for a record" in refused.stderr


@pytest.mark.parametrize("kind", ["safetensors", "mpk.gz"])
def test_a_precision(kind: str, net: Path, tmp_path: Path) -> None:
    output = tmp_path / f"out.{kind}"
    args = (net, "-o", output, "--precision", "half", "--format", "json")
    data = json.loads(run(*args).stdout)
    kinds = {row["dtype"] for row in data["tensors"]}
    assert kinds == {"float16", "int16"} and data["changed"]
    assert not json.loads(run(*args).stdout)["changed"]
    assert read_record(output)["state_dict.w"].dtype == np.float16
    module = run(net, "-o", tmp_path / "net.py", "--precision", "half")
    assert module.exit_code == 2 and "to have a precision" in module.stderr


def test_values_that_do_not_fit_a_precision(tmp_path: Path) -> None:
    path, output = tmp_path / "net.pt", tmp_path / "o.mpk"
    path.write_bytes(zip_file({"w": tensor("0", np.array([1.0, 1e9], np.float32))}))
    answer = run(path, "-o", output, "--precision", "half")
    assert answer.exit_code == 4 and "1 of 2 values do not fit" in answer.stderr
    assert not output.exists()


@pytest.mark.parametrize("kind", FORMATS)
def test_files_of_others_are_kept(kind: str, net: Path, tmp_path: Path) -> None:
    output = tmp_path / f"out.{kind}"
    arrays: Any = [("mine", np.ones(3))]
    for content in (record_bytes(kind, arrays), b"a text"):
        output.write_bytes(content)
        answer = run(net, "-o", output)
        assert answer.exit_code == 2 and "was not written by burn" in answer.stderr
        assert output.read_bytes() == content
    assert run(net, "-o", output, "--force").exit_code == 0
    assert format_named(output) == kind


@pytest.mark.parametrize("kind", FORMATS)
def test_records_that_are_damaged(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"w.{kind}"
    whole = record_bytes(kind, [("w", np.arange(99.0))])
    for content in (whole[:-20], whole[:12] + b"\xff" * 20):
        path.write_bytes(content)
        answer = run(path, "-o", tmp_path / "o.safetensors")
        assert answer.exit_code == 3 and "error[unreadable]: " in answer.stderr
    assert not (tmp_path / "o.safetensors").exists()

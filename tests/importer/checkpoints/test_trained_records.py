"""Records that were changed since the import are not overwritten."""

from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from burn.record import open_record, write_record
from burn_import.fingerprint import fingerprint
from tests.cli.commands import run
from tests.importer.onnx_files import graph, model, saved, stored


@pytest.fixture
def net(tmp_path: Path) -> Path:
    """Return the file of a model of one linear layer."""
    weight = np.random.default_rng(0).normal(size=(3, 10)).astype(np.float32)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    proto = graph(nodes, {"x": ["batch", 3]}, initializers=(stored("w", weight),))
    return saved(tmp_path / "net.onnx", model(proto))


def test_weights_that_were_trained_are_kept(net: Path, tmp_path: Path) -> None:
    output, record = tmp_path / "net.py", tmp_path / "net.safetensors"
    run(net, "-o", output)
    weights = dict(open_record(record))
    trained = {key: array + 1 for key, array in weights.items()}
    write_record(record, list(trained.items()))
    for _ in range(2):
        answer = run(net, "-o", output)
        assert answer.exit_code == 2 and "--force" in answer.stderr
        assert "net.safetensors holds weights that burn-import did not" in answer.stderr
    for key, array in open_record(record).items():
        np.testing.assert_array_equal(array, trained[key])
    assert run(net, "-o", output, "--force").exit_code == 0
    for key, array in open_record(record).items():
        np.testing.assert_array_equal(array, weights[key])


def test_bytes_changed_by_hand_are_kept(net: Path, tmp_path: Path) -> None:
    output, record = tmp_path / "net.py", tmp_path / "net.safetensors"
    run(net, "-o", output)
    content = bytearray(record.read_bytes())
    content[-1] ^= 1
    record.write_bytes(content)
    assert run(net, "-o", output).exit_code == 2
    assert record.read_bytes() == content


def test_weights_of_another_file_replace_those_of_the_importer(
    net: Path, tmp_path: Path
) -> None:
    output, record = tmp_path / "net.py", tmp_path / "net.safetensors"
    run(net, "-o", output)
    assert run(net, "-o", output, "--dtype", "float64").exit_code == 0
    assert {a.dtype.name for a in open_record(record).values()} == {"float64"}


def test_large_tensors_are_sampled() -> None:
    array = np.zeros((1024, 1024), np.float32)
    first = fingerprint([("a", array), ("b", array[0])])
    assert first == fingerprint([("b", array[0]), ("a", array)])
    assert first == fingerprint(
        [("a", np.broadcast_to(array[0], (1024, 1024))), ("b", array[0])]
    )
    assert first == fingerprint([("a", array.astype(">f4")), ("b", array[0])])
    for index in (0, -1):
        changed = array.copy()
        changed.flat[index] = 1
        assert first != fingerprint([("a", changed), ("b", array[0])])
    assert first != fingerprint([("a", array.reshape(-1)), ("b", array[0])])

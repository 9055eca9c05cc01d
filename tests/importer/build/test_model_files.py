"""Models in several files: digests, source distributions, and builds at one time."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

from burn.record import write_record
from burn_import.build.models import bring_up_to_date, configured
from burn_import.build.project import inputs_inside
from burn_import.model_files import model_files, source_sha256
from burn_import.output import read_header
from burn_import.status import status_of
from tests.importer.build.test_build_backends import PATHS
from tests.importer.build.test_depfile import write_model
from tests.importer.onnx_files import graph, model, stored

PROJECT = """\
[[tool.burn-import.models]]
input = "models/net.onnx"
output = "net.py"
"""
TABLE = {"models": [{"input": "models/net.onnx", "output": "net.py"}]}


def sha256(path: Path) -> str:
    """Return the digest of a file (hex)."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_digest_of_one_file_is_that_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(b"location")  # no model; the import says so
    assert model_files(path) == [path]
    assert source_sha256(path) == sha256(path)


def test_the_digest_of_several_files_is_that_of_their_lines(tmp_path: Path) -> None:
    path = write_model(tmp_path)
    data = path.with_name("net.data")
    assert model_files(path) == [path, data]
    lines = f"{sha256(path)}  net.onnx\n{sha256(data)}  net.data\n"
    assert source_sha256(path) == hashlib.sha256(lines.encode()).hexdigest()
    data.unlink()
    assert model_files(path) == [path]


def test_shards_are_files_of_the_model(tmp_path: Path) -> None:
    shards = [tmp_path / f"part-{at}.safetensors" for at in range(2)]
    for shard in shards:
        write_record(shard, [], {})
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(
        '{"weight_map": {"a": "part-0.safetensors", "b": "part-1.safetensors"}}'
    )
    assert model_files(index) == [index, *shards]


@pytest.mark.parametrize("location", ["../outside", "/etc/passwd", "a\0b", ""])
def test_only_files_of_the_folder_are_listed(tmp_path: Path, location: str) -> None:
    (tmp_path / "outside").write_bytes(bytes(48))
    tensor = onnx.TensorProto(name="w", data_type=1, dims=[3])
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    proto = model(graph([], initializers=(tensor,)))
    path = tmp_path / "models" / "net.onnx"
    path.parent.mkdir()
    path.write_bytes(proto.SerializeToString())
    assert model_files(path) == [path]


def test_tensors_in_bodies_are_found(tmp_path: Path) -> None:
    (tmp_path / "body.data").write_bytes(bytes(12))
    tensor = onnx.TensorProto(name="w", data_type=1, dims=[3])
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="body.data")
    constant = onnx.helper.make_node("Constant", [], ["c"], value=tensor)
    body = onnx.helper.make_graph([constant], "body", [], [])
    choice = onnx.helper.make_node("If", ["x"], ["y"], then_branch=body)
    path = tmp_path / "net.onnx"
    path.write_bytes(model(graph([choice])).SerializeToString())
    assert model_files(path) == [path, tmp_path / "body.data"]


def test_changed_weights_beside_the_model_are_noticed(tmp_path: Path) -> None:
    path = write_model(tmp_path)
    (entry,) = configured(TABLE, tmp_path)
    bring_up_to_date(entry)
    record, header = entry.output.with_suffix(".safetensors"), path.read_bytes()
    before = record.read_bytes()
    assert status_of(entry.output, path).problems == ()
    write_model(tmp_path, 2)
    assert path.read_bytes() == header
    assert "stale" in status_of(entry.output, path).problems[0]
    bring_up_to_date(entry)
    assert record.read_bytes() != before
    assert status_of(entry.output, path).problems == ()


def test_source_distributions_get_the_weights_beside_the_model(tmp_path: Path) -> None:
    write_model(tmp_path)
    inputs = inputs_inside(configured(TABLE, tmp_path), tmp_path)
    assert set(inputs) == {"models/net.onnx", "models/net.data"}


def test_a_changed_configuration_of_weights_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    weights, config = tmp_path / "models" / "net.safetensors", tmp_path / "other.json"
    arrays = {"0.weight": np.ones((2, 3), np.float32), "0.bias": np.ones(2, np.float32)}
    write_record(weights, list(arrays.items()), {})
    table = {"input": "models/net.safetensors", "output": "net.py"}
    beside = weights.with_name("config.json")
    for path, key in ((beside, {}), (config, {"config": str(config)})):
        path.write_text("{}")
        (entry,) = configured({"models": [table | key]}, tmp_path)
        assert model_files(weights, key.get("config")) == [weights, path]
        assert path in inputs_inside([entry], tmp_path).values()
        bring_up_to_date(entry)
        assert status_of(entry.output, weights, key.get("config")).problems == ()
        written = entry.output.stat().st_mtime_ns
        bring_up_to_date(entry)
        assert entry.output.stat().st_mtime_ns == written
        path.write_text('{"eps": 1}')
        assert (
            "stale" in status_of(entry.output, weights, key.get("config")).problems[0]
        )
        bring_up_to_date(entry)
        assert status_of(entry.output, weights, key.get("config")).problems == ()


def test_builds_at_one_time_write_whole_files(tmp_path: Path) -> None:
    weights = tuple(stored(f"w{at}", np.full(4096, at, np.float32)) for at in range(8))
    nodes = [
        onnx.helper.make_node("Add", ["x" if at == 0 else f"h{at}", f"w{at}"], [name])
        for at, name in enumerate([*(f"h{at}" for at in range(1, 8)), "y"])
    ]
    path = tmp_path / "models" / "net.onnx"
    path.parent.mkdir()
    proto = model(graph(nodes, {"x": [4096]}, initializers=weights))
    path.write_bytes(proto.SerializeToString())
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    code = (
        "from pathlib import Path\n"
        "from burn_import.build.project import import_models, project_models\n"
        "assert import_models(project_models(Path.cwd()), Path.cwd()) == []"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(PATHS)},
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    errors = [process.communicate()[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * 4, errors
    assert status_of(tmp_path / "net.py", path).problems == ()
    digests = read_header(tmp_path / "net.py")
    assert digests is not None and digests.source == source_sha256(path)
    files = {file.name for file in tmp_path.iterdir()}
    assert files == {"models", "net.py", "net.safetensors", "pyproject.toml"}

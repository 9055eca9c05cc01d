"""Files of PyTorch, loaded into hand-written modules."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from burn import nn, ops
from burn.record import RecordError
from burn.store import WeightsError
from burn_import.pytorch import open_store
from burn_ir import InvalidModel, UnreadableFile
from tests.importer.checkpoints.test_names import sharded
from tests.importer.pytorch_files import (
    CONTAINERS,
    Name,
    storage,
    tensor,
    view,
    zip_file,
)

Array = np.ndarray[Any, Any]
KEYS = ("0.weight", "0.bias", "2.weight", "2.bias")


def net() -> nn.Sequential:
    """Return two linear layers with a function between them."""
    return nn.Sequential(nn.Linear(3, 4), ops.relu, nn.Linear(4, 2))


def arrays(dtype: Any = np.float32) -> dict[str, Array]:
    """Return random weights of the module."""
    rng = np.random.default_rng(1)
    return {key: rng.normal(size=b.shape).astype(dtype) for key, b in net().boxes()}


def root(dtype: Any = np.float32) -> dict[str, Any]:
    """Return a checkpoint as it is pickled."""
    results = {k: tensor(str(n), a) for n, (k, a) in enumerate(arrays(dtype).items())}
    return {"epoch": 3, "state_dict": results, "note": "x"}


def written(folder: Path, content: bytes) -> Path:
    """Return a file of this content."""
    (folder / "net.pt").write_bytes(content)
    return folder / "net.pt"


def check(module: nn.Module, dtype: Any = np.float32) -> None:
    """Return if a module holds the weights."""
    for key, array in arrays(dtype).items():
        held = dict(module.boxes())[key].numpy()
        np.testing.assert_array_equal(held, array.astype(np.float32))


@pytest.mark.parametrize("container", CONTAINERS)
def test_every_container(container: str, tmp_path: Path) -> None:
    path = written(tmp_path, CONTAINERS[container](root()))
    by_key, by_name = net(), net()
    report = open_store(path, "state_dict").load(by_key)
    assert report.applied == KEYS
    check(by_key)
    store = open_store(path).with_key_remapping(r"^state_dict\.", "")
    store.load(by_name)
    check(by_name)


def test_another_dtype_and_numbers_without_gaps(tmp_path: Path) -> None:
    path = written(tmp_path, zip_file(root(np.float16)))
    module = nn.ModuleList([nn.Linear(3, 4), nn.Linear(4, 2)])
    store = open_store(path, "state_dict").convert_dtypes().map_indices_contiguous()
    assert store.load(module).applied == ("0.weight", "0.bias", "1.weight", "1.bias")
    expected = arrays(np.float16)["2.bias"].astype(np.float32)
    np.testing.assert_array_equal(module.state_dict()["1.bias"].numpy(), expected)


def test_views_are_laid_out_and_shared(tmp_path: Path) -> None:
    matrix = np.arange(12, dtype=np.float32).reshape(3, 4)
    shared = storage("0", matrix)
    path = written(
        tmp_path,
        zip_file({"weight": view(shared, (4, 3), (1, 4)), "b": view(shared, (4,))}),
    )
    module = nn.Linear(3, 4)
    open_store(path).with_key_remapping("^b$", "bias").load(module)
    held = module.state_dict()
    np.testing.assert_array_equal(held["weight"].numpy(), matrix.T)
    np.testing.assert_array_equal(held["bias"].numpy(), matrix[0])


@pytest.mark.parametrize("kind", ["safetensors", "bin"])
def test_shards(kind: str, tmp_path: Path) -> None:
    index, parts = sharded(tmp_path, kind)
    report = open_store(index).allow_partial().load(nn.Module())
    assert set(report.unexpected) == set(parts)


def test_what_is_no_tensor_is_reported(tmp_path: Path) -> None:
    path = written(tmp_path, zip_file(root() | {"hook": Name("mine", "hook")}))
    with pytest.raises(WeightsError, match="missing 0.weight"):
        open_store(path).load(net())
    report = open_store(path).with_key_remapping("^state_dict.", "").load(net())
    assert report.skipped == ("hook",) and "skipped      hook" in str(report)


def test_a_file_that_lies_leaves_the_module_as_it_was(tmp_path: Path) -> None:
    module = net()
    before = {key: box.numpy().copy() for key, box in module.boxes()}
    content = zip_file({"0.bias": view(storage("0", np.zeros(4, np.float32)), (99,))})
    for data, kind in ((content, InvalidModel), (b"no model", UnreadableFile)):
        path = written(tmp_path, data)
        with pytest.raises(kind, match="^net.pt: "):
            open_store(path).allow_partial().load(module)
    for key, box in module.boxes():
        np.testing.assert_array_equal(box.numpy(), before[key])


def test_they_are_not_written(tmp_path: Path) -> None:
    path = written(tmp_path, zip_file(root()))
    before = path.read_bytes()
    with pytest.raises(RecordError, match="are read and not written"):
        open_store(path).save(net())
    assert path.read_bytes() == before

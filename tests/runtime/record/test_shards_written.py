"""Records that are written in shards."""

import hashlib
import json
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from burn import nn
from burn.record import (
    RecordError,
    ShardedRecord,
    Source,
    file_sha256,
    open_record,
    open_stored,
    parse_size,
    record_files,
    record_sha256,
    write_record,
)
from burn.store import Store

NAMES = [
    "net.safetensors.index.json",
    "net-00001-of-00003.safetensors",
    "net-00002-of-00003.safetensors",
    "net-00003-of-00003.safetensors",
]


class Net(nn.Module):
    """Three layers of 40, 1 and 40 bytes of weights, without biases."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(5, 2, bias=False)
        self.second = nn.Linear(5, 2, bias=False)
        self.third = nn.Linear(5, 2, bias=False)


def arrays(model: nn.Module) -> list[tuple[str, np.ndarray]]:
    return [(key, value.numpy()) for key, value in model.state_dict().items()]


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def net() -> Net:
    return Net()


@pytest.fixture
def path(net: Net, tmp_path: Path) -> Path:
    """The path of a record in three shards."""
    path = tmp_path / "net.safetensors"
    net.save_weights(path, shard_size=40)
    return path


def test_the_files_are_named_as_the_hub_names_them(net: Net, path: Path) -> None:
    assert files(path.parent) == sorted(NAMES)
    index = json.loads((path.parent / NAMES[0]).read_text())
    assert index["metadata"]["total_size"] == 120
    assert index["weight_map"] == {
        "first.weight": NAMES[1],
        "second.weight": NAMES[2],
        "third.weight": NAMES[3],
    }
    for name in NAMES[1:]:
        data = (path.parent / name).read_bytes()
        assert index["metadata"]["sha256"][name] == hashlib.sha256(data).hexdigest()
    assert list(open_record(path.parent / NAMES[2])) == ["second.weight"]


def test_weights_load_by_either_name(net: Net, path: Path) -> None:
    for name in (path, path.parent / NAMES[0]):
        again = Net().load_weights(name)
        for (_, a), (_, b) in zip(arrays(net), arrays(again), strict=True):
            np.testing.assert_array_equal(a, b)
    record = open_stored(path)
    assert isinstance(record, ShardedRecord)
    assert record.info("first.weight") == (np.dtype(np.float32), (2, 5))
    assert "fourth" not in record


def test_tensors_share_a_shard_up_to_its_size(net: Net, tmp_path: Path) -> None:
    path = tmp_path / "net.safetensors"
    net.save_weights(path, shard_size=80)
    weight_map = json.loads((tmp_path / NAMES[0]).read_text())["weight_map"]
    assert [*weight_map.values()] == [
        "net-00001-of-00002.safetensors",
        "net-00001-of-00002.safetensors",
        "net-00002-of-00002.safetensors",
    ]
    net.save_weights(path, shard_size=8)  # each tensor is larger than a shard
    assert len(record_files(path)) == 4


def test_what_fits_is_one_file(net: Net, tmp_path: Path) -> None:
    path = tmp_path / "net.safetensors"
    net.save_weights(path, shard_size=120)
    assert files(tmp_path) == ["net.safetensors"]
    net.save_weights(path, shard_size=None)
    net.save_weights(path)
    assert files(tmp_path) == ["net.safetensors"]


def test_another_number_of_shards_leaves_no_old_file(net: Net, path: Path) -> None:
    foreign = path.with_name("other-00001-of-00003.safetensors")
    foreign.write_bytes(b"kept")
    net.save_weights(path, shard_size=80)
    assert len(files(path.parent)) == 4
    assert foreign.exists()
    assert not (path.parent / NAMES[1]).exists()


def test_shards_take_the_place_of_the_file(net: Net, tmp_path: Path) -> None:
    path = tmp_path / "net.safetensors"
    Net().save_weights(path)
    net.save_weights(path, shard_size=40)
    assert not path.exists()
    (key, value), *_ = arrays(net)
    np.testing.assert_array_equal(open_stored(path)[key], value)


def test_a_failure_leaves_the_old_shards(net: Net, path: Path) -> None:
    before = {name: (path.parent / name).read_bytes() for name in NAMES}

    class Broken:
        dtype, shape = np.dtype(np.float32), (10,)

        def chunks(self) -> list[bytes]:
            return [b"short"]

    tensors: list[tuple[str, Source]] = [*arrays(Net()), ("broken", Broken())]
    with pytest.raises(RecordError, match="tensor 'broken': its source announced 40"):
        write_record(path, tensors, shard_size=40)
    assert {p.name: p.read_bytes() for p in path.parent.iterdir()} == before


def test_a_missing_shard_is_named(path: Path) -> None:
    (path.parent / NAMES[2]).unlink()
    with pytest.raises(RecordError, match=f"{NAMES[2]}.: there is no such file"):
        Net().load_weights(path)


def test_a_damaged_shard_has_another_digest(net: Net, path: Path) -> None:
    assert file_sha256(path) == record_sha256(path, arrays(net), shard_size=40)
    shard = path.parent / NAMES[3]
    data = bytearray(shard.read_bytes())
    data[-1] ^= 1
    shard.write_bytes(data)
    with pytest.raises(RecordError, match=f"{NAMES[3]}: expected the SHA-256 "):
        file_sha256(path)


def test_a_precision_is_converted_back(net: Net, tmp_path: Path) -> None:
    path = tmp_path / "net.safetensors"
    store = Store.from_file(path, shard_size="20").with_precision("half")
    store.save(net)
    assert open_stored(path)["first.weight"].dtype == np.float16
    Store.from_file(path).load(Net())
    assert len(record_files(path)) == 4


def test_the_weights_are_not_copied(tmp_path: Path) -> None:
    tensors = [(str(i), np.ones(2**20, np.float32)) for i in range(8)]
    tracemalloc.start()
    try:
        write_record(tmp_path / "a.safetensors", tensors, shard_size="10MB")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(record_files(tmp_path / "a.safetensors")) == 5
    assert peak < 4 * 2**20


def test_only_safetensors_are_sharded(net: Net, tmp_path: Path) -> None:
    Store.from_file(tmp_path / "net.mpk", shard_size=40).save(net)
    assert files(tmp_path) == ["net.mpk"]
    with pytest.raises(RecordError, match="such as 'net.safetensors', got that of an"):
        net.save_weights(tmp_path / "net.safetensors.index.json")


@pytest.mark.parametrize(
    ("text", "size"),
    [("5GB", 5 * 10**9), ("512 MiB", 2**29), ("10kb", 10**4), (7, 7), ("1TB", 10**12)],
)
def test_sizes(text: str | int, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "0", "5G", "-1", "1.5GB", True, 2.5])
def test_wrong_sizes(text: str) -> None:
    with pytest.raises(ValueError, match="expected a size of shards in bytes, such as"):
        parse_size(text)

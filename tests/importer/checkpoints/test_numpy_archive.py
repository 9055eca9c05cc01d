"""Archives of NumPy are files of weights: their arrays are tensors by name."""

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from burn.record import read_record
from burn_import import load
from burn_import.frontends.checkpoints import Limits
from burn_import.pytorch import read
from burn_import.weights import convert
from burn_ir import InvalidModel, ModelError, UnreadableFile, UnsupportedModel

RANDOM = np.random.default_rng(5)
ARRAYS: dict[str, Any] = {
    "layer.weight": RANDOM.normal(size=(3, 4)).astype(np.float32),
    "layer.bias": RANDOM.normal(size=3).astype(np.float32),
    "rows": np.asfortranarray(RANDOM.normal(size=(2, 5))),
    "reversed": np.arange(4, dtype=">i4"),
    "scale": np.array(0.5, np.float16),
    "empty": np.zeros((0, 2), np.int64),
}


def entry(array: Any) -> bytes:
    """Return the file of one array."""
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def archive(folder: Path, content: bytes, name: str = "a.npy") -> Path:
    """Return an archive with one compressed entry."""
    path = folder / "weights.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(name, content)
    return path


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_have_their_values(save: Any, tmp_path: Path) -> None:
    path = tmp_path / "weights.npz"
    save(path, **ARRAYS)
    checkpoint = read(path)
    assert list(checkpoint) == list(ARRAYS)
    assert (checkpoint.format, checkpoint.producer) == ("npz", "numpy")
    for name, expected in ARRAYS.items():
        tensor = checkpoint[name]
        assert (tensor.dtype, tensor.shape) == (
            expected.dtype.newbyteorder("="),
            expected.shape,
        )
        array = tensor.array()
        assert array.dtype == tensor.dtype and not array.flags.writeable
        np.testing.assert_array_equal(array, expected)


def test_an_archive_becomes_a_record_and_a_module(tmp_path: Path) -> None:
    path = tmp_path / "weights.npz"
    names = "layer.weight", "layer.bias"
    layer: dict[str, Any] = {name: ARRAYS[name] for name in names}
    np.savez(path, **layer)
    written = convert(path, tmp_path / "net.safetensors")
    record = read_record(written.record)
    np.testing.assert_array_equal(record["layer.weight"], ARRAYS["layer.weight"])
    model: Any = load(path)
    weight = model.state_dict()["layer.weight"]
    np.testing.assert_array_equal(weight.numpy(), ARRAYS["layer.weight"])


def test_objects_are_skipped_and_never_unpickled(tmp_path: Path) -> None:
    path = tmp_path / "weights.npz"
    objects = np.array([print], dtype=object)
    pairs = np.zeros(2, [("a", "f4"), ("b", "f4")])
    np.savez(path, objects=objects, texts=np.array(["a"]), pairs=pairs, x=np.ones(2))
    checkpoint = read(path)
    assert list(checkpoint) == ["x"]
    assert "of dtype '|O'" in checkpoint.skipped["objects"]
    assert set(checkpoint.skipped) == {"objects", "texts", "pairs"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            entry(np.ones(4))[:-8],
            r"array 'a' of shape \[4\]: expected 32 bytes, got 24",
        ),
        (entry(np.ones(4)) + b"12345678", "expected 32 bytes, got 40"),
        (b"no array at all", "magic string"),
        (entry(np.ones(4))[:20], "expected an archive of NumPy"),
    ],
    ids=["short", "long", "other", "header"],
)
def test_damaged_arrays_are_refused(
    content: bytes, message: str, tmp_path: Path
) -> None:
    with pytest.raises(UnreadableFile, match=message):
        read(archive(tmp_path, content))


def test_a_damaged_archive_is_refused(tmp_path: Path) -> None:
    path = archive(tmp_path, entry(np.arange(1000.0)))
    content = path.read_bytes()
    for size in range(30, len(content), 97):
        path.write_bytes(content[:size])
        with pytest.raises(ModelError):
            read(path)
    changed = bytearray(content)
    changed[len(content) // 2] ^= 255
    path.write_bytes(changed)
    with pytest.raises(InvalidModel, match="array 'a'"):
        read(path)["a"].array()


def test_large_compressed_arrays_are_refused(tmp_path: Path) -> None:
    path = archive(tmp_path, entry(np.zeros(10_000)))
    with pytest.raises(UnsupportedModel, match="80128 bytes are compressed"):
        read(path, limits=Limits(pickle=10_000))


def test_names_that_end_like_files_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "weights.npz"
    arrays: dict[str, Any] = {"a": np.ones(2), "a.npy": np.zeros((3, 1))}
    np.savez(path, **arrays)
    for name, tensor in read(path).items():
        np.testing.assert_array_equal(tensor.array(), arrays[name])


def test_there_are_no_top_level_keys(tmp_path: Path) -> None:
    path = archive(tmp_path, entry(np.ones(2)))
    with pytest.raises(InvalidModel, match="no top-level key"):
        read(path, "a")

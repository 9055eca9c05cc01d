"""Records written and read back: every dtype, rank, stride and byte order."""

import resource
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import safetensors
import safetensors.numpy

from burn import nn
from burn.dtypes import integer_limits
from burn.record import RecordError, open_record, write_record
from burn.record.dtypes import DTYPES, PLAIN, TAGS
from burn.record.memory_advice import forget

Array = np.ndarray[Any, np.dtype[Any]]
SHAPES = [(), (5,), (2, 3), (2, 3, 4), (3, 2, 1, 4), (0,), (2, 0, 3)]


def random_array(tag: str, shape: tuple[int, ...], seed: int = 0) -> Array:
    """Random bits of the dtype, so that every value (also NaN) can occur."""
    dtype = DTYPES[tag]
    rng = np.random.default_rng(seed)
    raw = rng.integers(0, 256, (*shape, dtype.itemsize), dtype=np.uint8)
    if tag in ("BOOL", "F4"):
        raw &= 1 if tag == "BOOL" else 15
    return raw.view(dtype).reshape(shape)


def assert_same(got: Array, expected: Array) -> None:
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    assert got.tobytes() == expected.tobytes()


@pytest.mark.parametrize("mmap", [True, False])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("tag", DTYPES)
def test_round_trip(
    tag: str, shape: tuple[int, ...], mmap: bool, tmp_path: Path
) -> None:
    if tag == "F4" and shape in [(), (5,)]:
        shape = (*shape, 2)
    array = random_array(tag, shape)
    write_record(tmp_path / "r", [("x", array)])
    record = open_record(tmp_path / "r", mmap=mmap)
    assert record.info("x") == (array.dtype, shape)
    got = record["x"]
    assert_same(got, array)
    assert not got.flags.writeable
    assert got.flags.aligned


def test_every_dtype_of_ml_dtypes_that_the_format_names_is_there() -> None:
    assert DTYPES["F8_E4M3"] == ml_dtypes.float8_e4m3fn
    assert DTYPES["F8_E8M0"] == ml_dtypes.float8_e8m0fnu
    assert DTYPES["F4"] == ml_dtypes.float4_e2m1fn
    assert DTYPES["BF16"] == ml_dtypes.bfloat16
    assert len(TAGS) == len(DTYPES) == 20


class Holder(nn.Module):
    """A module with one buffer like ``array``."""

    def __init__(self, array: Array) -> None:
        super().__init__()
        self.x = nn.buffer(*array.shape, dtype=array.dtype)


@pytest.mark.parametrize("name", ["int2", "int4", "uint2", "uint4"])
def test_integers_below_a_byte_take_one(name: str, tmp_path: Path) -> None:
    limits = integer_limits(np.dtype(name))
    array = np.arange(limits.min, limits.max + 1).reshape(1, 2, -1).astype(name)
    write_record(tmp_path / "r", [("x", array)])
    assert_same(open_record(tmp_path / "r")["x"], array.astype(f"{name[:-1]}8"))
    module = Holder(array)
    assert_same(module.load_weights(tmp_path / "r").x.numpy(), array)


def test_f4_is_packed_low_half_first(tmp_path: Path) -> None:
    values = np.array([0.5, 6.0, -1.0, 4.0], ml_dtypes.float4_e2m1fn)
    write_record(tmp_path / "r", [("x", values)])
    assert (tmp_path / "r").read_bytes()[-2:] == bytes([0x71, 0x6A])
    assert open_record(tmp_path / "r")["x"].tolist() == values.tolist()


@pytest.mark.parametrize("tag", DTYPES)
def test_any_strides(tag: str, tmp_path: Path) -> None:
    array = random_array(tag, (4, 6, 5))
    views = {
        "transposed": array.transpose(2, 0, 1),
        "stepped": array[::2, ::-1, 1:3],
        "broadcast": np.broadcast_to(array[:, :1], (4, 3, 5)),
        "fortran": np.asfortranarray(array),
    }
    write_record(tmp_path / "r", views.items())
    record = open_record(tmp_path / "r")
    for name, view in views.items():
        assert_same(record[name], np.ascontiguousarray(view))


@pytest.mark.parametrize("code", [">f4", ">i2", ">u8", ">c8", ">f2"])
def test_big_endian_arrays_keep_their_values(code: str, tmp_path: Path) -> None:
    array = np.arange(24).reshape(2, 3, 4).astype(code)
    write_record(tmp_path / "r", [("x", array)])
    got = open_record(tmp_path / "r")["x"]
    assert got.dtype == np.dtype(code.replace(">", "<"))
    assert np.array_equal(got, array)


@pytest.mark.parametrize("tag", ["U8", "BF16", "F64", "F4"])
def test_arrays_longer_than_a_chunk(
    tag: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("burn.record.tensor_chunks.CHUNK", 37)
    array = random_array(tag, (7, 3, 8)).transpose(1, 2, 0)
    write_record(tmp_path / "r", [("x", array)])
    assert_same(open_record(tmp_path / "r")["x"], np.ascontiguousarray(array))


def test_names_order_and_metadata(tmp_path: Path) -> None:
    arrays = {
        "b.mask": random_array("BOOL", (3,)),
        "a\u2028\x1b['\"\\": random_array("F64", (2, 1, 2)),
        "": random_array("BF16", (5,)),
        "half": random_array("F16", (3, 3)),
        "wide": random_array("I64", ()),
    }
    metadata = {"z": "1", "a": 'quote " \u00e9', "": ""}
    write_record(tmp_path / "r", arrays.items(), metadata)
    record = open_record(tmp_path / "r")
    assert list(record) == list(arrays)
    assert len(record) == 5
    assert record.metadata == metadata
    for name, array in arrays.items():
        assert_same(record[name], array)
        # Aligned as a view: nothing was copied.
        assert record[name].base is not None


def test_data_starts_aligned_and_bytes_are_deterministic(tmp_path: Path) -> None:
    tensors = [("w", random_array("F32", (3, 2, 5))), ("m", random_array("U8", (3,)))]
    write_record(tmp_path / "1", tensors, {"b": "1", "a": "2"})
    write_record(tmp_path / "2", iter(tensors), {"a": "2", "b": "1"})
    raw = (tmp_path / "1").read_bytes()
    assert raw == (tmp_path / "2").read_bytes()
    assert (8 + int.from_bytes(raw[:8], "little")) % 64 == 0
    assert raw[8:26] == b'{"__metadata__":{"'
    assert raw.index(b'"w"') < raw.index(b'"m"')


def test_a_record_without_tensors(tmp_path: Path) -> None:
    write_record(tmp_path / "r", [])
    for mmap in (True, False):
        record = open_record(tmp_path / "r", mmap=mmap)
        assert len(record) == 0 and record.metadata == {}


def test_record_is_a_read_only_mapping(tmp_path: Path) -> None:
    write_record(tmp_path / "r", [("x", random_array("I32", (2, 3, 4)))])
    record = open_record(str(tmp_path / "r"))
    assert "x" in record and "y" not in record
    assert record.get("y") is None
    with pytest.raises(KeyError, match="y"):
        record["y"]
    with pytest.raises(ValueError, match="read-only"):
        record["x"][0] = 1
    assert record == record and record != open_record(tmp_path / "r")
    assert "1 tensors" in repr(record)


def test_views_outlive_the_record_and_a_new_file(tmp_path: Path) -> None:
    array = random_array("F32", (2, 3, 4))
    write_record(tmp_path / "r", [("x", array)])
    view = open_record(tmp_path / "r")["x"]
    write_record(tmp_path / "r", [("x", view + 1)])
    assert_same(view, array)


@pytest.mark.parametrize("tag", PLAIN)
def test_safetensors_reads_ours_and_we_read_theirs(tag: str, tmp_path: Path) -> None:
    arrays = {
        "x": random_array(tag, (3, 2, 4)),
        "flag": random_array("BOOL", (3,)),
        "empty": random_array(tag, (2, 0)),
        "scalar": random_array(tag, ()),
    }
    write_record(tmp_path / "ours", arrays.items(), {"k": "v"})
    theirs = safetensors.numpy.load_file(tmp_path / "ours")
    assert theirs.keys() == arrays.keys()
    safetensors.numpy.save_file(arrays, tmp_path / "theirs", {"k": "v"})
    ours = open_record(tmp_path / "theirs")
    assert ours.keys() == arrays.keys()
    assert ours.metadata == {"k": "v"}
    for name, array in arrays.items():
        assert_same(theirs[name], array)
        assert_same(ours[name], array)
    with safetensors.safe_open(tmp_path / "ours", "np") as file:
        assert file.metadata() == {"k": "v"}


@pytest.mark.parametrize("tag", ["BF16", "F8_E5M2", "F8_E4M3", "F8_E8M0"])
def test_narrow_floats_of_safetensors(tag: str, tmp_path: Path) -> None:
    array = random_array(tag, (3, 2, 4))
    safetensors.numpy.save_file({"x": array}, tmp_path / "theirs")
    assert_same(open_record(tmp_path / "theirs")["x"], array)
    write_record(tmp_path / "ours", [("x", array)])
    with safetensors.safe_open(tmp_path / "ours", "np") as file:
        part = file.get_slice("x")
        assert (part.get_dtype(), part.get_shape()) == (tag, [3, 2, 4])
    assert (tmp_path / "ours").read_bytes().endswith(array.tobytes())


def test_a_tensor_at_an_odd_address_is_copied_to_a_fit_one(tmp_path: Path) -> None:
    header = (
        b'{"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},'
        b'"b":{"dtype":"F32","shape":[2,1,2],"data_offsets":[3,19]}}'
    )
    values = np.arange(4, dtype="<f4").reshape(2, 1, 2) / 3
    content = len(header).to_bytes(8, "little") + header + b"abc" + values.tobytes()
    (tmp_path / "r").write_bytes(content)
    got = open_record(tmp_path / "r")["b"]
    assert got.flags.aligned and not got.flags.writeable
    assert_same(got, values)


class Ramp:
    """A source that makes its bytes while it is written."""

    dtype: np.dtype[Any] = np.dtype(np.int32)
    shape = (1000, 2)

    def chunks(self) -> Iterator[bytes | memoryview]:
        for start in range(0, 2000, 300):
            part = np.arange(start, min(start + 300, 2000), dtype="<i4")
            yield part.data if start % 600 else part.tobytes()


def test_a_streaming_source(tmp_path: Path) -> None:
    write_record(tmp_path / "r", [("x", Ramp()), ("y", np.array([0.1, 2.0]))])
    expected = np.arange(2000, dtype=np.int32).reshape(1000, 2)
    assert_same(open_record(tmp_path / "r")["x"], expected)


@pytest.mark.parametrize("transposed", [False, True])
def test_a_huge_broadcast_view_is_never_materialised(
    transposed: bool, tmp_path: Path
) -> None:
    row = np.random.default_rng(1).random((1, 1000, 5)).astype("f4")
    huge = np.broadcast_to(row, (10_000, 1000, 5))  # 200 MB
    huge = huge.transpose(0, 2, 1) if transposed else huge
    tracemalloc.start()
    try:
        write_record(tmp_path / "r", [("x", huge)])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 40e6
    got = open_record(tmp_path / "r")["x"]
    assert got.nbytes == 200_000_000
    assert got[9_999].tobytes() == huge[0].tobytes()


def test_the_64_bit_sizes_of_headers_need_no_data(tmp_path: Path) -> None:
    array = np.empty((0, 2**31, 2**20), np.uint8)
    write_record(tmp_path / "r", [("x", array)])
    assert open_record(tmp_path / "r")["x"].shape == array.shape
    with pytest.raises(RecordError, match="size overflow"):
        write_record(tmp_path / "r", [("x", Claim((2**62, 2)))])


class Claim:
    """A source of a given shape and no bytes."""

    dtype: np.dtype[Any] = np.dtype(np.float32)

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape

    def chunks(self) -> Iterator[bytes]:
        return iter(())


def test_mapped_files_are_read_once_and_given_back(tmp_path: Path) -> None:
    array = np.arange(3 * 2**20, dtype=np.float32).reshape(3, -1)
    write_record(tmp_path / "a", [("x", array), ("y", array[:, 5:])])
    record = open_record(tmp_path / "a")
    before = resident()
    write_record(tmp_path / "b", [("x", record["x"]), ("y", record["y"].T)])
    grown = resident() - before
    assert_same(open_record(tmp_path / "b")["x"], array)
    assert_same(open_record(tmp_path / "b")["y"], array[:, 5:].T)
    forget(record["x"])
    assert record["x"][2, -1] == array[-1, -1]  # it comes from the file again
    assert grown < array.nbytes * 1.6  # one of the two may stay: it was read across


def resident() -> int:
    """Return the bytes of this process that are in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def test_changes_that_are_in_memory_only_are_kept(tmp_path: Path) -> None:
    np.zeros(2**20, np.uint8).tofile(tmp_path / "raw")
    array = np.memmap(tmp_path / "raw", np.uint8, mode="c")
    array[:] = 7
    view = array[:]
    view.flags.writeable = False
    forget(view)
    write_record(tmp_path / "r", [("x", view)])
    assert view.min() == 7 and open_record(tmp_path / "r")["x"].min() == 7

"""The formats of records: what is written is read, in files and in memory."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from burn.record import (
    FORMATS,
    RecordError,
    format_named,
    open_record,
    read_record,
    record_bytes,
    record_of_bytes,
    write_record,
)
from burn.record.dtypes import DTYPES, Array
from burn.record.precision import PRECISIONS, Precision

#: What Burn has no dtype for.
NOT_BURNS = {tag for tag in DTYPES if tag.startswith(("F8", "F4", "C"))}
OTHERS = [kind for kind in FORMATS if kind != "safetensors"]


def arrays() -> dict[str, Array]:
    """Return an array of every dtype that all formats have, and odd shapes."""
    rng = np.random.default_rng(0)
    found: dict[str, Array] = {
        f"of.{tag}": rng.integers(0, 2, (3, 5)).astype(dtype)
        for tag, dtype in DTYPES.items()
        if tag not in NOT_BURNS
    }
    strided = np.arange(24, dtype=">f4").reshape(4, 6)[::2, ::-1].T
    return found | {
        "scalar": np.array(3, np.float32),
        "layers.0.weight": strided,
        "layers.1.empty": np.zeros((0, 3), np.float64),
        "layers.2.w": np.broadcast_to(np.float16(2), (300, 300)),
        "gaps.0.w": np.ones(3, np.int64),
        "gaps.2.w": np.ones(1, np.uint8),
        "\u00fcml\u00e4ut \u2603": np.ones(2, np.float32),
    }


def same(record: Any, expected: dict[str, Array]) -> None:
    """Return if a record holds these arrays."""
    assert set(record) == set(expected)
    for name, array in expected.items():
        found = record[name]
        assert (found.dtype.name, found.shape) == (array.dtype.name, array.shape), name
        assert found.tobytes() == array.astype(found.dtype).tobytes(), name
        assert not found.flags.writeable and found.flags.aligned
        assert record.info(name) == (found.dtype, found.shape)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("mmap", [True, False])
def test_what_is_written_is_read(kind: str, mmap: bool, tmp_path: Path) -> None:
    path = tmp_path / f"w.{kind}"
    write_record(path, arrays().items(), {"by": "me", "unit": "\u00b5"})
    record = read_record(path, mmap=mmap)
    same(record, arrays())
    about = record.metadata
    assert (about["by"], about["unit"]) == ("me", "\u00b5")


@pytest.mark.parametrize("kind", FORMATS)
def test_records_in_memory(kind: str, tmp_path: Path) -> None:
    data = record_bytes(kind, arrays().items(), {"by": "me"})
    same(record_of_bytes(data, kind), arrays())
    write_record(tmp_path / f"w.{kind}", arrays().items(), {"by": "me"})
    assert (tmp_path / f"w.{kind}").read_bytes() == data
    assert record_bytes(kind, arrays().items(), {"by": "me"}) == data


@pytest.mark.parametrize("kind", FORMATS)
def test_a_record_of_nothing(kind: str) -> None:
    same(record_of_bytes(record_bytes(kind, []), kind), {})


@pytest.mark.parametrize("kind", [kind for kind in FORMATS if kind[:3] != "bin"])
def test_contents_tell_the_format_and_not_the_name(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "w.bin"
    path.write_bytes(record_bytes(kind, arrays().items()))
    same(read_record(path), arrays())
    same(record_of_bytes(path.read_bytes()), arrays())


def test_names_of_files() -> None:
    assert format_named("a/b.mpk.gz") == "mpk.gz" and format_named("B.BPK") == "bpk"
    assert format_named("weights") == format_named("w.gz") == "safetensors"


@pytest.mark.parametrize("kind", OTHERS)
def test_dtypes_that_burn_lacks(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"w.{kind}"
    path.write_bytes(b"old")
    for tag in sorted(NOT_BURNS):
        with pytest.raises(RecordError, match=f"tensor 'x': Burn has no dtype {tag}"):
            write_record(path, [("x", np.zeros(2, DTYPES[tag]))])
    assert path.read_bytes() == b"old"


@pytest.mark.parametrize("kind", ["mpk", "json"])
def test_a_key_below_another(kind: str) -> None:
    ones = np.ones(1)
    for names in (("a", "a.b"), ("a.b", "a")):
        with pytest.raises(RecordError, match="below"):
            record_bytes(kind, [(name, ones) for name in names])
    with pytest.raises(RecordError, match="nested too deeply"):
        record_bytes(kind, [(".".join("a" * 99), ones)])


def test_formats_that_are_unknown() -> None:
    with pytest.raises(RecordError, match="unknown format 'npz', expected one of safe"):
        record_bytes("npz", [])


def test_json_is_for_small_records() -> None:
    large = np.broadcast_to(np.float32(0), (2**21,))
    with pytest.raises(RecordError, match="for small records: expected at most"):
        record_bytes("json", [("x", large)])
    with pytest.raises(RecordError, match="for small records: expected at most"):
        record_of_bytes(b'{"metadata": {}, "item": {}}' + b" " * 2**25)


def test_json_is_what_burn_writes() -> None:
    weight = np.array([[1, 2], [3, -1]], np.int8)
    text = record_bytes("json", [("fc.weight", weight)], precision="full")
    found = json.loads(text)
    tensor = found["item"]["fc"]["weight"]
    assert found["metadata"]["float"] == "f32"
    assert found["metadata"]["settings"] == "FullPrecisionSettings"
    assert tensor["param"]["shape"] == [2, 2] and tensor["param"]["dtype"] == "I32"
    assert tensor["param"]["bytes"][:5] == [1, 0, 0, 0, 2]
    assert len(tensor["id"]) == 13


def test_gzip_is_the_same_every_time_and_for_everybody() -> None:
    data = record_bytes("mpk.gz", arrays().items())
    assert gzip.decompress(data) == record_bytes("mpk", arrays().items())
    assert data[4:8] == b"\0\0\0\0"  # no time


def test_how_far_a_compressed_record_may_grow(tmp_path: Path) -> None:
    path, zeros = tmp_path / "w.bin.gz", np.zeros(17 * 2**20, np.float32)
    write_record(path, [("x", zeros)])
    with pytest.raises(RecordError, match="beyond 67108864 bytes; most_inflated allow"):
        read_record(path)
    assert read_record(path, most_inflated=2**27)["x"].shape == zeros.shape
    with pytest.raises(RecordError, match="beyond 99 bytes"):
        read_record(path, most_inflated=99)


FLOATS = np.array([1, 1 / 3, -7e4], np.float64)
INTEGERS = np.array([1, -3, 40000], np.int64)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_precisions(kind: str, precision: Precision) -> None:
    floating, integer = PRECISIONS[precision]
    given = {"f": FLOATS[:2], "i": INTEGERS[:2], "b": np.array([True, False])}
    data = record_bytes(kind, given.items(), precision=precision)
    record = record_of_bytes(data, kind)
    assert record["f"].dtype == floating and record["i"].dtype == integer
    np.testing.assert_array_equal(record["f"], FLOATS[:2].astype(floating))
    np.testing.assert_array_equal(record["i"], INTEGERS[:2])
    assert record["b"].tolist() == [True, False]
    assert record.metadata["settings"] == f"{precision.capitalize()}PrecisionSettings"


@pytest.mark.parametrize("array", [FLOATS, INTEGERS])
def test_what_half_precision_cannot_hold(array: Array, tmp_path: Path) -> None:
    path = tmp_path / "w.mpk"
    path.write_bytes(b"old")
    with pytest.raises(RecordError, match=r"tensor 'x': 1 of 3 values do not fit"):
        write_record(path, [("x", array)], precision="half")
    assert path.read_bytes() == b"old"


def test_a_source_at_a_precision() -> None:
    class Source:
        dtype = np.dtype(np.float64)
        shape = (3,)

        def chunks(self) -> list[bytes]:
            data = np.arange(3.0).tobytes()
            return [data[:5], data[5:]]

    record = record_of_bytes(record_bytes("mpk", [("x", Source())], precision="half"))
    assert record["x"].dtype == np.float16 and record["x"].tolist() == [0, 1, 2]


def test_only_safetensors_where_only_they_are_expected(tmp_path: Path) -> None:
    for kind in OTHERS:
        (tmp_path / "w").write_bytes(record_bytes(kind, arrays().items()))
        with pytest.raises(RecordError, match=str(tmp_path / "w")):
            open_record(tmp_path / "w")


def test_files_that_are_no_records(tmp_path: Path) -> None:
    path = tmp_path / "w.mpk"
    for content, message in (
        (b"", "got: empty file"),
        (b"version https://git-lfs.github.com/spec/v1\n", "got: Git LFS pointer"),
        (b"<!doctype html><html>", "got: HTML page"),
        (b"\x80\x02}.", "got: pickle"),
    ):
        path.write_bytes(content)
        with pytest.raises(RecordError, match=message):
            read_record(path)

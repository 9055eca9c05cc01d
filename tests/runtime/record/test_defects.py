"""Broken records: every defect is one error that says what is wrong."""

import json
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from burn.record import RecordError, open_record, write_record
from tests.sampling import example_count

Fields = dict[str, Any]


def file_of(header: bytes | Fields, data: bytes = b"") -> bytes:
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(raw)) + raw + data


def tensor(
    shape: Any = (2, 3), begin: Any = 0, end: Any = 24, dtype: Any = "F32"
) -> Fields:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


DATA = bytes(24)
SOUND = file_of({"w": tensor()}, DATA)
PAIR = {"w": tensor([6]), "v": tensor([6], 24, 48)}

DEFECTS = {
    "no length": (SOUND[:7], r"truncated: expected at least 8 bytes, got 7"),
    "half a header": (
        SOUND[:20],
        r"truncated: expected a header of \d+ bytes, got 12 bytes",
    ),
    "half the data": (
        SOUND[:-1],
        r"'w': data_offsets \(0, 24\) out of range: the file holds 23 bytes",
    ),
    "header too large": (
        struct.pack("<Q", 2**24 + 1) + b" " * 9,
        r"header too large: 16777217 bytes, expected at most 16777216",
    ),
    "header of 2**64 - 1": (b"\xff" * 8 + b"{}", r"header too large: 184467440737"),
    "not JSON": (file_of(b"{oops}"), r"header is not JSON: "),
    "not UTF-8": (file_of(b'{"\xff":1}'), r"header is not JSON: .*utf-8"),
    "an array": (file_of(b"[]"), r"header must begin with '{', got b'\[\]'"),
    "two values": (file_of(b"{} {}"), r"header is not JSON: 'Extra data"),
    "NaN": (file_of(b'{"w": NaN}'), r"header is not JSON: it holds NaN"),
    "deep": (
        file_of(b'{"w":' + b"[" * 200_000),
        r"header is not JSON: .*(recursion|overflow)",
    ),
    "long number": (
        file_of(b'{"w":' + b"9" * 5000 + b"}"),
        r"header is not JSON: .*Exceeds the limit",
    ),
    "duplicate tensor": (
        file_of(b'{"w":1,"w":1}'),
        r"duplicate key 'w' in the header",
    ),
    "duplicate field": (
        file_of(b'{"w":{"dtype":"U8","dtype":"I8"}}'),
        r"duplicate key 'dtype'",
    ),
    "metadata list": (
        file_of({"__metadata__": []}),
        r"__metadata__ must be an object of strings, got \[\]",
    ),
    "metadata number": (
        file_of({"__metadata__": {"k": 1}}),
        r"__metadata__ 'k' must be a string, got 1",
    ),
    "surrogate": (
        file_of({"\ud800": tensor()}, DATA),
        r"tensor '\\ud800': lone surrogate",
    ),
    "not an object": (file_of({"w": 3}), r"tensor 'w': expected the fields .*got 3"),
    "missing field": (
        file_of({"w": {"dtype": "F32"}}),
        r"tensor 'w': expected the fields .*'shape'\], got \['dtype'\]",
    ),
    "unknown field": (
        file_of({"w": tensor() | {"order": "F"}}, DATA),
        r"tensor 'w': expected the fields .*got .*'order'",
    ),
    "unknown dtype": (
        file_of({"w": tensor(dtype="Q9")}, DATA),
        r"tensor 'w': unknown dtype 'Q9', expected one of BOOL, U8",
    ),
    "dtype not text": (
        file_of({"w": tensor(dtype=["F32"])}, DATA),
        r"tensor 'w': unknown dtype \['F32'\]",
    ),
    "negative dims": (
        file_of({"w": tensor([-2, -3])}, DATA),
        r"tensor 'w': negative dimension in shape \(-2, -3\)",
    ),
    "boolean dim": (
        file_of({"w": tensor([True])}, DATA),
        r"tensor 'w': shape must be a list of integers, got \[True\]",
    ),
    "float dim": (
        file_of({"w": tensor([6.0])}, DATA),
        r"tensor 'w': shape must be a list of integers, got \[6\.0\]",
    ),
    "shape text": (
        file_of({"w": tensor("6")}, DATA),
        r"tensor 'w': shape must be a list of integers, got '6'",
    ),
    "rank": (
        file_of({"w": tensor([1] * 65, 0, 4)}, DATA),
        r"tensor 'w': rank 65, expected at most 64",
    ),
    "product overflow": (
        file_of({"w": tensor([2**40, 2**40])}, DATA),
        r"tensor 'w': size overflow: shape \(1099511627776, 1099511627776\) of F32",
    ),
    "overflow beside a zero": (
        file_of({"w": tensor([0, 2**62, 2**62], 0, 0)}),
        r"tensor 'w': size overflow",
    ),
    "length": (
        file_of({"w": tensor([5])}, DATA),
        r"tensor 'w': F32 of shape \(5,\) takes 20 bytes, .*span 24",
    ),
    "odd F4": (
        file_of({"w": tensor([3], 0, 2, "F4")}, bytes(2)),
        r"tensor 'w': F4 of shape \(3,\) does not fill whole bytes",
    ),
    "one offset": (
        file_of({"w": {"dtype": "U8", "shape": [1], "data_offsets": [0]}}, b"x"),
        r"tensor 'w': expected two data_offsets, got \(0,\)",
    ),
    "negative offset": (
        file_of({"w": tensor(begin=-24, end=0)}, DATA),
        r"tensor 'w': data_offsets \(-24, 0\) out of range",
    ),
    "reversed offsets": (
        file_of({"w": tensor(begin=24, end=0)}, DATA),
        r"tensor 'w': data_offsets \(24, 0\) out of range",
    ),
    "offset text": (
        file_of({"w": tensor(end="24")}, DATA),
        r"tensor 'w': data_offsets must be a list of integers",
    ),
    "overlap": (
        file_of(PAIR | {"v": tensor([6], 20, 44)}, bytes(44)),
        r"tensor 'v' overlaps tensor 'w': expected its data at 24, got 20",
    ),
    "empty inside another": (
        file_of(PAIR | {"e": tensor([0], 30, 30)}, bytes(48)),
        r"tensor 'e' overlaps|tensor 'e' leaves",
    ),
    "hole": (
        file_of(PAIR | {"v": tensor([6], 32, 56)}, bytes(56)),
        r"tensor 'v' leaves a hole after tensor 'w': expected its data at 24, got 32",
    ),
    "hole at the start": (
        file_of({"w": tensor(begin=8, end=32)}, bytes(32)),
        r"tensor 'w' leaves a hole after the header",
    ),
    "trailing bytes": (
        SOUND + b"!",
        r"trailing bytes: the tensors take 24 bytes, the file holds 25",
    ),
}


@pytest.mark.parametrize("mmap", [True, False])
@pytest.mark.parametrize("content, message", DEFECTS.values(), ids=DEFECTS)
def test_defect(content: bytes, message: str, mmap: bool, tmp_path: Path) -> None:
    path = tmp_path / "broken.safetensors"
    path.write_bytes(content)
    with pytest.raises(RecordError, match=rf"(?s)broken\.safetensors: .*{message}"):
        open_record(path, mmap=mmap)


def test_the_sound_file_of_these_tests_opens(tmp_path: Path) -> None:
    (tmp_path / "r").write_bytes(SOUND)
    assert open_record(tmp_path / "r")["w"].shape == (2, 3)


def test_all_defective_tensors_are_listed(tmp_path: Path) -> None:
    fields = {f"w{i}": tensor(dtype="Q9") for i in range(13)}
    (tmp_path / "r").write_bytes(file_of(fields, DATA))
    with pytest.raises(RecordError, match=r"(?s)13 defects.*'w0'.*'w9'.*and 3 more"):
        open_record(tmp_path / "r")


def test_names_in_messages_are_short_ascii(tmp_path: Path) -> None:
    name = "\x1b[31m\u202e" + "n" * 10_000
    (tmp_path / "r").write_bytes(file_of({name: tensor([5])}, DATA))
    with pytest.raises(RecordError, match=r"'\\x1b\[31m\\u202en+\.\.\.") as caught:
        open_record(tmp_path / "r")
    assert str(caught.value).isascii()
    assert len(str(caught.value)) < 400 + len(str(tmp_path))


def test_bool_bytes_other_than_0_and_1(tmp_path: Path) -> None:
    content = file_of({"m": tensor([3], 0, 3, "BOOL")}, b"\x00\x01\x02")
    (tmp_path / "r").write_bytes(content)
    record = open_record(tmp_path / "r")
    with pytest.raises(RecordError, match="tensor 'm': BOOL expects bytes 0 and 1"):
        record["m"]


def test_not_a_regular_file(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="expected a regular file, got a directory"):
        open_record(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(RecordError, match="regular file, got a device or pipe"):
        open_record(tmp_path / "pipe")
    with pytest.raises(FileNotFoundError, match="missing"):
        open_record(tmp_path / "missing")


class Claim:
    """A source that announces eight bytes and gives what it was told to."""

    dtype: np.dtype[Any] = np.dtype(np.float32)
    shape: tuple[int, ...] = (2,)

    def __init__(self, *chunks: bytes) -> None:
        self._chunks = chunks

    def chunks(self) -> Iterator[bytes]:
        return iter(self._chunks)


X = np.arange(24, dtype="f4").reshape(2, 3, 4)
REFUSED: dict[str, tuple[list[tuple[Any, Any]], Any, str]] = {
    "reserved": ([("__metadata__", X)], {}, "name '__metadata__' is reserved"),
    "surrogate": ([("a\udc80", X)], {}, r"name 'a\\udc80': lone surrogate"),
    "number": ([(3, X)], {}, "tensor name must be a string, got 3"),
    "duplicate": ([("x", X), ("x", X)], {}, "tensor 'x': duplicate name"),
    "complex": ([("x", X.astype("c16"))], {}, "dtype complex128 has no place"),
    "objects": ([("x", X.astype(object))], {}, "dtype object has no place"),
    "list": ([("x", [1, 2])], {}, "expected an array or a TensorSource, got list"),
    "odd F4": (
        [("x", np.zeros(3, ml_dtypes.float4_e2m1fn))],
        {},
        "tensor 'x': F4 of shape .* does not fill whole bytes",
    ),
    "metadata number": ([("x", X)], {"k": 1}, "metadata must map text to text"),
    "metadata surrogate": ([("x", X)], {"k": "\ud800"}, "metadata 'k': lone surr"),
    "short source": ([("x", Claim(b"1234"))], {}, "announced 8 bytes, got 4"),
    "long source": ([("x", Claim(b"1234" * 3))], {}, "8 bytes, got at least 12"),
}


@pytest.mark.parametrize("tensors, metadata, message", REFUSED.values(), ids=REFUSED)
def test_writer_refuses(
    tensors: list[tuple[Any, Any]], metadata: Any, message: str, tmp_path: Path
) -> None:
    with pytest.raises(RecordError, match=f"out.safetensors: .*{message}"):
        write_record(tmp_path / "out.safetensors", tensors, metadata)
    assert list(tmp_path.iterdir()) == []


def test_a_source_that_gives_too_much_is_stopped_at_once(tmp_path: Path) -> None:
    given: list[int] = []

    class Endless(Claim):
        def chunks(self) -> Iterator[bytes]:
            for step in range(1000):
                given.append(step)
                yield b"1234"

    with pytest.raises(RecordError, match="tensor 'x': .* 8 bytes, got at least 12"):
        write_record(tmp_path / "r", [("x", Endless())])
    assert given == [0, 1, 2]


def test_writer_refuses_a_header_above_the_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("burn.record.header.MAX_HEADER", 1000)
    with pytest.raises(RecordError, match="header too large: 1.* at most 1000"):
        write_record(tmp_path / "r", [("x" * 1000, X)])
    assert list(tmp_path.iterdir()) == []


def load_or_refuse(path: Path, content: bytes) -> None:
    """Reading may give arrays or RecordError, and no other exception."""
    path.write_bytes(content)
    for mmap in (True, False):
        try:
            record = open_record(path, mmap=mmap)
            for name in record:
                dtype, shape = record.info(name)
                array = record[name]
                assert (array.dtype, array.shape) == (dtype, shape)
                array.tobytes()
        except RecordError as error:
            assert str(path) in str(error)


FUZZ = settings(
    max_examples=example_count(200),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@FUZZ
@given(content=st.binary(max_size=200))
def test_random_bytes(content: bytes, tmp_path: Path) -> None:
    load_or_refuse(tmp_path / "r", content)
    load_or_refuse(tmp_path / "r", file_of(content, DATA))


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.sampled_from(["F32", "U8", "BOOL", "F4", "dtype", "shape"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["dtype", "shape", "data_offsets", "__metadata__"]), inner
    ),
    max_leaves=8,
)
SMALL = st.integers(-1, 26)
ENTRIES = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from(["F32", "BOOL", "F4", "BF16", "C64"]) | VALUES,
        "shape": st.lists(SMALL, max_size=4) | VALUES,
        "data_offsets": st.lists(SMALL, min_size=2, max_size=2) | VALUES,
    }
)


@FUZZ
@given(header=st.dictionaries(st.text(max_size=3), ENTRIES | VALUES, max_size=3))
def test_random_headers(header: Fields, tmp_path: Path) -> None:
    load_or_refuse(tmp_path / "r", file_of(header, b"\x01" * 24))


@FUZZ
@given(
    edits=st.lists(st.tuples(st.integers(0, 2**16), st.integers(0, 255)), max_size=4),
    cut=st.integers(0, 400),
)
def test_mutated_files(edits: list[tuple[int, int]], cut: int, tmp_path: Path) -> None:
    mask = ("m", np.array([True, False]))
    write_record(tmp_path / "r", [("w", X), mask, ("h", X[0].astype("f2"))], {"k": "v"})
    content = bytearray((tmp_path / "r").read_bytes())
    for index, byte in edits:
        content[index % len(content)] = byte
    load_or_refuse(tmp_path / "r", bytes(content[: len(content) - cut // 4]))

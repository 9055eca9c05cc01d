"""Records as Burn writes them, and files that pretend to be some."""

import gzip
import json
import random
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from burn.record import RecordError, record_bytes, record_of_bytes
from burn.record.burn_formats import DTYPES, id_text
from tests.pace import within

#: What the library msgpack makes of Burn's structure: I8 0, 1, 2 and F16 1.
NAMED = bytes.fromhex(
    "83a86d6574616461746185a5666c6f6174a3663332a3696e74a3693332a6666f726d6174d961"
    "6275726e5f636f72653a3a7265636f72643a3a66696c653a3a4e616d65644d706b46696c6552"
    "65636f726465723c6275726e5f636f72653a3a7265636f72643a3a73657474696e67733a3a46"
    "756c6c507265636973696f6e53657474696e67733ea776657273696f6ea6302e32302e30a873"
    "657474696e6773b546756c6c507265636973696f6e53657474696e6773a46974656d82a16181"
    "a17782a26964ad30313233343536373839616263a5706172616d83a56279746573c403000102"
    "a573686170659103a56474797065a24938a16282a26964a130a5706172616d83a56279746573"
    "c402003ca573686170659101a56474797065a3463136a25f62c0"
)


def packed(value: Any) -> bytes:
    """Return a value in MessagePack, with lengths of four bytes throughout."""
    if value is None:
        return b"\xc0"
    if isinstance(value, bool):
        return b"\xc3" if value else b"\xc2"
    if isinstance(value, int):
        return b"\xd3" + value.to_bytes(8, "big", signed=True)
    if isinstance(value, float):
        return b"\xcb" + np.array(value, ">f8").tobytes()
    if isinstance(value, bytes):
        return b"\xc6" + len(value).to_bytes(4, "big") + value
    if isinstance(value, str):
        return b"\xdb" + len(value.encode()).to_bytes(4, "big") + value.encode()
    if isinstance(value, list):
        return b"\xdd" + len(value).to_bytes(4, "big") + b"".join(map(packed, value))
    pairs = b"".join(packed(key) + packed(item) for key, item in value.items())
    return b"\xdf" + len(value).to_bytes(4, "big") + pairs


def tensor(dtype: Any = "F32", shape: Any = (2,), data: Any = bytes(8)) -> Any:
    """Return a tensor in Burn's structure."""
    return {"bytes": data, "shape": list(shape), "dtype": dtype}


def named(item: Any) -> bytes:
    """Return the MessagePack of a record."""
    inner = packed({"item": item, "_b": None})
    return b"\x83\xa8metadata" + packed({"version": "0.20.0"}) + inner[5:]


def test_what_another_library_packs() -> None:
    record = record_of_bytes(NAMED)
    assert list(record) == ["a.w", "b"]
    assert record["a.w"].tolist() == [0, 1, 2] and record["a.w"].dtype == np.int8
    assert record["b"].tolist() == [1] and record["b"].dtype == np.float16
    assert record.metadata["version"] == "0.20.0"
    assert record.metadata["settings"] == "FullPrecisionSettings"


def test_lists_options_constants_and_tensors_without_ids() -> None:
    item = {
        "layers": [{"w": {"id": "x", "param": tensor()}}, {"w": tensor("U8", (8,))}],
        "bias": None,
        "eps": 1e-5,
        "stride": [1, 1],
        "name": "net",
        "flag": True,
        "negative": -3,
        "deep": {"er": {"w": tensor("Flex32")}},
    }
    record = record_of_bytes(named(item))
    kinds = {name: str(record[name].dtype) for name in record}
    assert kinds == {
        "layers.0.w": "float32",
        "layers.1.w": "uint8",
        "deep.er.w": "float32",
    }
    text = json.dumps({"metadata": {}, "item": _numbers(item)})
    assert list(record_of_bytes(text.encode())) == list(record)


def _numbers(value: Any) -> Any:
    """Return the same with bytes as JSON has them."""
    if isinstance(value, dict):
        return {key: _numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_numbers(item) for item in value]
    return list(value) if isinstance(value, bytes) else value


def test_every_dtype_of_burn_and_both_bools() -> None:
    for name in DTYPES:
        record = record_of_bytes(named({"w": tensor(name, (0,), b"")}))
        assert record["w"].shape == (0,)
    for bools in ("Bool", {"Bool": "Native"}, {"Bool": "U8"}):
        record = record_of_bytes(named({"w": tensor(bools, (2,), b"\0\1")}))
        assert record["w"].tolist() == [False, True]


WRONG: dict[str, tuple[Any, str]] = {
    "short": (tensor(data=bytes(7)), r"tensor 'w': F32 of shape \(2,\) takes 8 bytes"),
    "quantized": (
        tensor({"QFloat": {"level": 1}}),
        r"dtype 'QFloat' .* cannot be read",
    ),
    "wide bools": (tensor({"Bool": "U32"}), "dtype 'Bool' .'U32'. cannot be read"),
    "no dtype": (tensor("F128"), "unknown dtype 'F128', expected one of F64"),
    "dtype 3": (tensor(3), "unknown dtype 3"),
    "negative": (tensor(shape=(-2,)), "negative dimension"),
    "shape": (tensor(shape=(1.5,)), "shape must be a list of integers"),
    "bool as size": (tensor(shape=(True, 2)), "shape must be a list of integers"),
    "bytes": (tensor(data="text"), "expected the bytes of a tensor, got 'text'"),
    "huge": (tensor(shape=(2**62, 2**62)), "size overflow"),
    "old": ({"value": [1.0], "shape": [1]}, "from before Burn 0.14; load it there"),
}


@pytest.mark.parametrize("case", WRONG)
def test_tensors_that_are_none(case: str) -> None:
    wrong, message = WRONG[case]
    with pytest.raises(RecordError, match=message):
        record_of_bytes(named({"w": wrong}))


def test_all_that_is_wrong_is_listed() -> None:
    item = {"a": tensor("F128"), "b": tensor(), "c": tensor(shape=(3,))}
    with pytest.raises(RecordError, match="(?s)2 defects.*'a'.*'c'"):
        record_of_bytes(named(item))


def head(data: bytes) -> bytes:
    """Return a record that begins like Burn's and goes on with ``data``."""
    return b"\x82\xa8metadata\x80\xa4item" + data


def nested(code: bytes, depth: int = 2000) -> bytes:
    """Return a list of a list of a list."""
    return code * depth + b"\xc0"


PACK = record_bytes("bpk", [("a", np.ones(3)), ("b", np.ones(300, np.int8))])


def pack(described: bytes, data: bytes = b"") -> bytes:
    """Return a pack with these descriptions."""
    start = b"NRUB\1\0" + len(described).to_bytes(4, "little") + described
    return start + bytes(-len(start) % 256) + data


def one_tensor(begin: int, end: int, more: bytes = b"") -> bytes:
    """Return the descriptions of a U8 vector from ``begin`` to ``end``."""
    size = (end - begin).to_bytes(8, "big", signed=True) if end >= begin else bytes(8)
    ends = b"".join(b"\x1b" + n.to_bytes(8, "big") for n in (begin, end))
    fields = b"\x65dtype\x62U8\x65shape\x81\x1b" + size + b"\x6cdata_offsets\x82" + ends
    return b"\xa1\x67tensors" + (more or b"\xa1") + b"\x61x\xa3" + fields


def bomb() -> bytes:
    """Return 80 MB of zeros in gzip, more than the 64 MiB that are allowed."""
    size = 80 * 10**6
    return gzip.compress(head(b"\xc6" + size.to_bytes(4, "big") + bytes(size)), 1)


HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "deep lists": (lambda: head(nested(b"\x91")), "nested deeper than 100"),
    "deep maps": (lambda: head(nested(b"\x81\xa0")), "nested deeper than 100"),
    "a list of 4 billion": (lambda: head(b"\xdd\xff\xff\xff\xff"), "cut off: expected"),
    "a map of 4 billion": (lambda: head(b"\xdf\xff\xff\xff\xff"), "cut off: expected"),
    "a text of 4 GB": (lambda: head(b"\xdb\xff\xff\xff\xff"), "cut off: expected"),
    "bytes of 4 GB": (lambda: head(b"\xc6\xff\xff\xff\xff"), "cut off: expected"),
    "a million lists": (
        lambda: head(b"\xdd\x00\x0f\x42\x40" + b"\x90" * 10**6),
        "more than 500000 values",
    ),
    "a key twice": (lambda: head(b"\x82\xa1a\xc0\xa1a\xc0"), "duplicate key 'a'"),
    "a key that is a number": (lambda: head(b"\x81\x01\xc0"), "a text as key, got 1"),
    "an extension": (lambda: head(b"\xd4\x01\x00"), "of kind 0xd4, which no record"),
    "text that is none": (lambda: head(b"\xa2\xff\xfe"), "expected text in UTF-8"),
    "trailing bytes": (lambda: NAMED + b"\0", "1 trailing bytes"),
    "no item": (lambda: b"\x81\xa8metadata\x80", "a map with metadata and item"),
    "two paths": (
        lambda: named({"a": {"b": tensor()}, "a.b": tensor()}),
        "its key is that of another",
    ),
    "a gzip bomb": (bomb, r"gzip: grows beyond \d+ bytes"),
    "gzip cut off": (lambda: gzip.compress(NAMED)[:-3], "gzip: cut off"),
    "gzip and more": (lambda: gzip.compress(NAMED) + b"x", "gzip: trailing bytes"),
    "gzip that is none": (lambda: b"\x1f\x8b\x08" + bytes(30), "gzip: "),
    "gzip in gzip": (lambda: gzip.compress(gzip.compress(NAMED)), "got: gzip file"),
    "deep JSON": (
        lambda: b'{"metadata": {}, "item": ' + b"[" * 10**5,
        "not JSON|nested deeper",
    ),
    "JSON of lists": (
        lambda: b'{"metadata": 1, "item": [' + b"[]," * 10**6 + b"1]}",
        "more than 500000 lists",
    ),
    "JSON with a key twice": (
        lambda: b'{"metadata": {}, "item": {"a": 1, "a": 2}}',
        "a key is there twice",
    ),
    "JSON with a byte of 256": (
        lambda: json.dumps(
            {"metadata": {}, "item": {"w": tensor(data=[256])}}
        ).encode(),
        "expected bytes as a list of 0 to 255",
    ),
    "a pack of another version": (lambda: b"NRUB\2\0" + PACK[6:], "of version 2"),
    "a pack cut off": (lambda: PACK[:-1], "is it truncated"),
    "a pack and more": (lambda: PACK + b"\0", "is it truncated"),
    "descriptions of 4 GB": (lambda: b"NRUB\1\0" + b"\xff" * 4, "descriptions of"),
    "descriptions cut off": (lambda: PACK[:40], "cut off"),
    "a deep pack": (lambda: pack(nested(b"\x81")), "nested deeper than 100"),
    "a long pack": (lambda: pack(b"\x9b" + b"\xff" * 8), "cut off"),
    "a pack of floats": (lambda: pack(b"\xfb" + bytes(8)), "which no record has"),
    "a pack of tags": (lambda: pack(b"\xc0\x60"), "which no record has"),
    "a pack without ends": (lambda: pack(b"\x9f\xff"), "which no record has"),
    "offsets beyond": (lambda: pack(one_tensor(0, 9), bytes(8)), "is it truncated"),
    "offsets turned": (lambda: pack(one_tensor(9, 3), bytes(9)), "out of range"),
    "overlapping": (
        lambda: pack(
            one_tensor(0, 4, b"\xa2")
            + b"\x61y"
            + one_tensor(2, 6).partition(b"\x61x")[2],
            bytes(6),
        ),
        "'y' overlaps tensor 'x'",
    ),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_files_end_soon_and_take_little(case: str) -> None:
    make, message = HOSTILE[case]
    data = make()
    tracemalloc.start()
    try:
        with within(2), pytest.raises(RecordError, match=message):
            record_of_bytes(data)
        memory = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert memory < 256 * 2**20


def test_binary_records_of_burn_say_what_to_do() -> None:
    fields = ("f32", "i32", "burn_core::record::file::BinFileRecorder", "0.20.0", "x")
    data = b"".join(bytes([len(text)]) + text.encode() for text in fields)
    for content in (data + bytes(100), b"\xff" * 50, b"\x05ab"):
        with pytest.raises(RecordError, match="fit one program only: save it as .mpk"):
            record_of_bytes(content, "bin")


def read(data: bytes, kind: str) -> None:
    """Read all of a record; what is wrong with it is told."""
    try:
        record = record_of_bytes(data, kind)
        for name in record:
            assert record[name].nbytes <= len(data) + 16
    except RecordError:
        pass


@pytest.mark.parametrize("kind", ["mpk", "bpk", "bin", "json"])
def test_damaged_records_are_refused(kind: str) -> None:
    tensors = [("a.0", np.arange(3)), ("a.1", np.ones(2, bool)), ("b", np.array([1.0]))]
    whole = record_bytes(kind, tensors, {"by": "me"})
    step = max(1, len(whole) // 500)
    for end in range(0, len(whole) - 1, step):
        with pytest.raises(RecordError):
            record_of_bytes(whole[:end], kind)
    rng = random.Random(0)
    for _ in range(2000):
        data = bytearray(whole)
        for _ in range(rng.choice([1, 1, 2, 8])):
            data[rng.randrange(len(data))] = rng.choice([0, 255, rng.randrange(256)])
        read(bytes(data), kind)


def test_packs_from_before_tensors_were_aligned() -> None:
    described = one_tensor(0, 8)
    start = b"NRUB\1\0" + len(described).to_bytes(4, "little") + described
    record = record_of_bytes(start + bytes(range(1, 9)))
    assert record["x"].tolist() == list(range(1, 9))
    with pytest.raises(RecordError, match="is it truncated"):
        record_of_bytes(start + bytes(8))  # or it lost the end of an aligned one


def test_ids_are_burns_numbers_in_base_32() -> None:
    text = id_text("a.weight")
    assert len(text) == 13 and text != id_text("a.bias")
    assert set(text) <= set("0123456789abcdefghijklmnopqrstuv")

"""Damaged archives, tensors and bytes raise one clear error."""

import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from burn_import.pytorch import Checkpoint, Limits, read
from burn_ir import InvalidModel, ModelError, UnreadableFile, UnsupportedModel
from tests.importer.checkpoints.test_files import V, W, numpy_array, opened
from tests.importer.checkpoints.test_hostile import directory as directory
from tests.importer.pytorch_files import (
    CONTAINERS,
    ORDERED,
    REBUILD,
    Entry,
    Name,
    PickleWriter,
    Raw,
    Reduce,
    Stored,
    bare_file,
    entries_of,
    legacy_file,
    raw,
    storage,
    tensor,
    view,
    zip_file,
    zipped,
)
from tests.sampling import example_count

MANY = 10**12


def changed(which: int, **fields: Any) -> bytes:
    """Return an archive with changed fields of one entry."""
    entries = entries_of({"w": tensor("0", W)})
    entries[which] = replace(entries[which], **fields)
    return zipped(entries)


PLAIN = entries_of({"w": tensor("0", W)})
ZIPS: dict[str, tuple[bytes, str]] = {
    "twice": (zipped([*PLAIN, PLAIN[2]]), "'net/data/0' twice"),
    "wrong checksum": (changed(0, crc=1), "checksum is wrong"),
    "encrypted": (changed(0, flags=1), "encrypted"),
    "another name before": (changed(2, local_name="net/data/9"), "header disagree"),
    "another size before": (
        changed(2, local={"size": 8, "packed": 8}),
        "header disagree",
    ),
    "another method before": (changed(0, local={"method": 8}), "header disagree"),
    "sizes of a stored entry": (
        changed(2, size=2**31),
        "overlaps|header disagree|data/0",
    ),
    "another method": (changed(0, method=12), "compression method 12"),
    "overlap": (changed(2, at=0, local_name="x"), "header disagree"),
    "parent": (zipped([*PLAIN, Entry("net/../../x", b"")]), "which is no name"),
    "absolute": (zipped([*PLAIN, Entry("/etc/passwd", b"")]), "which is no name"),
    "backslash": (zipped([*PLAIN, Entry("net\\x", b"")]), "which is no name"),
    "NUL": (zipped([*PLAIN, Entry("net/x\0y", b"")]), "which is no name"),
    "two folders": (zipped([*PLAIN, Entry("other/x", b"")]), "of one folder"),
    "beside the folder": (zipped([*PLAIN, Entry("x", b"")]), "of one folder"),
    "more entries": (zipped(PLAIN, count=9), "announces 9"),
    "fewer entries": (zipped(PLAIN, count=1), "announces 1"),
    "several disks": (zipped(PLAIN, disk=1), "in several parts"),
    "list elsewhere": (zipped(PLAIN, begin=5), "between its central"),
    "bytes before": (b"PK\3\4" + zipped(PLAIN), "between its central|header disagree"),
    "bytes after": (zipped(PLAIN) + b"x", "without end record"),
    "no pickle": (zipped([Entry("net/x", b"")]), "without data.pkl"),
    "no entries": (b"PK\3\4" + zipped([]), "between its central"),
    "byteorder": (
        zipped([replace(PLAIN[0]), Entry("net/byteorder", b"middle"), *PLAIN[2:]]),
        "of little or big, got 'middle'",
    ),
    "exported program": (
        zipped([Entry("net/archive_format", b"pt2"), *PLAIN]),
        "exported program",
    ),
    "bomb": (
        zipped([replace(PLAIN[0], data=bytes(80_000_000), method=8), *PLAIN[1:]]),
        "takes 80000000 bytes, expected 67108864 at most",
    ),
    "bomb that lies": (
        zipped([replace(PLAIN[0], data=bytes(9_000_000), method=8, size=90)]),
        "expected 90 bytes when inflated",
    ),
    "bomb in a storage": (
        zipped([*PLAIN[:2], replace(PLAIN[2], data=bytes(9_000_000), method=8)]),
        "is compressed",
    ),
}


@pytest.mark.parametrize("trick", ZIPS)
def test_zips_that_trick(trick: str, directory: Path) -> None:
    content, message = ZIPS[trick]
    with pytest.raises((UnreadableFile, UnsupportedModel), match=message):
        opened(directory, content)


def odd_view(*args: Any, **more: Any) -> Reduce:
    """Return a tensor on a storage of 30 elements."""
    return view(storage("0", W), *args, **more)


def with_size(size: Any, steps: Any = (1,), offset: Any = 0) -> Reduce:
    """Return a tensor with any claimed size."""
    return Reduce(REBUILD, (storage("0", W), offset, size, steps, False, ORDERED))


WRONG: dict[str, tuple[Any, str]] = {
    "past the end": (odd_view((31,)), "reaches to element 30, but its storage has 30"),
    "stride past the end": (odd_view((2, 3), (28, 1)), "reaches to element 30"),
    "offset past the end": (odd_view((1,), (1,), 30), "reaches to element 30"),
    "negative size": (odd_view((-1, 4)), "sizes of 0 or more in a tensor, got -1"),
    "negative stride": (odd_view((2,), (-1,), 5), "strides of 0 or more"),
    "negative offset": (odd_view((2,), (1,), -1), "an offset of 0 or more"),
    "huge stride": (odd_view((2,), (2**62,)), "reaches to element 46116"),
    "beyond integers": (odd_view((2**64,), (1,)), "sizes of 0 or more"),
    "beyond memory": (odd_view((2**40, 2**40), (0, 0)), "too large for memory"),
    "repeated": (
        odd_view((MANY,), (0,)),
        "repeats 120 bytes more often than the limit allows",
    ),
    "empty and vast": (odd_view((0, 2**62, 2**62), (1, 1, 1)), "too large for memory"),
    "true as a size": (odd_view((True,), (1,)), "sizes of 0 or more"),
    "text as a size": (odd_view(("3",), (1,)), "sizes of 0 or more"),
    "fewer strides": (odd_view((2, 2), (1,)), "as many strides, got 1"),
    "too many axes": (odd_view((1,) * 65), "expected sizes of a tensor"),
    "no sizes": (with_size(3), "expected sizes of a tensor"),
    "no storage": (
        view([1, 2], (2,)),
        "the storage of a tensor, got a value of type l",
    ),
    "few arguments": (Reduce(REBUILD, (1, 2)), "expected 6 to 7 arguments, got 2"),
    "no arguments": (
        Reduce(REBUILD, 3),
        "expected 6 to 7 arguments, got a value of",
    ),
    "parameter": (
        Reduce(Name("torch._utils", "_rebuild_parameter"), (1, True, ORDERED)),
        "the tensor of a parameter",
    ),
    "not pairs": (
        Reduce(Name("collections", "OrderedDict"), ([1],)),
        "a pair of a dict",
    ),
    "array": (
        replace(numpy_array(W), state=(1, (9,), numpy_array(W).state[2], False, b"x")),
        "expected 36 bytes, got 1",
    ),
}


@pytest.mark.parametrize("case", WRONG)
@pytest.mark.parametrize("container", ["zip", "legacy", "pickle"])
def test_tensors_that_contradict_themselves(
    case: str, container: str, directory: Path
) -> None:
    root, message = WRONG[case]
    protocol = 4
    with pytest.raises(InvalidModel, match=message):
        opened(directory, CONTAINERS[container]([root], protocol))


def claimed(key: Any = "0", kind: str = "FloatStorage", count: Any = 30) -> Raw:
    """Return a tensor whose storage has this description."""
    pid = ("storage", Name("torch", kind), key, "cpu", count)
    code = PickleWriter().code(pid) + b"Q"
    return Raw(
        PickleWriter().code(Reduce(REBUILD, (Raw(code), 0, (1,), (1,), False, ORDERED)))
    )


@pytest.mark.parametrize(
    ("stored", "kind", "message"),
    [
        (
            claimed(count=2**60),
            InvalidModel,
            "30 elements|expected 1152921504606846976",
        ),
        (claimed(count=29), InvalidModel, "expected 29 elements of float32, 116 bytes"),
        (claimed(count=-1), InvalidModel, "the key and the size"),
        (claimed(count="30"), InvalidModel, "the key and the size"),
        (claimed(key=None), InvalidModel, "the key and the size"),
        (claimed(key="../../../etc/passwd"), InvalidModel, "has no such entry"),
        (claimed(key="../data.pkl"), InvalidModel, "has no such entry"),
        (claimed(key="1"), InvalidModel, "storage '1': the archive has no such entry"),
        (
            claimed(kind="OddStorage"),
            UnsupportedModel,
            "torch.OddStorage are not known",
        ),
        (
            raw(PickleWriter().code((1, 2)) + b"Q"),
            UnsupportedModel,
            "the id of a storage",
        ),
        (raw(b"K\1Q"), UnsupportedModel, "the id of a storage"),
    ],
)
def test_storages_that_are_not_there(
    stored: Raw, kind: type[ModelError], message: str, directory: Path
) -> None:
    root = {"w": tensor("0", W), "x": stored}
    with pytest.raises(kind, match=message):
        opened(directory, zip_file(root))


def legacy_parts(keys: Any, tail: bytes, **more: Any) -> bytes:
    """Return a legacy file of one tensor with these keys and bytes at its end."""
    whole = legacy_file({"w": tensor("0", W)})
    writer = PickleWriter(2, "legacy")
    old = writer.dumps(["0"]) + struct.pack("<q", 30) + W.tobytes()
    assert whole.endswith(old)
    return whole[: -len(old)] + writer.dumps(keys) + tail


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (legacy_parts([], b""), "its bytes are not in the file"),
        (legacy_parts(["1"], bytes(200)), "expected the key of a storage"),
        (legacy_parts(["0", "0"], struct.pack("<q", 30) + W.tobytes()), "the key of a"),
        (legacy_parts(3, b""), "the keys of storages"),
        (legacy_parts(["0"], struct.pack("<q", 2**62)), "expected 30 elements, got 46"),
        (legacy_parts(["0"], struct.pack("<q", -1)), "expected 30 elements, got -1"),
        (legacy_parts(["0"], struct.pack("<q", 30) + bytes(119)), "'0' is cut off"),
        (legacy_parts(["0"], b"123"), "'0' is cut off"),
    ],
)
def test_legacy_files_that_lie(content: bytes, message: str, directory: Path) -> None:
    with pytest.raises((InvalidModel, UnreadableFile), match=message):
        opened(directory, content)


SMALL = {
    "w": tensor("0", W[:1, :2]),
    "s": [1, 2.5, None, True, "t"],
    "v": tensor("1", V),
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_files_cut_off_at_every_byte(container: str, directory: Path) -> None:
    content = CONTAINERS[container](SMALL)
    whole = values(opened(directory, content))
    assert len(whole) == 2
    for end in range(0, len(content), 1 if len(content) < 2000 else 7):
        with pytest.raises(ModelError):
            opened(directory, content[:end])


def values(results: Checkpoint) -> dict[str, bytes]:
    """Return the bytes of all tensors."""
    return {name: results[name].array().tobytes() for name in results}


def survives(content: bytes, folder: Path) -> None:
    """Return if the file is read, or refused with an error of burn-import."""
    path = folder / "fuzzed"
    path.write_bytes(content)
    try:
        result = read(path, limits=Limits(operations=20_000, entries=5000))
        values(result)
    except ModelError as error:
        assert str(error).startswith("fuzzed: ")


@pytest.mark.parametrize("container", CONTAINERS)
def test_files_with_every_byte_changed(container: str, directory: Path) -> None:
    content = CONTAINERS[container]({"w": tensor("0", W[:1, :2]), "x": [W.shape]})
    for at in range(0, len(content), 1 if len(content) < 1000 else 3):
        if content[at : at + 4] == content[at - 4 : at]:
            continue  # padding
        for value in (0, content[at] ^ 255, content[at] ^ 1):
            survives(content[:at] + bytes([value]) + content[at + 1 :], directory)


SEEDS = [write(SMALL, protocol) for write in CONTAINERS.values() for protocol in (2, 4)]
EDITS = st.lists(
    st.tuples(st.integers(0, 10**6), st.integers(0, 9), st.binary(max_size=9)),
    min_size=1,
    max_size=6,
)


@settings(max_examples=example_count(400))
@given(seed=st.sampled_from(SEEDS), edits=EDITS)
def test_only_our_errors_escape_from_damaged_files(
    tmp_path_factory: pytest.TempPathFactory,
    seed: bytes,
    edits: list[tuple[int, int, bytes]],
) -> None:
    content = seed
    for at, length, new in edits:
        at %= len(content) + 1
        content = content[:at] + new + content[at + length :]
    survives(content, tmp_path_factory.getbasetemp())


CODES = (
    b"(.01FIJKLMNPQRSTUVXabcdeghijlopqrstu}])]\x80\x81\x82\x85\x86\x87\x88\x8a\x8c\x93"
)
SCRAPS = st.sampled_from(
    [bytes([code]) for code in CODES + bytes(range(0x88, 0x99))]
    + [PickleWriter().code(value) for value in (0, 3, "w", 2.5, None, W.shape, REBUILD)]
    + [
        PickleWriter().code(value)
        for value in (ORDERED, tensor("0", W), numpy_array(V))
    ]
    + [b"q\0", b"h\0", b"(", b"\x85", b"R", b"b", b"\x81"]
)


@settings(max_examples=example_count(400))
@given(
    st.lists(SCRAPS, max_size=40), st.sampled_from([zip_file, legacy_file, bare_file])
)
def test_only_our_errors_escape_from_strange_pickles(
    tmp_path_factory: pytest.TempPathFactory,
    scraps: list[bytes],
    write: Callable[[Any], bytes],
) -> None:
    root = [tensor("0", W), Raw(b"".join(scraps))]
    survives(write(root), tmp_path_factory.getbasetemp())


@settings(max_examples=example_count(200))
@given(
    st.binary(max_size=200), st.sampled_from([b"", b"\x80\x02", b"PK\3\4", b"(", b"{"])
)
def test_only_our_errors_escape_from_any_bytes(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, head: bytes
) -> None:
    survives(head + data, tmp_path_factory.getbasetemp())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty file"),
        (b"abc", "got something unknown"),
        (b"<html>", "HTML page"),
        (b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
        (b"\x08\x0a\x12\x07pytorch", "ONNX model"),
    ],
)
def test_files_of_other_kinds(content: bytes, message: str, directory: Path) -> None:
    with pytest.raises(UnreadableFile, match=message):
        opened(directory, content)


def test_places_that_are_no_files(directory: Path) -> None:
    for path in (directory, directory / "gone", Path("a\0b")):
        with pytest.raises(UnreadableFile):
            read(path)


def test_bools_of_other_bytes(directory: Path) -> None:
    stored = Stored("0", "BoolStorage", b"\0\1\2", 3)
    result = opened(directory, zip_file([view(stored, (3,))]))
    with pytest.raises(InvalidModel, match="bytes 0 and 1 in a bool tensor, got 2"):
        result["0"].array()
    fine = Stored("0", "BoolStorage", b"\0\1\1", 3)
    array = opened(directory, zip_file([view(fine, (3,))]))["0"].array()
    np.testing.assert_array_equal(array, [False, True, True])

"""Headers of safetensors files that ask for much time or memory.

``tests/importer/hostile/test_limits.py`` measures the memory that they take.
"""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from burn.record import RecordError, open_record, record_of_bytes
from burn.record.shards import open_shards
from tests.pace import within
from tests.runtime.record.test_defects import file_of, tensor


def overlapping(count: int) -> bytes:
    """Return a file of tensors of rank 3, the last of which overlaps the others."""
    fields = {f"layer{i}.w": tensor([1, 1, 1], 4 * i, 4 * i + 4) for i in range(count)}
    fields["last"] = tensor([1], 0, 4)
    return file_of(fields, bytes(4 * count))


def metadata(text: str) -> bytes:
    """Return a file without tensors that has bytes of data nevertheless."""
    fields = {"__metadata__": {"text": text}}
    return file_of(json.dumps(fields, ensure_ascii=False).encode(), b"more")


HEADERS: dict[str, tuple[Callable[[], bytes], str]] = {
    "a million pairs of metadata": (
        lambda: file_of(b'{"__metadata__":{' + b'"":"",' * 1_000_000),
        "the header has more than 1000000 values",
    ),
    "a million dimensions": (
        lambda: file_of(b'{"w":{"shape":[' + b"300," * 1_000_000),
        "the header has more than 1000000 values",
    ),
    "90 000 tensors": (lambda: overlapping(90_000), "'last' overlaps"),
    "16 MB of ASCII": (lambda: metadata("x" * 16_000_000), "trailing bytes"),
    "16 MB of emoji": (lambda: metadata("\U0001f600" * 4_000_000), "trailing bytes"),
    "17 MB": (lambda: metadata("x" * 17_000_000), "header too large"),
    "16 MB of brackets": (
        lambda: file_of(b'{"w":' + b"[" * 16_000_000),
        "header is not JSON",
    ),
}


@pytest.mark.parametrize("case", HEADERS)
def test_hostile_headers_end_soon(case: str) -> None:
    make, message = HEADERS[case]
    data = make()
    with within(2), pytest.raises(RecordError, match=message):
        record_of_bytes(data)


def test_long_metadata_is_read(tmp_path: Path) -> None:
    text = json.dumps({f"tag {n}": n for n in range(100_000)})
    (tmp_path / "r").write_bytes(file_of({"__metadata__": {"tags": text}}))
    assert open_record(tmp_path / "r").metadata["tags"] == text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"weight_map":{' + b'"":"",' * 10**6, "the index has more than 1000000"),
        (b'{"weight_map":{"' + b"x" * 17_000_000, "an index of more than 16777216"),
    ],
    ids=["names", "bytes"],
)
def test_hostile_indices(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors.index.json"
    path.write_bytes(content)
    with within(2), pytest.raises(RecordError, match=message):
        open_shards(path)


def test_texts_in_a_record_are_bounded_together() -> None:
    text = b"\xdb\x00\x80\x00\x00" + "\U0001f600".encode() * 2**21
    data = b"\x82\xa8metadata\x80\xa4item\xdc\x00\x03" + 3 * text
    with pytest.raises(RecordError, match="more than 16777216 bytes of text"):
        record_of_bytes(data)

"""Readers of untrusted files, fed with files that are damaged in many ways.

``--fuzz-seconds 60`` gives each of them a minute. Each file is made from a number that
a failure prints, so that it can be made again: ``TARGETS[name](Random(number))``. Only
errors of ours may come out, and no file may take longer than ``MOST_SECONDS``.
"""

import json
import struct
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from burn.record import FORMATS, RecordError, read_record, record_bytes
from burn_import.exported import read as read_exported
from burn_import.pytorch import Limits, read
from burn_ir import ModelError
from tests.importer.exported_files import archive, linear_program
from tests.importer.pytorch_files import (
    CONTAINERS,
    ORDERED,
    REBUILD,
    Call,
    Name,
    Raw,
    Writer,
    bare_file,
    legacy_file,
    tensor,
    zip_file,
)
from tests.importer.test_pytorch_files import V, W

MOST_SECONDS = 2
LIMITS = Limits(operations=20_000, entries=5000)
ROOT = {"w": tensor("0", W), "n": [1, 2.5, None, True, "t", b"b"], "v": tensor("1", V)}
WHOLE = {
    name: [write(ROOT, protocol) for protocol in (0, 2, 4)]
    for name, write in CONTAINERS.items()
}
VALUES = (0, 1, 3, -1, 2**31, 2**63, "w", "", 2.5, None, True, b"x" * 9, [1], (2, 3))
SCRAPS = [bytes([code]) for code in range(256)] + [
    Writer().code(value)
    for value in (*VALUES, REBUILD, ORDERED, tensor("0", W), Name("os", "system"))
]
RECORDS = {
    kind: record_bytes(kind, [("a.0", W), ("a.1", V), ("b", W > 0)], {"by": "me"})
    for kind in FORMATS
}


def edited(rng: Random, data: bytes, most: int = 6) -> bytes:
    """Return bytes with some of them changed, taken out, put in or repeated."""
    for _ in range(rng.randint(1, most)):
        at, size = rng.randrange(len(data) + 1), rng.choice([0, 1, 1, 2, 4, 8, 30])
        new = rng.choice(
            [
                rng.randbytes(size),
                bytes(size),
                b"\xff" * size,
                data[at : at + size] * 2,
                struct.pack("<Q", rng.choice([0, 1, 2**31, 2**32 - 1, 2**63]))[:size],
            ]
        )
        data = data[:at] + new + data[at + rng.choice([size, len(new)]) :]
    return data


def pickles(rng: Random) -> bytes:
    """Return a file with a pickle of scraps of pickles, or with edits."""
    if rng.random() < 0.5:
        code = b"".join(rng.choices(SCRAPS, k=rng.choice([1, 2, 3, 9, 40])))
        root = [tensor("0", W), Raw(code)]
        return rng.choice([zip_file, legacy_file, bare_file])(root, rng.choice([2, 4]))
    code = edited(rng, Writer(rng.choice([2, 4])).code(ROOT))
    arguments = tuple(rng.choice(VALUES) for _ in range(rng.randint(0, 7)))
    return zip_file([Raw(code)] if rng.random() < 0.5 else [Call(REBUILD, arguments)])


def archives(rng: Random) -> bytes:
    """Return an archive or another container with edits."""
    data = rng.choice(WHOLE[rng.choice([*WHOLE, "zip", "zip"])])
    if rng.random() < 0.3:  # what the list at the end says, and where
        at = data.rfind(b"PK\1\2", 0, rng.randrange(len(data)) + 1)
        if at >= 0:
            return data[:at] + edited(rng, data[at : at + 60], 3) + data[at + 60 :]
    return edited(rng, data)


def value(rng: Random, depth: int = 0) -> Any:
    """Return any value that JSON has."""
    kind = rng.randrange(9 if depth < 3 else 7)
    if kind == 7:
        return [value(rng, depth + 1) for _ in range(rng.randrange(4))]
    if kind == 8:
        names = ("dtype", "shape", "data_offsets", "x")
        return {rng.choice(names): value(rng, depth + 1) for _ in range(3)}
    plain = (None, True, 1.5, "F32", "\ud800", rng.randrange(-9, 99), 2**63)
    return plain[kind]


def changed(rng: Random, tree: Any) -> Any:
    """Return JSON with one value somewhere replaced."""
    if not isinstance(tree, dict | list) or not tree or rng.random() < 0.2:
        return value(rng)
    keys = list(tree) if isinstance(tree, dict) else range(len(tree))
    key = rng.choice(list(keys))
    copy: Any = tree.copy()
    copy[key] = changed(rng, tree[key])
    return copy


def headers(rng: Random) -> bytes:
    """Return a safetensors file whose header or bytes are wrong."""
    whole = RECORDS["safetensors"]
    size = int.from_bytes(whole[:8], "little")
    header, data = json.loads(whole[8 : 8 + size]), whole[8 + size :]
    if rng.random() < 0.6:
        for _ in range(rng.randint(1, 3)):
            header = changed(rng, header)
        text = json.dumps(header).encode()
    else:
        text = edited(rng, whole[8 : 8 + size])
    length = len(text) if rng.random() < 0.8 else rng.choice([0, 7, 2**40, 2**63])
    return length.to_bytes(8, "little") + text + data[: rng.choice([len(data), 5])]


def records(rng: Random) -> bytes:
    """Return a record of Burn's with edits, or compressed ones."""
    kind = rng.choice(FORMATS)
    if not kind.endswith(".gz"):
        return edited(rng, RECORDS[kind])
    plain = edited(rng, RECORDS[kind.removesuffix(".gz")])
    packer = zlib.compressobj(wbits=31)
    data = packer.compress(plain) + packer.flush()
    return data if rng.random() < 0.7 else edited(rng, data)


CONTENT, WEIGHTS = linear_program()


def programs(rng: Random) -> bytes:
    """Return an exported program whose JSON is wrong."""
    tree = CONTENT
    for _ in range(rng.randint(1, 3)):
        tree = changed(rng, tree)
    return archive(tree, WEIGHTS)


def read_checkpoint(path: Path) -> None:
    """Read all tensors of a checkpoint."""
    for found in read(path, limits=LIMITS).values():
        np.asarray(found.array()).tobytes()


def read_any_record(path: Path) -> None:
    """Read all tensors of a record."""
    for array in read_record(path, mmap=False).values():
        array.tobytes()


def read_program(path: Path) -> None:
    """Read a program."""
    read_exported(path)


Target = tuple[Callable[[Random], bytes], Callable[[Path], None]]
TARGETS: dict[str, Target] = {
    "pickles": (pickles, read_checkpoint),
    "archives": (archives, read_checkpoint),
    "headers": (headers, read_checkpoint),
    "records": (records, read_any_record),
    "programs": (programs, read_program),
}


def outcome(path: Path, open_file: Callable[[Path], None]) -> bool:
    """Return whether a file is read; whatever is not an error of ours is raised."""
    try:
        open_file(path)
    except (ModelError, RecordError) as error:
        assert str(error).startswith(("fuzzed.bin", str(path), "node '"))
        return False
    return True


@pytest.mark.parametrize("target", TARGETS)
def test_only_our_errors_come_out(
    target: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    make, open_file = TARGETS[target]
    path = tmp_path / "fuzzed.bin"
    end = time.monotonic() + request.config.getoption("--fuzz-seconds")
    number, whole, longest = -1, 0, 0.0
    try:
        while time.monotonic() < end or number < 50:
            number += 1
            path.write_bytes(make(Random(number)))
            start = time.process_time()
            whole += outcome(path, open_file)
            longest = max(longest, time.process_time() - start)
            assert longest < MOST_SECONDS
    finally:
        print(f"{target}: number {number}, {whole} read, the longest {longest:.2f} s")
    assert whole < number

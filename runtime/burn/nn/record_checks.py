"""Verification of a record by the digest in the header of generated source."""

from __future__ import annotations

import errno
import linecache
import os
import re
from pathlib import Path
from types import FunctionType
from typing import Any

from burn.backend.base import Backend
from burn.digests import sha256
from burn.record import RecordError, file_sha256

#: The line of the header, and how many lines the header has.
_LINE = re.compile(r"# record sha256 (?P<sha256>[0-9a-f]{64})\s*")
_LINES = 4


def record_of(cls: type, weights: str | Path | bytes | None) -> str | Path | bytes:
    """The record that a class is loaded with: ``weights``, or its own if None.

    Raises:
        TypeError: there is neither.
    """
    record = getattr(cls, "WEIGHTS", None) if weights is None else weights
    if record is None:
        raise TypeError(
            f"{cls.__name__} has no weights file ({cls.__name__}.WEIGHTS): pass the "
            "path of a record, or its bytes"
        )
    return record


def check_record(cls: type, weights: str | Path | bytes) -> None:
    """Check that ``weights`` is the record that ``cls`` was generated with.

    Raises:
        RecordError: its SHA-256 differs, or the source of ``cls`` has none.
        OSError: the file cannot be read.
    """
    path = "bytes" if isinstance(weights, bytes) else weights
    expected = _recorded_sha256(cls)
    if expected is None:
        raise RecordError(
            f"{path}: nothing to verify it with: expected a line '# record sha256' in "
            f"the header of the source of {cls.__name__}; import the model again"
        )
    actual = _sha256(weights)
    if actual != expected:
        raise RecordError(
            f"{path}: expected the record that {cls.__name__} was written with "
            f"(SHA-256 {expected}), got {actual}: it is damaged, trained since, or of "
            "another model"
        )


def _sha256(weights: str | Path | bytes) -> str:
    """Return the SHA-256 (hex) of a record in a file or in memory."""
    if isinstance(weights, bytes):
        return sha256(weights).hexdigest()
    return file_sha256(weights)


def check_source(cls: type, weights: Any) -> None:
    """Check that ``weights`` may be a record of ``cls``: a path, or its bytes.

    Raises:
        TypeError: it is neither.
        RecordError: it is a folder.
    """
    if isinstance(weights, bytes):
        return
    if isinstance(weights, bytearray | memoryview):
        kind = type(weights).__name__
        raise TypeError(
            f"{cls.__name__}: expected the path or the bytes of a record, got "
            f"a {kind}; pass bytes(data), which do not change"
        )
    is_backend = isinstance(weights, Backend)
    if not isinstance(weights, str | os.PathLike):
        raise TypeError(
            f"{cls.__name__}: expected a record (str, Path or bytes), got "
            + (
                f"{weights}; pass it as backend"
                if is_backend
                else type(weights).__name__
            )
        )
    if os.path.isdir(weights):
        raise RecordError(
            f"{os.fspath(weights)}: expected the record of {cls.__name__}, a file such "
            "as net.safetensors, got a folder"
        )


def missing_record(cls: type, error: FileNotFoundError) -> FileNotFoundError:
    """Return the error for a missing record, with instructions."""
    return FileNotFoundError(
        errno.ENOENT,
        f"no record of {cls.__name__}: a generated module needs the file of weights "
        "that burn-import wrote beside it. Copy it along, pass load() where it is, or "
        "import the model again",
        error.filename,
    )


def _recorded_sha256(cls: type) -> str | None:
    """Return the digest in the header of the module that defines ``cls``, or a base."""
    for base in cls.__mro__:
        functions = [f for f in vars(base).values() if isinstance(f, FunctionType)]
        sha256 = _in_header(functions[0].__globals__) if functions else None
        if sha256 is not None:
            return sha256
    return None


def _in_header(namespace: dict[str, Any]) -> str | None:
    # The loader's source where there is no file, as in a zip.
    lines = linecache.getlines(str(namespace.get("__file__")), namespace)[:_LINES]
    matches = filter(None, map(_LINE.fullmatch, lines))
    return next((match["sha256"] for match in matches), None)

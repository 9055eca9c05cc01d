"""Fingerprints of records, which detect changed files.

A fingerprint is stored in the metadata of records that the importer writes, and is
computed from names, dtypes, shapes and bytes. Small tensors are read whole. Of a large
one pieces are read, at its ends and at even distances between, so that a record of 10
GB takes as long as one of some megabytes. A training step changes every piece; a manual
change of single bytes between the pieces of a large tensor is not detected.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from burn_ir.types import Array

#: The key in a record's metadata.
KEY = "burn-import fingerprint"
#: The key of the SHA-256 of the model's file, which is also in the module's header.
SOURCE = "burn-import source"
#: Elements of a tensor that is read whole, and of a piece; and pieces of a tensor.
_WHOLE, _PIECE, _PIECES = 2**18, 2**10, 64


def fingerprint(weights: Iterable[tuple[str, Array]]) -> str:
    """Return the SHA-256 (hex) of names, dtypes, shapes and samples, in any order."""
    digests = sorted(_digest(name, array) for name, array in weights)
    return hashlib.sha256(b"".join(digests)).hexdigest()


def is_unchanged(path: Path) -> bool:
    """Return whether the record at ``path`` is as the importer wrote it."""
    from burn.record import RecordError, open_stored

    try:
        record = open_stored(path)
        marked = record.metadata.get(KEY)
        return marked is not None and marked == fingerprint(record.items())
    except (OSError, RecordError):
        return False


def _digest(name: str, array: Array) -> bytes:
    import numpy as np

    about = repr((name, array.dtype.name, array.shape))
    digest = hashlib.sha256(about.encode("utf-8"))
    count, size = (1, array.size) if array.size <= _WHOLE else (_PIECES, _PIECE)
    for number in range(count):
        at = (array.size - size) * number // max(count - 1, 1)
        piece = array.flat[at : at + size]
        if not piece.dtype.isnative:
            piece = piece.astype(piece.dtype.newbyteorder("="))
        digest.update(np.ascontiguousarray(piece).tobytes())
    return digest.digest()


def same_array(a: Array, b: Array) -> bool:
    """Return whether dtypes, shapes and all bits agree, reading in chunks."""
    import numpy as np

    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    a, b = a.reshape(-1), b.reshape(-1)
    step = 2**20
    return all(
        np.ascontiguousarray(a[at : at + step]).tobytes()
        == np.ascontiguousarray(b[at : at + step]).tobytes()
        for at in range(0, a.size, step)
    )

"""Records embedded in generated source, in base64 at the end of the file."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from burn_ir.types import Array

#: Maximum size in bytes of an embedded record; its source is a third larger.
MAX_EMBEDDED = 4 * 2**20
#: Characters of base64 in a line of source.
_WIDTH = 88
_RECORD = re.compile(
    rb'^(\w+\.)?WEIGHTS = b64decode\(\s*"""([A-Za-z0-9+/=\s]*)"""\s*\)', re.MULTILINE
)


def record_source(
    class_name: str, weights: Sequence[tuple[str, Array]], metadata: Mapping[str, str]
) -> str:
    """Return the statement that ends a module with the embedded record of a class."""
    from burn.record import record_bytes

    text = b64encode(record_bytes("safetensors", weights, metadata)).decode("ascii")
    lines = "\n".join(text[at : at + _WIDTH] for at in range(0, len(text), _WIDTH))
    return f'\n\n{class_name}.WEIGHTS = b64decode(\n    """\n{lines}\n"""\n)\n'


def embedded_record(module: Path) -> bytes | None:
    """Return the record in the source of ``module``; None if it has none.

    Raises:
        ValueError: the base64 is damaged.
    """
    match = _RECORD.search(module.read_bytes()) if module.is_file() else None
    return None if match is None else b64decode(match[2])


def without_record(source: str) -> str:
    """Return generated source without its embedded record, for people to read."""
    return _RECORD.sub(rb"\1WEIGHTS = b64decode(...)", source.encode()).decode()

"""A fixed table of operators, and a choice among them that other ones do not change.

``operators.txt`` has a line for each operator: its name, the first opset at which
graphs may have it, and the last one (``-`` if there is none). The choice at a step is
the operator with the least hash of the seed, the step and its name, so that a new line
changes only the steps at which the new operator is the least.
"""

import math
import zlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from tests.strategies.registry import Key

TABLE = Path(__file__).with_name("operators.txt")
#: The share of nodes of each domain.
SHARES = {"": 20, "com.microsoft": 1, "ai.onnx.ml": 1}


@cache
def operator_table() -> dict[Key, tuple[int, int]]:
    """The first and the last opset of each operator."""
    table = {}
    for line in TABLE.read_text("utf-8").splitlines():
        name, first, last = line.split()
        domain, _, operator = name.rpartition(":")
        table[domain, operator] = (int(first), 10**6 if last == "-" else int(last))
    return table


def choose_operator(step: str, opsets: Mapping[str, int]) -> Key:
    """The operator of a step, of those that the operator sets have."""
    domain = min(
        (domain for domain in SHARES if domain in opsets),
        key=lambda domain: -math.log(1 - _score(f"{step}:{domain}")) / SHARES[domain],
    )
    keys = (
        key
        for key, (first, last) in operator_table().items()
        if key[0] == domain and first <= opsets[domain] <= last
    )
    return min(keys, key=lambda key: _score(f"{step}:{domain}:{key[1]}"))


def _score(text: str) -> float:
    """A number from 0 up to 1 that follows from ``text`` alone."""
    mixed = zlib.crc32(text.encode()) * 0x9E3779B97F4A7C15 % 2**64
    return zlib.crc32(mixed.to_bytes(8, "little")) / 2**32

"""Limits on the memory and work that reading a file may cause."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Bounds on the work that a file can cause. Real checkpoints stay far below them.

    ``operations`` bounds the instructions of one pickle, and separately the elements
    that its functions copy. ``marks`` and ``depth`` bound the nesting of containers,
    ``entries`` the size of their contents with shared ones counted repeatedly,
    ``integer`` and ``line`` the bytes of one number and one line of text. ``metadata``
    bounds the entries of an archive that are read whole. ``view`` is the largest size
    in bytes of a tensor that repeats a smaller storage; four times the storage is
    always allowed.
    """

    operations: int = 4_000_000
    marks: int = 1000
    depth: int = 100
    entries: int = 1_000_000
    integer: int = 256
    line: int = 4096
    metadata: int = 64 * 2**20
    pickle: int = 2**30
    view: int = 64 * 2**20


LIMITS = Limits()

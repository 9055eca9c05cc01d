"""Limits on the memory and work that a file may ask for."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Bounds on the work that a file can cause. Real checkpoints stay far below them.

    ``operations`` counts instructions of one pickle, and once more the elements that
    its functions copy. ``marks`` and ``depth`` bound how deep containers nest,
    ``entries`` what their contents are when written out, ``integer`` and ``line`` the
    bytes of one number and of one line of text. ``metadata`` bounds the entries of an
    archive that are read whole. ``view`` is how large a tensor may be that repeats a
    smaller storage, in bytes; four times the storage is always allowed.
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

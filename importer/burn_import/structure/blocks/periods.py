"""Periods in a chain of operators."""

from collections.abc import Hashable, Iterator, Sequence

#: The longest period that is looked for.
LONGEST = 24


def periodic_blocks(
    kinds: Sequence[Hashable], is_start: Sequence[bool], is_resizing: Sequence[bool]
) -> list[range]:
    """Return the positions of consecutive blocks with equal ``kinds``, in order.

    Blocks begin where ``is_start`` and have two such nodes or more. They end with a
    node that changes the size of the image if there is one. Of overlapping blocks the
    ones that cover most positions together are taken, then the shorter ones.
    """
    candidates = [
        blocks
        for length in range(2, min(LONGEST, len(kinds) // 2) + 1)
        for blocks in _blocks_of(length, kinds, is_start, is_resizing)
        if sum(is_start[n] for n in blocks[0]) > 1
        and not _is_periodic([kinds[n] for n in blocks[0]])
    ]
    candidates.sort(key=lambda blocks: (blocks[0].start - blocks[-1].stop, len(blocks)))
    covered = set[int]()
    chosen = []
    for blocks in candidates:
        whole = range(blocks[0].start, blocks[-1].stop)
        if covered.isdisjoint(whole):
            covered.update(whole)
            chosen += blocks
    return sorted(chosen, key=lambda block: block.start)


def _blocks_of(
    length: int,
    kinds: Sequence[Hashable],
    is_start: Sequence[bool],
    is_resizing: Sequence[bool],
) -> Iterator[list[range]]:
    """Yield the blocks of each stretch of ``kinds`` with the period ``length``."""
    begin = 0
    for position in range(len(kinds) - length + 1):
        last = position + length
        if last < len(kinds) and kinds[position] == kinds[last]:
            continue
        starts = [n for n in range(begin, min(begin + length, last)) if is_start[n]]
        ends = [n for n in starts if any(is_resizing[n + length - 1 : n + length])]
        first = next(iter(ends or starts), last)
        count = (last - first) // length
        if count > 1:
            yield [
                range(start, start + length)
                for start in range(first, first + count * length, length)
            ]
        begin = position + 1


def _is_periodic(kinds: Sequence[Hashable]) -> bool:
    """Return whether a sequence consists of equal shorter ones."""
    lengths = (n for n in range(1, len(kinds) // 2 + 1) if len(kinds) % n == 0)
    return any(kinds[:-length] == kinds[length:] for length in lengths)

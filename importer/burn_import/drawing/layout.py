"""Layered layout: rows of boxes, by distance from the inputs.

An edge over several rows runs through a gap in each row between, so that it crosses no
box. All edges from one box share these gaps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from unicodedata import east_asian_width

from burn_import.drawing.flow import Flow, FlowBox

#: Sizes in pixels. A character of the font is at most 6.7 wide.
CHARACTER, LINE, PADDING = 6.7, 15, 8
_GAP, _ROW_GAP, _LANE, _MARGIN, _HEAD = 24, 36, 10, 20, 50
#: Longer texts are cut in the middle.
MOST_CHARACTERS = 48


@dataclass(frozen=True)
class Rectangle:
    """A rectangle; ``x`` and ``y`` are its upper left corner, in pixels."""

    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> float:
        """The center on the horizontal axis."""
        return self.x + self.width / 2


@dataclass(frozen=True)
class Layout:
    """The rectangles of the boxes, the corners of the edges, and the total size."""

    boxes: tuple[Rectangle, ...]
    lines: tuple[tuple[tuple[float, float], ...], ...]
    width: float
    height: float


@dataclass
class _Slot:
    """A position in a row: a box, or a gap for the edges of one box."""

    width: float
    height: float
    sources: list[_Slot]
    x: float = 0
    y: float = 0


def texts_of(box: FlowBox) -> list[str]:
    """Return the lines of text of a box, shortened."""
    texts = (box.title, *box.lines)
    return [_shortened(text) for text in texts if text]


def layout(flow: Flow) -> Layout:
    """Return the positions of a flow; the boxes do not overlap."""
    ranks = _ranks(flow)
    slots = [_Slot(*_size(box), []) for box in flow.boxes]
    rows: list[list[_Slot]] = [[] for _ in range(max(ranks, default=0) + 1)]
    for slot, rank in zip(slots, ranks, strict=True):
        rows[rank].append(slot)
    chains = _chains(flow, ranks, slots, rows)
    for source, target in flow.edges:
        slots[target].sources.append(chains[source][ranks[target] - 1])
    y: float = _HEAD
    for row in rows:
        _place(row, y)
        y += max((slot.height for slot in row), default=0) + _ROW_GAP
    left = min((slot.x for row in rows for slot in row), default=0) - _MARGIN
    right = max((slot.x + slot.width for row in rows for slot in row), default=0)
    for slot in (slot for row in rows for slot in row):
        slot.x -= left
    lines = tuple(
        _line(slots, chains, ranks, source, target) for source, target in flow.edges
    )
    boxes = tuple(Rectangle(s.x, s.y, s.width, s.height) for s in slots)
    return Layout(boxes, lines, right - left + _MARGIN, y - _ROW_GAP + _MARGIN)


def _shortened(text: str) -> str:
    if len(text) <= MOST_CHARACTERS:
        return text
    half = (MOST_CHARACTERS - 3) // 2
    return f"{text[:half]}...{text[-half:]}"


def _size(box: FlowBox) -> tuple[float, float]:
    texts = texts_of(box)
    width = max(map(_columns, texts)) * CHARACTER
    return width + 2 * PADDING, len(texts) * LINE + 2 * PADDING


def _columns(text: str) -> int:
    """Return the width of a text in columns; East Asian wide characters take two."""
    return len(text) + sum(east_asian_width(one) in "WF" for one in text)


def _ranks(flow: Flow) -> list[int]:
    """Return the row of each box: one below its lowest source."""
    ranks = [0] * len(flow.boxes)
    for source, target in sorted(flow.edges, key=lambda edge: edge[1]):
        ranks[target] = max(ranks[target], ranks[source] + 1)
    return ranks


def _chains(
    flow: Flow, ranks: Sequence[int], slots: Sequence[_Slot], rows: list[list[_Slot]]
) -> list[dict[int, _Slot]]:
    """Add gaps to the rows; return the slots that edges leave from, by box and row."""
    last = list(ranks)
    for source, target in flow.edges:
        last[source] = max(last[source], ranks[target] - 1)
    chains = []
    for rank, end, slot in zip(ranks, last, slots, strict=True):
        chain = {rank: slot}
        for row in range(rank + 1, end + 1):
            chain[row] = _Slot(_LANE, 0, [chain[row - 1]])
            rows[row].append(chain[row])
        chains.append(chain)
    return chains


def _place(row: list[_Slot], y: float) -> None:
    """Place the slots of a row below the mean of their sources, side by side."""
    centers = {id(slot): _mean(slot) for slot in row}
    row.sort(key=lambda slot: centers[id(slot)])
    height = max((slot.height for slot in row), default=0)
    end = float("-inf")
    for slot in row:
        slot.x = max(centers[id(slot)] - slot.width / 2, end + _GAP)
        end = slot.x + slot.width
        slot.height = slot.height or height
        slot.y = y
    shifts = [centers[id(slot)] - slot.x - slot.width / 2 for slot in row]
    shift = sum(shifts) / len(row) if row else 0
    for slot in row:
        slot.x += shift


def _mean(slot: _Slot) -> float:
    middles = [source.x + source.width / 2 for source in slot.sources]
    return sum(middles) / len(middles) if middles else 0


def _line(
    slots: Sequence[_Slot],
    chains: Sequence[Mapping[int, _Slot]],
    ranks: Sequence[int],
    source: int,
    target: int,
) -> tuple[tuple[float, float], ...]:
    """Return the corners of an edge, from below its source to the top of its target."""
    points = []
    for row in range(ranks[source], ranks[target]):
        slot = chains[source][row]
        middle = slot.x + slot.width / 2
        if row > ranks[source]:
            points.append((middle, slot.y))
        points.append((middle, slot.y + slot.height))
    end = slots[target]
    return (*points, (end.x + end.width / 2, end.y))

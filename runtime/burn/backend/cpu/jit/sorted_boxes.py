"""Boxes in the order of their scores as machine code, for non-maximum suppression."""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from burn.backend.cpu.jit.functions import TYPES, write
from burn.backend.cpu.jit.native import INT64, FunctionWriter

#: Each box is compared with all others: of more, sorting takes less time.
MOST_COMPARED = 128
#: The words that the source reads: eight arrays, three extents, strides of two arrays.
PREPARED_WORDS = 17


@cache
def prepared_source(
    kinds: tuple[np.dtype[Any], np.dtype[Any]], is_centered: bool, has_threshold: bool
) -> str:
    """Return the source of the sides of boxes [N, B, 4], the boxes of each class by
    score [N, K, B], and the number of candidates [N, K]. Two more arrays [B] are for
    the candidates of one class and their scores.

    ``kinds`` are the dtypes of boxes and scores.
    """
    to = FunctionWriter()
    boxes, scores, least, sides, orders, counts = (to.word("ptr") for _ in range(6))
    candidates = _Candidates(to.word("ptr"), to.word("ptr"))
    images, classes, count = to.words(3)
    of_box, of_score = to.words(3), to.words(3)
    kind, rating = kinds
    with to.counting("0", images) as image:
        with to.counting("0", count) as box:
            start = to.at(boxes, (image, of_box[0]), (box, of_box[1]))
            numbers = [
                to.load(kind, to.at(start, (str(part), of_box[2]))) for part in range(4)
            ]
            own = to.do(f"add i64 {to.do(f'mul i64 {image}, {count}')}, {box}")
            corners = (_sides_of_center if is_centered else _sides_of_corners)(
                to, kind, numbers
            )
            for part, number in enumerate(corners):
                size = kind.itemsize
                target = to.at(sides, (own, str(4 * size)), (str(part), str(size)))
                to.store(kind, number, target)
        with to.counting("0", classes) as label:
            row = to.at(scores, (image, of_score[0]), (label, of_score[1]))
            own = to.do(f"add i64 {to.do(f'mul i64 {image}, {classes}')}, {label}")
            order = to.at(orders, (to.do(f"mul i64 {own}, {count}"), "8"))
            limit = to.load(rating, least) if has_threshold else ""
            row_of = (row, of_score[2], count)
            found = _list_candidates(to, rating, row_of, candidates, limit)
            _rank(to, rating, candidates, (order, found), is_number=has_threshold)
            to.store(INT64, found, to.at(counts, (own, "8")))
    return to.text()


def _sides_of_corners(
    to: FunctionWriter, kind: np.dtype[Any], numbers: list[str]
) -> list[str]:
    """Return y1, x1, y2, x2 of two opposite corners."""
    first, second = numbers[:2], numbers[2:]
    pairs = list(zip(first, second, strict=True))
    return [
        write(name, to, kind, pair) for name in ("minimum", "maximum") for pair in pairs
    ]


def _sides_of_center(
    to: FunctionWriter, kind: np.dtype[Any], numbers: list[str]
) -> list[str]:
    """Return y1, x1, y2, x2 of a center x, y with width and height."""
    x, y, width, height = numbers
    corners = []
    for name in ("fsub", "fadd"):
        for center, extent in ((y, height), (x, width)):
            half = to.do(f"fdiv {TYPES[kind]} {extent}, 2.0")
            corners.append(to.do(f"{name} {TYPES[kind]} {center}, {half}"))
    return corners


class _Candidates(NamedTuple):
    """Pointers to the numbers of boxes, and to their scores."""

    numbers: str
    scores: str


def _list_candidates(
    to: FunctionWriter,
    kind: np.dtype[Any],
    row: tuple[str, str, str],
    candidates: _Candidates,
    least: str,
) -> str:
    """Emit the list of the boxes of a class above ``least``, and return their number.

    Without ``least`` it has all boxes.
    """
    start, stride, count = row
    total = to.cell(INT64)
    to.set(total, INT64, "0")
    with to.counting("0", count) as box:
        score, place = to.load(kind, to.at(start, (box, stride))), to.get(total, INT64)
        # Always written, and overwritten by the next box if this one is no candidate.
        to.store(INT64, box, to.at(candidates.numbers, (place, "8")))
        to.store(kind, score, to.at(candidates.scores, (place, str(kind.itemsize))))
        is_candidate = (
            to.do(f"fcmp ogt {TYPES[kind]} {score}, {least}") if least else "true"
        )
        one = to.do(f"zext i1 {is_candidate} to i64")
        to.set(total, INT64, to.do(f"add i64 {place}, {one}"))
    return to.get(total, INT64)


def _rank(
    to: FunctionWriter,
    kind: np.dtype[Any],
    candidates: _Candidates,
    result: tuple[str, str],
    *,
    is_number: bool,
) -> None:
    """Emit the candidates in the order of their scores.

    The rank of a candidate is the number of candidates before it; NaN scores come last.
    Boxes that are no candidates may be written if there is none.
    """
    (order, count), size = result, str(kind.itemsize)
    rank = to.cell(INT64)
    with to.counting("0", count) as one:
        mine = to.load(kind, to.at(candidates.scores, (one, size)))
        to.set(rank, INT64, "0")
        with to.counting("0", count) as other:
            theirs = to.load(kind, to.at(candidates.scores, (other, size)))
            pair = (theirs, other), (mine, one)
            comes = _comes_before(to, TYPES[kind], *pair, is_number=is_number)
            step = to.do(f"zext i1 {comes} to i64")
            to.set(rank, INT64, to.do(f"add i64 {to.get(rank, INT64)}, {step}"))
        number = to.load(INT64, to.at(candidates.numbers, (one, "8")))
        to.store(INT64, number, to.at(order, (to.get(rank, INT64), "8")))


def _comes_before(
    to: FunctionWriter,
    kind: str,
    one: tuple[str, str],
    other: tuple[str, str],
    *,
    is_number: bool,
) -> str:
    """Return whether a score and its place come before others.

    With ``is_number`` neither score is NaN.
    """
    (a, first), (b, second) = one, other
    is_more = to.do(f"fcmp ogt {kind} {a}, {b}")
    are_equal = to.do(f"fcmp oeq {kind} {a}, {b}")
    if not is_number:
        is_first_number = to.do(f"fcmp ord {kind} {a}, {a}")
        is_nan, is_other = (to.do(f"fcmp uno {kind} {x}, {x}") for x in (a, b))
        only_other = to.do(f"and i1 {is_first_number}, {is_other}")
        is_more = to.do(f"or i1 {is_more}, {only_other}")
        are_nan = to.do(f"and i1 {is_nan}, {is_other}")
        are_equal = to.do(f"or i1 {are_equal}, {are_nan}")
    is_first = to.do(f"icmp ult i64 {first}, {second}")
    return to.do(f"or i1 {is_more}, {to.do(f'and i1 {are_equal}, {is_first}')}")

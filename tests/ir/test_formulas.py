"""Formulas of extents have the value of the steps that they are made of."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, strategies as st

from burn import dtypes
from burn_ir.dim import (
    bind,
    counting_unnamed,
    floor_div,
    maximum,
    minimum,
    span,
    symbol,
    without_extrema,
)
from burn_ir.ops.window import geometry
from burn_ir.types import Type, broadcast

N, M = symbol("n"), symbol("m")
VALUES = [(n, m) for n in (0, 1, 2, 3, 5, 8, 30) for m in (0, 1, 4)]

NUMBERS = st.integers(-9, 9)
#: Steps of two results, and of a result and a number.
PAIRS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "max": maximum,
    "min": minimum,
}
WITH_NUMBERS: dict[str, Callable[[Any, int], Any]] = {
    "shift": lambda a, number: a + number,
    "times": lambda a, number: a * number,
    "div": lambda a, number: floor_div(a, abs(number) + 1),
    "at least": maximum,
    "at most": minimum,
}
#: The name of a step, the position of its first operand, and the second operand.
Step = tuple[str, int, int]


@st.composite
def programs(draw: st.DrawFn) -> list[Step]:
    """Draw steps on earlier results: the first two are n and m."""
    steps: list[Step] = []
    for count in range(2, draw(st.integers(3, 8))):
        name = draw(st.sampled_from(sorted({**PAIRS, **WITH_NUMBERS})))
        second = st.integers(0, count - 1) if name in PAIRS else NUMBERS
        steps.append((name, draw(st.integers(0, count - 1)), draw(second)))
    return steps


def run(steps: Sequence[Step], n: Any, m: Any) -> Any:
    results = [n, m]
    for name, first, second in steps:
        if name in PAIRS:
            results.append(PAIRS[name](results[first], results[second]))
        else:
            results.append(WITH_NUMBERS[name](results[first], second))
    return results[-1]


@given(programs())
def test_a_formula_has_the_value_of_its_steps(steps: list[Step]) -> None:
    dim = run(steps, N, M)
    for n, m in VALUES:
        assert bind(dim, {"n": n, "m": m}) == run(steps, n, m)


@given(NUMBERS, NUMBERS, st.integers(1, 3), st.integers(0, 3), st.integers(1, 4))
def test_slices_have_as_many_elements_as_python_reads(
    start: int, end: int, step: int, more: int, divisor: int
) -> None:
    extent = floor_div(N + more, divisor)
    with counting_unnamed():
        count = span(extent, start, end, step)
    if "?" in str(count):
        return
    for n in range(25):
        expected = len(range((n + more) // divisor)[start:end:step])
        assert bind(count, {"n": n}) == expected


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (0, 1, "min(n, 1)"),
        (0, -1, "max(n - 1, 0)"),
        (1, 2**62, "max(n - 1, 0)"),
        (-1, 2**62, "n - max(n - 1, 0)"),
        (1, -1, "?0"),
    ],
)
def test_slices_that_an_extent_may_not_have(
    start: int, end: int, expected: str
) -> None:
    with counting_unnamed():
        assert str(span(N, start, end, 1)) == expected


def test_both_parts_of_an_axis_are_the_whole() -> None:
    """A first element and the others, or the others before the last one."""
    for parts in (((0, 1), (1, 2**62)), ((0, 1), (0, -1)), ((0, -1), (-1, 2**62))):
        counts = [span(N, start, end, 1) for start, end in parts]
        assert counts[0] + counts[1] == N
    doubled = span(N, 0, 1, 1) * 2 + span(N, 0, -1, 1)
    assert doubled == N + minimum(N, 1)


def test_a_formula_that_is_a_line_loses_its_extrema() -> None:
    assert without_extrema(maximum(N + minimum(N, 1) - 1, 0)) == N
    half = floor_div(N + 1, 2)
    assert without_extrema(maximum(half + minimum(half, 1) - 1, 0)) == half
    for bent in (maximum(N - 1, 0), minimum(N, 3) + N, maximum(M, N), N * N, 5):
        assert without_extrema(bent) == bent


def test_an_extent_is_its_maximum_with_0() -> None:
    less = Type(dtypes.float32, (N - 1, 4))
    cut = Type(dtypes.float32, (maximum(N - 1, 0), 4))
    assert broadcast(less, cut) == broadcast(cut, less) == (N - 1, 4)
    other = broadcast(Type(dtypes.float32, (N, 4)), cut)
    assert other is not None
    assert other[0] not in (N, maximum(N - 1, 0))


@given(
    *(st.integers(1, 4), st.integers(1, 4)),
    *(st.integers(0, 3), st.integers(0, 3)),
    st.integers(1, 2),
)
def test_windows_of_a_pool_that_rounds_up(
    kernel: int, stride: int, before: int, after: int, dilation: int
) -> None:
    pool = geometry(
        (kernel,), (stride,), (dilation,), (before, after), "NOTSET", ceil_mode=True
    )
    (count,) = pool.count((N,))
    covered = (kernel - 1) * dilation + 1
    for n in range(max(1, covered - before - after), 20):
        starts = range(-before, n, stride)  # none in the padding after
        last = n + after - covered
        windows = [at for at in starts if at <= last or at - stride < last]
        assert bind(count, {"n": n}) == len(windows)

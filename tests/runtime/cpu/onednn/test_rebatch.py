"""Convolutions of single pixels that threads share by pixels are NumPy's."""

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import burn
from burn import ops
from burn.backend.cpu.onednn.binding import engine
from burn.backend.cpu.onednn.kernels.convolution import conv_primitives
from burn.backend.cpu.onednn.kernels.convolution.rebatch import Form, rebatched
from burn.ops.window import windows
from tests.runtime.onednn import assert_close, laid_out, needs_onednn, normal, planned
from tests.sampling import example_count

pytestmark = needs_onednn


def anywhere(form: Form, implementation: str, threads: int) -> Form | None:
    """Choose kernels as with code for AMX and four threads."""
    return rebatched(form, "amx", 4)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Any, ...]:
    """x, weight, bias and the stride of a convolution of single pixels."""
    rank, channels = draw(st.integers(1, 3)), draw(st.integers(1, 5))
    size = [draw(st.sampled_from([1, 2, 3, 4, 8])) for _ in range(rank)]
    x = normal(draw(st.integers(1, 8)), channels, *size)
    x = laid_out(x, draw(st.permutations(range(rank + 2))))
    weight = normal(draw(st.integers(1, 6)), channels, *[1] * rank, seed=1)
    bias = normal(len(weight), seed=2) if draw(st.booleans()) else None
    return x, weight, bias, draw(st.sampled_from([1, 2, 3]))


@settings(max_examples=example_count(120))
@given(case=cases(), residual=st.booleans())
def test_convolution(case: Any, residual: bool) -> None:
    x, weight, bias, stride = case

    def run(x: Any) -> Any:
        result = ops.conv(x, burn.from_numpy(weight), bias, stride=stride)
        return ops.relu(result + ops.exp(-result) if residual else result)

    with engine.numpy_only():
        expected = run(burn.from_numpy(x)).numpy()
    with patch.object(conv_primitives, "rebatched", anywhere):
        actual = planned(run, x)
        eager = run(burn.from_numpy(x)).numpy()
    assert_close(actual, expected)
    assert_close(eager, expected)


@pytest.mark.parametrize("place", [False, True])
def test_what_is_added(place: bool) -> None:
    weights = [burn.from_numpy(normal(6, 6, 1, 1, seed=seed)) for seed in range(2)]

    def run(x: Any) -> Any:
        y = ops.conv(x, weights[0])
        other = y if place else ops.relu(y)
        return ops.relu(ops.conv(other, weights[1]) + y), ops.sum(other)

    x = burn.from_numpy(normal(3, 6, 8, 5))
    expected = [leaf.numpy() for leaf in run(x)]
    with patch.object(conv_primitives, "rebatched", anywhere):
        plan = burn.compile(run)
        for _ in range(3):
            result = plan(x)
    for a, b in zip(result, expected, strict=True):
        assert_close(a.numpy(), b)


@pytest.mark.parametrize(
    ("x", "stride", "threads", "expected"),
    [
        ((1, 6, 8, 5), 1, 2, (2, 6, 1, 20)),
        ((8, 6, 7, 7), 1, 2, (2, 6, 1, 196)),
        ((3, 6, 4, 5), 1, 4, (4, 6, 1, 15)),
        ((1, 6, 7, 7), 1, 2, None),  # there is no half of 49
        ((2, 6, 40, 40), 1, 2, None),  # large ones, and enough of them
        ((1, 6, 40, 40), 1, 2, (2, 6, 1, 800)),
        ((1, 6, 8, 6), 2, 2, (2, 6, 4, 6)),
        ((2, 6, 8, 6), 2, 2, None),  # enough
        ((2, 6, 8, 6), 2, 4, (4, 6, 4, 6)),
        ((1, 6, 6, 6), 2, 2, None),  # three rows come out
        ((1, 6, 7, 6), 2, 2, None),  # the last row is half of two
        ((4, 6, 8, 6), 1, 1, None),
    ],
)
def test_which_images(
    x: tuple[int, ...], stride: int, threads: int, expected: Any
) -> None:
    wins = windows(x[2:], (1, 1), stride)
    form = Form(x, (x[0], 9, *wins.count), wins)
    assert rebatched(form, "brgconv_1x1:avx512_core", threads) is None
    actual = rebatched(form, "brgconv_1x1:avx512_core_amx", threads)
    assert (actual and actual.x) == expected
    if actual is not None:
        assert actual.shape == (actual.x[0], 9, *actual.wins.count)
        assert np.prod(actual.shape) == np.prod(form.shape)


def test_windows_of_more_pixels_are_left() -> None:
    for wins in (windows((8, 6), (1, 3), 1, (0, 1)), windows((8, 6), (1, 1), 1, 1)):
        form = Form((1, 6, 8, 6), (1, 9, *wins.count), wins)
        assert rebatched(form, "amx", 2) is None

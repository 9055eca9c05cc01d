"""First convolutions that plans do over pairs of rows are NumPy's."""

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import burn
from burn import nn, ops
from burn.backend.cpu.onednn.binding import engine
from burn.backend.cpu.onednn.kernels.convolution import (
    conv_primitives,
    space_to_depth as folding,
)
from burn.backend.cpu.onednn.kernels.convolution.space_to_depth import (
    SpaceToDepth,
    space_to_depth,
)
from burn.ops.window import windows
from tests.runtime.onednn import (
    assert_close,
    assert_trained_alike,
    laid_out,
    needs_onednn,
    normal,
    planned,
)
from tests.sampling import example_count

pytestmark = needs_onednn
pads = st.integers(0, 4)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Any, ...]:
    """x, weight, bias and padding of a convolution that is done so."""
    channels, outputs = draw(st.integers(1, 4)), draw(st.sampled_from([1, 5, 16]))
    size = (2 * draw(st.integers(6, 10)), draw(st.integers(11, 20)))
    kernel = (draw(st.integers(1, 8)), draw(st.integers(1, 8)))
    padding = tuple((draw(pads), draw(pads)) for _ in range(2))
    x = laid_out(
        normal(draw(st.integers(1, 3)), channels, *size),
        draw(st.permutations(range(4))),
    )
    weight = laid_out(
        normal(outputs, channels, *kernel, seed=1), draw(st.permutations(range(4)))
    )
    return x, weight, normal(outputs, seed=2) if draw(st.booleans()) else None, padding


@settings(max_examples=example_count(60))
@given(case=cases(), gaps=st.booleans())
def test_convolution(case: Any, gaps: bool) -> None:
    x, weight, bias, padding = case
    if gaps:
        x = np.repeat(x, 2, 3)[..., ::2]

    def run(x: Any, weight: Any) -> Any:
        return ops.conv(x, weight, bias, stride=2, padding=padding)

    with engine.numpy_only():
        expected = run(*map(burn.from_numpy, (x, weight))).numpy()
    limits = patch.multiple(folding, _LEAST=1, _OUTPUTS=1, _ROWS=1)
    with limits, patch.object(conv_primitives, "DIRECT", ()):
        actual = planned(lambda x: run(x, burn.from_numpy(weight)), x)
    assert_close(actual, expected)


def test_most_are_done_so(monkeypatch: pytest.MonkeyPatch) -> None:
    results = []

    def noted(*args: Any) -> SpaceToDepth | None:
        results.append(space_to_depth(*args))
        return results[-1]

    monkeypatch.setattr(conv_primitives, "space_to_depth", noted)
    monkeypatch.setattr(conv_primitives, "DIRECT", ())
    x, weight = normal(2, 3, 22, 21), normal(40, 3, 7, 5, seed=1)

    def run(x: Any) -> Any:
        result = ops.conv(x, burn.from_numpy(weight), stride=2, padding=3)
        return ops.relu(result)

    expected = run(burn.from_numpy(x)).numpy()
    assert results == []  # an eager call has numbers that are not finite as well
    assert_close(planned(run, x), expected)
    assert [actual.weight for actual in results if actual] == [(40, 6, 4, 5)]


@pytest.mark.parametrize(
    ("size", "channels", "outputs", "kernel", "stride", "dilation"),
    [
        ((21, 20), 3, 40, 7, 2, 1),
        ((22, 20), 1, 40, 7, 2, 1),
        ((22, 20), 5, 40, 7, 2, 1),
        ((22, 20), 3, 31, 7, 2, 1),
        ((22, 20), 3, 40, (2, 7), 2, 1),
        ((22, 20), 3, 40, 7, (2, 1), 1),
        ((22, 20), 3, 40, 5, 2, 2),
        ((4, 20), 3, 40, 6, 2, 1),
    ],
    ids=[
        *("odd", "one channel", "channels", "outputs", "kernel"),
        *("stride", "dilation", "small"),
    ],
)
def test_others_stay(
    size: Any, channels: int, outputs: int, kernel: Any, stride: Any, dilation: int
) -> None:
    x = normal(2, channels, *size)
    kernel = kernel if isinstance(kernel, tuple) else (kernel, kernel)
    assert (
        space_to_depth(x, outputs, windows(size, kernel, stride, 4, dilation)) is None
    )

    def run(x: Any) -> Any:
        weight = burn.from_numpy(normal(outputs, channels, *kernel, seed=1))
        return ops.conv(x, weight, stride=stride, padding=4, dilation=dilation)

    assert_close(planned(run, x), run(burn.from_numpy(x)).numpy())


class Stem(nn.Module):
    """A first convolution that is trained."""

    def __init__(self) -> None:
        self.conv = nn.Conv2d(3, 36, 7, stride=2, padding=3)

    def __call__(self, x: Any) -> Any:
        return ops.relu(self.conv(x))


def test_weights_that_are_trained() -> None:
    assert_trained_alike(Stem, 2, 3, 22, 20, scale=1 / 4)

"""Convolutions of images that lie side by side are NumPy's."""

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import burn
from burn import ops
from burn.backend.cpu.onednn.binding import engine
from burn.backend.cpu.onednn.kernels.convolution import (
    conv_primitives,
    pack_width as sideways,
)
from burn.backend.cpu.onednn.kernels.convolution.pack_width import (
    PackedWidth,
    packed_width,
)
from burn.backend.cpu.onednn.kernels.convolution.rebatch import Form
from burn.ops.window import windows
from tests.runtime.onednn import assert_close, laid_out, needs_onednn, normal, planned
from tests.sampling import example_count

pytestmark = needs_onednn
pads = st.integers(0, 3)


@st.composite
def axes(draw: st.DrawFn) -> tuple[Any, ...]:
    """Extent, kernel, stride, padding and dilation of an axis."""
    kernel, dilation = draw(st.integers(1, 4)), draw(st.integers(1, 2))
    around = (draw(pads), draw(pads))
    least = max(dilation * (kernel - 1) + 1 - sum(around), 1)
    return (
        draw(st.integers(least, 8)),
        kernel,
        draw(st.integers(1, 3)),
        around,
        dilation,
    )


@st.composite
def cases(draw: st.DrawFn) -> tuple[Any, ...]:
    """x, weight, bias, and the geometry of a convolution of narrow images."""
    channels, outputs = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    size, kernel, *geometry = zip(draw(axes()), draw(axes()), strict=True)
    x = normal(draw(st.sampled_from([1, 2, 3, 4, 6])), channels, *size)
    x = laid_out(x, draw(st.permutations(range(4))))
    weight = normal(outputs, channels, *kernel, seed=1)
    bias = normal(outputs, seed=2) if draw(st.booleans()) else None
    return (
        x,
        weight,
        bias,
        dict(zip(("stride", "padding", "dilation"), geometry, strict=True)),
    )


@settings(max_examples=example_count(200))
@given(case=cases())
def test_convolution(case: Any) -> None:
    x, weight, bias, geometry = case

    def run(x: Any) -> Any:
        return ops.relu(ops.conv(x, burn.from_numpy(weight), bias, **geometry))

    def anywhere(form: Form, _: str) -> PackedWidth | None:
        return packed_width(form, "amx")

    with engine.numpy_only():
        expected = run(burn.from_numpy(x)).numpy()
    with (
        patch.object(sideways, "_CHANNELS", 1),
        patch.object(conv_primitives, "packed_width", anywhere),
    ):
        actual = planned(run, x)
    assert_close(actual, expected)


def test_plans_have_zeros_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    results = []

    def noted(form: Form, _: str) -> PackedWidth | None:
        results.append(packed_width(form, "amx"))
        return results[-1]

    monkeypatch.setattr(conv_primitives, "packed_width", noted)
    weight = burn.from_numpy(normal(8, 256, 3, 3, seed=1))

    def run(x: Any) -> Any:
        return ops.conv(ops.conv(x, weight, padding=1)[:, :1] + x, weight, padding=1)

    given = [burn.from_numpy(normal(4, 256, 7, 7, seed=seed)) for seed in range(3)]
    expected = [run(x).numpy() for x in given]
    assert results == []  # an eager call has weights that are not finite as well
    plan = burn.compile(run)
    for _ in range(3):
        for x, wanted in zip(given, expected, strict=True):
            assert_close(plan(x).numpy(), wanted)
    assert [actual.form.x for actual in results if actual] == [(2, 256, 7, 16)] * len(
        results
    )
    assert results


@pytest.mark.parametrize(
    ("x", "kernel", "stride", "padding", "expected"),
    [
        ((8, 256, 7, 7), 3, 1, 1, (4, 256, 7, 16)),
        ((8, 512, 14, 14), 3, 2, 1, (4, 512, 14, 32)),
        ((8, 256, 3, 3), 3, 1, 1, (2, 256, 3, 16)),
        ((6, 256, 3, 3), 3, 1, 1, (2, 256, 3, 12)),
        ((7, 256, 7, 7), 3, 1, 1, None),
        ((8, 256, 8, 8), 3, 1, 1, None),  # nine columns are needed for each
        ((8, 256, 8, 8), 3, 1, 0, (4, 256, 8, 16)),
        ((8, 255, 7, 7), 3, 1, 1, None),
        ((8, 256, 7, 7), 1, 1, 0, None),
        ((8, 256, 7), 3, 1, 1, None),
    ],
)
def test_which_images(
    x: tuple[int, ...], kernel: int, stride: int, padding: int, expected: Any
) -> None:
    wins = windows(x[2:], kernel, stride, padding)
    form = Form(x, (x[0], 9, *wins.count), wins)
    assert packed_width(form, "brgconv:avx512_core") is None
    actual = packed_width(form, "brgconv:avx512_core_amx")
    assert (actual and actual.form.x) == expected
    if actual is not None:
        wide = actual.form
        assert windows(wide.x[2:], kernel, stride, wide.wins.pads) == wide.wins
        assert np.prod(wide.shape) >= np.prod(form.shape)

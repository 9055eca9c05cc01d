"""Fourier transforms, windows and filters by value and by gradient."""

from functools import partial
from typing import Any

import numpy as np
import pytest

import burn
from burn import ops
from burn.dtypes import float64, int64
from tests.runtime.gradcheck import check_gradient
from tests.runtime.onnx_node import run_node as run_opset

run_node = partial(run_opset, opset=20)

RNG = np.random.default_rng(5)
REAL = RNG.standard_normal((3, 7, 4, 1))
COMPLEX = RNG.standard_normal((3, 7, 4, 2))


@pytest.mark.parametrize("axis", [0, 1, -2])
@pytest.mark.parametrize("length", [None, 5, 9])
@pytest.mark.parametrize(
    ("x", "flags"),
    [
        (REAL, {}),
        (COMPLEX, {}),
        (REAL, {"inverse": True}),
        (COMPLEX, {"inverse": True}),
        (REAL, {"onesided": True}),
        (COMPLEX, {"inverse": True, "onesided": True}),
    ],
)
def test_dft(x: Any, flags: dict[str, bool], axis: int, length: int | None) -> None:
    got = ops.dft(burn.tensor(x), length, axis, **flags)
    signal = x[..., 0] + (1j * x[..., 1] if x.shape[-1] == 2 else 0)
    name = "i" * flags.get("inverse", 0) + "r" * flags.get("onesided", 0) + "fft"
    along = axis % 4
    transform: Any = getattr(np.fft, name)
    y = transform(signal.real if name == "rfft" else signal, length, along)
    expected = y[..., None] if name == "irfft" else np.stack([y.real, y.imag], -1)
    assert got.dtype == float64
    np.testing.assert_allclose(got.numpy(), expected, atol=1e-12)
    check_gradient(lambda t: ops.dft(t, length, axis, **flags), x)


@pytest.mark.parametrize("extents", [(2, 0, 3, 2), (2, 1, 3, 2)])
@pytest.mark.parametrize("flags", [{}, {"inverse": 1}, {"inverse": 1, "onesided": 1}])
def test_dft_of_no_elements(extents: Any, flags: dict[str, int]) -> None:
    x = RNG.standard_normal(extents).astype(np.float32)
    if len(flags) == 2 and not x.size:  # two elements less than none
        with pytest.raises(ValueError, match="FFT"):
            ops.dft(burn.tensor(x), None, 1, inverse=True, onesided=True)
        return
    (expected,) = run_node("DFT", x, opset=17, axis=1, **flags)
    named = {name: True for name in flags}
    got = ops.dft(burn.tensor(x), None, 1, **named)
    assert got.shape == expected.shape
    np.testing.assert_allclose(got.numpy(), expected, atol=1e-5)
    check_gradient(lambda t: ops.dft(t, None, 1, **named), x.astype(np.float64))


def test_dft_of_half_types_is_computed_in_float32() -> None:
    x = COMPLEX.astype(np.float16)
    got = ops.dft(burn.tensor(x), None, 1)
    assert got.dtype == burn.float16
    expected = ops.dft(burn.tensor(x.astype(np.float32)), None, 1).numpy()
    np.testing.assert_array_equal(got.numpy(), expected.astype(np.float16))


def test_dft_refuses_what_it_cannot_do() -> None:
    with pytest.raises(ValueError, match="real signal"):
        ops.dft(burn.tensor(COMPLEX), onesided=True)
    with pytest.raises(ValueError, match="axis 3"):
        ops.dft(burn.tensor(COMPLEX), None, -1)
    with pytest.raises(ValueError, match="last axis"):
        ops.dft(burn.tensor(COMPLEX[..., 0]), None, 0)


@pytest.mark.parametrize("onesided", [True, False])
def test_stft(onesided: bool) -> None:
    signal = RNG.standard_normal((2, 19, 1)).astype(np.float32)
    window = RNG.random(6).astype(np.float32)
    got = ops.stft(burn.tensor(signal), 3, burn.tensor(window), onesided=onesided)
    feeds = [signal, np.array(3), window]
    (expected,) = run_node("STFT", *feeds, onesided=int(onesided))
    np.testing.assert_allclose(got.numpy(), expected, atol=1e-5)
    check_gradient(
        lambda x, w: ops.stft(x, 3, w, onesided=onesided), signal, window, tol=1e-5
    )
    whole = ops.stft(burn.tensor(signal), 3)
    assert whole.shape == (2, 1, 10, 2)


def test_stft_needs_a_window_that_fits() -> None:
    signal = burn.tensor(np.ones((2, 19, 1), np.float32))
    window = burn.tensor(np.ones(6, np.float32))
    with pytest.raises(ValueError, match="window of 6 to fit frames of 8"):
        ops.stft(signal, 3, window, 8)
    with pytest.raises(ValueError, match="frames of 20"):
        ops.stft(signal, 3, None, 20)


@pytest.mark.parametrize("name", ["hann", "hamming", "blackman"])
@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize("size", [0, 1, 2, 9, 16])
def test_windows(name: str, periodic: bool, size: int) -> None:
    window = getattr(ops, f"{name}_window")
    got = window(size, periodic=periodic)
    operator = f"{name.capitalize()}Window"
    (expected,) = run_node(operator, np.array(size), periodic=int(periodic))
    np.testing.assert_allclose(got.numpy(), expected, atol=1e-6)
    wide = window(burn.tensor(size), periodic=periodic, dtype=float64)
    np.testing.assert_allclose(wide.numpy(), got.numpy(), atol=1e-6)


def test_the_peak_of_a_window_of_integers_is_one() -> None:
    for name in ("hann", "hamming", "blackman"):
        window = getattr(ops, f"{name}_window")
        assert window(3, periodic=False, dtype=int64).tolist() == [0, 1, 0]


def test_mel_weight_matrix() -> None:
    bins, length, rate = 8, 128, 8000
    edges = (np.array(20.0, np.float32), np.array(3500.0, np.float32))
    got = ops.mel_weight_matrix(bins, length, rate, *edges)
    sizes = (np.array(n) for n in (bins, length, rate))
    (expected,) = run_node("MelWeightMatrix", *sizes, *edges)
    assert got.shape == (65, 8)
    np.testing.assert_allclose(got.numpy(), expected, atol=1e-6)
    tensors = [burn.tensor(np.array(n)) for n in (bins, length, rate)]
    same = ops.mel_weight_matrix(*tensors, *map(burn.tensor, edges), dtype=float64)
    np.testing.assert_allclose(same.numpy(), expected, atol=1e-6)

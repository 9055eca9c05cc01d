"""Half the width: oneDNN computes with bfloat16 what NumPy does."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import burn
from burn import ops
from burn.backend.cpu.onednn.binding import engine
from burn.ops import fused
from tests.runtime.onednn import both, laid_out, needs_onednn, normal

pytestmark = needs_onednn
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


def half(*shape: int, seed: int = 0) -> Any:
    return normal(*shape, seed=seed).astype(BFLOAT16)


def assert_near(actual: Any, expected: Any) -> None:
    """Within the rounding of results, and of what is between."""
    assert (actual.shape, actual.dtype) == (expected.shape, BFLOAT16)
    wide, wanted = actual.astype(np.float32), expected.astype(np.float32)
    scale = float(np.abs(wanted).max(initial=0.0))
    np.testing.assert_allclose(wide, wanted, rtol=2**-7, atol=2**-8 * scale)


def compare(function: Any, *arrays: Any, **static: Any) -> None:
    assert_near(*both(function, *arrays, **static))


@pytest.mark.parametrize("bias", [None, half(12, seed=3), normal(12, seed=3)])
@pytest.mark.parametrize("groups", [1, 4])
def test_convolution(bias: Any, groups: int) -> None:
    x, weight = half(2, 8, 9, 11), half(12, 8 // groups, 3, 3, seed=1)
    static: Any = {"stride": (1, 2), "padding": (1, 0), "groups": groups}
    compare(ops.conv, x, weight, bias, **static)


@pytest.mark.parametrize("residual", [half(2, 12, 9, 11), normal(2, 12, 9, 11)])
def test_convolution_with_an_ending(residual: Any) -> None:
    x, weight = half(2, 8, 9, 11), half(12, 8, 3, 3, seed=1)
    after = (("add",), ("relu",))
    compare(*(fused.conv_then, x, weight, normal(12), residual), padding=1, after=after)


@pytest.mark.parametrize("order", [(0, 1, 2), (0, 2, 1), (1, 0, 2)])
def test_products(order: tuple[int, ...]) -> None:
    x, y = laid_out(half(5, 24, 31), order), laid_out(half(5, 31, 20, seed=2), order)
    compare(ops.matmul, x, y)


@pytest.mark.parametrize("residual", [half(5, 24, 20), normal(5, 24, 20)])
def test_products_with_an_ending(residual: Any) -> None:
    x, y = half(5, 24, 31), half(5, 31, 20, seed=2)
    after = (("scale", 0.25), ("add",))
    compare(fused.matmul_then, x, y, None, residual, after=after)


@pytest.mark.parametrize("bias", [None, half(20, seed=3), normal(20, seed=3)])
def test_linear_layers(bias: Any) -> None:
    compare(ops.linear, half(3, 7, 31), half(20, 31, seed=1), bias)
    after = (("gelu",),)
    compare(
        *(fused.linear_then, half(3, 7, 31), half(20, 31, seed=1), bias, None),
        after=after,
    )


def test_what_is_between() -> None:
    x = half(3, 6, 10, 8)
    compare(ops.softmax, x)
    compare(ops.gelu, x)
    compare(ops.tanh, x)
    compare(ops.max_pool, x, kernel_size=(2, 3), stride=2)
    compare(ops.avg_pool, x, kernel_size=3, stride=2, padding=1)
    compare(ops.layer_norm, x, normal(8, seed=1), normal(8, seed=2))


#: The smallest and the largest subnormal number of bfloat16, and one between them.
SUBNORMAL = (9.2e-41, 1.166e-38, 1e-39, -1e-40)


@pytest.mark.parametrize("planned", [False, True])
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
@pytest.mark.parametrize("given", [np.dtype(np.float32), BFLOAT16])
def test_casts(order: tuple[int, ...], given: Any, planned: bool) -> None:
    dtype = BFLOAT16 if given == np.float32 else np.dtype(np.float32)
    x = normal(4, 5, 6) * np.float32(1e3)
    x.flat[:3] = (np.finfo(np.float32).max, -0.0, 1 + 2**-8)
    x.flat[3:7] = SUBNORMAL
    if not planned:  # plans are for finite numbers
        x.flat[7:10] = (np.inf, -np.inf, np.nan)
    tensor = burn.from_numpy(laid_out(x.astype(given), order))

    def cast(x: Any) -> Any:
        return ops.cast(x, dtype=dtype)

    function = burn.compile(cast) if planned else cast
    with engine.whatever_size():
        function(tensor)
        actual = function(tensor).numpy()
    assert actual.dtype == dtype
    wide, expected = (y.astype(np.float32) for y in (actual, x.astype(given)))
    expected = expected.astype(dtype).astype(np.float32)
    np.testing.assert_array_equal(wide, expected)
    is_number = ~np.isnan(expected)
    signs = np.signbit(wide) == np.signbit(expected)
    assert signs[is_number].all()


def test_a_product_of_two_dtypes_is_numpys() -> None:
    x, y = burn.from_numpy(half(20, 20)), burn.from_numpy(normal(20, 20))
    session = engine.current()
    assert session is not None
    session.primitives.clear()
    with engine.whatever_size():
        actual = ops.linear(x, y)
    assert not session.primitives.implementations()
    assert actual.dtype == np.float32

"""Attention on a CUDA device against NumPy in float64."""

from typing import Any

import numpy as np
import pytest

import burn
from burn.ops.fused_attention import scaled_attention
from tests.runtime.onnx_node import normal

pytestmark = pytest.mark.cuda
TOLERANCE = {"float32": 1e-5, "tf32": 2e-2, "float16": 1e-2}
#: Rows and columns of scores, and the elements of a head.
SHAPES = (
    *((1, 1, 16), (1, 70, 64), (5, 3, 32), (16, 64, 64), (17, 65, 48)),
    *((49, 49, 32), (64, 128, 128), (197, 197, 64), (130, 200, 80), (3, 9, 24)),
)
BATCH, HEADS = 2, 4


@pytest.fixture(params=TOLERANCE)
def precision(request: Any) -> Any:
    """The precision, set on the device while a test runs."""
    pytest.importorskip("cupy")
    device = burn.Cuda(0)
    before, device.tf32 = device.tf32, request.param == "tf32"
    yield request.param
    device.tf32 = before


def check(precision: str, operands: Any, mask: Any = None, **static: Any) -> None:
    """Compare the device with float64, after rounding the operands to the dtype."""
    dtype = "float16" if precision == "float16" else "float32"
    device = burn.Cuda(0)
    given = [x.astype(dtype) for x in operands]
    exact = [burn.from_numpy(x.astype("float64")) for x in given]
    there = [burn.from_numpy(x, device) for x in given]
    exact_mask = None
    if mask is not None:
        wide = mask if mask.dtype == np.bool_ else mask.astype("float64")
        exact_mask, there_mask = burn.from_numpy(wide), burn.from_numpy(mask, device)
        there.append(there_mask)
    compute: Any = scaled_attention
    expected = compute(*exact, exact_mask, **static).numpy()
    actual = compute(*there, **static).numpy()
    assert actual.dtype == dtype
    largest = np.abs(expected, where=np.isfinite(expected), out=np.zeros_like(expected))
    atol = TOLERANCE[precision] * largest.max(initial=1e-3)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=atol)


def operands(shape: tuple[int, int, int], heads: int = HEADS) -> list[Any]:
    """Query, key and value of normal numbers; ``heads`` are those of the keys."""
    rows, columns, size = shape
    return [
        normal(BATCH, HEADS, rows, size),
        normal(BATCH, heads, columns, size, seed=1),
        normal(BATCH, heads, columns, size, seed=2),
    ]


@pytest.mark.parametrize("shape", SHAPES)
def test_extents(shape: tuple[int, int, int], precision: str) -> None:
    check(precision, operands(shape), scale=shape[-1] ** -0.5)


@pytest.mark.parametrize("shape", SHAPES)
def test_addends(shape: tuple[int, int, int], precision: str) -> None:
    dtype = "float16" if precision == "float16" else "float32"
    for outer in ((1, HEADS), (BATCH, 1), (BATCH, HEADS)):
        mask = normal(*outer, *shape[:2], seed=3).astype(dtype)
        check(precision, operands(shape), mask, scale=0.2)


@pytest.mark.parametrize("is_zero", (False, True))
@pytest.mark.parametrize("shape", SHAPES)
def test_hidden_keys(
    shape: tuple[int, int, int], is_zero: bool, precision: str
) -> None:
    """Rows that see nothing are zero or not a number, as they are on the host."""
    seen = normal(BATCH, 1, *shape[:2], seed=3) > -0.5
    seen[0, 0, -1] = False
    given = operands(shape)
    check(precision, given, seen, scale=0.2, empty_is_zero=is_zero)
    addend = np.where(seen, 0, -np.inf).astype("float32")
    check(precision, given, addend, scale=0.2, empty_is_zero=is_zero)


@pytest.mark.parametrize("scale", (0.1, 3.0))
def test_rows_of_lowest_numbers_see_all_keys(scale: float, precision: str) -> None:
    mask = np.zeros((BATCH, 1, 5, 70), "float32")
    mask[0, :, 2] = np.finfo("float32").min
    mask[1, :, :, 30:] = np.finfo("float32").min
    check(precision, operands((5, 70, 32)), mask, scale=scale)


@pytest.mark.parametrize("scale", (-0.3, 0.0))
def test_scales_that_are_not_positive(scale: float, precision: str) -> None:
    mask = normal(1, 1, 5, 70, seed=3) > 0
    check(precision, operands((5, 70, 32)), mask, scale=scale)


@pytest.mark.parametrize("shape", SHAPES)
def test_causal(shape: tuple[int, int, int], precision: str) -> None:
    check(precision, operands(shape), scale=0.2, causal=True)


@pytest.mark.parametrize("heads", (1, 2))
@pytest.mark.parametrize("shape", SHAPES)
def test_shared_heads(shape: tuple[int, int, int], heads: int, precision: str) -> None:
    given = operands(shape, heads)
    check(precision, given, scale=0.2)
    check(precision, given, normal(1, 1, 1, shape[1], seed=3), scale=0.2)


def test_views(precision: str) -> None:
    """Operands may be parts of one array, at any address."""
    for rows, size, offset in ((49, 32, 0), (65, 64, 0), (20, 16, 3)):
        whole = normal(BATCH, rows, 3, HEADS, size + offset)[..., offset:]
        parts = whole.transpose(2, 0, 3, 1, 4)
        check(precision, list(parts), scale=0.3)
        mask = normal(rows, rows, HEADS, seed=4).transpose(2, 0, 1)[None]
        check(precision, list(parts), mask, scale=0.3)


@pytest.mark.parametrize("value", (np.nan, np.inf, 6e4))
def test_numbers_that_are_not_finite(value: float, precision: str) -> None:
    given = operands((17, 40, 32))
    given[2][0, 1, 7, 3] = value
    mask = np.zeros((1, 1, 17, 40), "float32")
    mask[..., 5] = np.nan if np.isnan(value) else -value
    check(precision, given, mask, scale=0.2)

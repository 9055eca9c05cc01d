"""Quantized layers and tree ensembles on CUDA: exact, and without the host."""

from typing import Any

import numpy as np
import pytest

import burn
from burn import ops
from tests.runtime.cuda.test_kernels import device
from tests.runtime.ops.test_trees import complete

DTYPES = ("int8", "uint8", "int16", "uint16")


def limits(shape: tuple[int, ...], dtype: str, seed: int) -> Any:
    """Numbers at the ends of the range of a dtype, whose sums need the most bits."""
    ends = np.iinfo(dtype)
    chosen = np.random.default_rng(seed).integers(0, 4, shape)
    return np.array([ends.min, ends.max, ends.max, ends.max - 1], dtype)[chosen]


def compiled(fn: Any, arrays: Any) -> tuple[list[Any], list[Any]]:
    """The results of three calls of a compiled function, and its notes."""
    run = burn.compile(fn)
    there = [burn.from_numpy(array, device()) for array in arrays]
    return [run(*there).numpy() for _ in range(3)], list(run.notes)


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("terms", (1, 40, 700))
@pytest.mark.parametrize("zero_point", ("none", "number", "tensor", "rows"))
def test_integer_products_are_exact(dtype: str, terms: int, zero_point: str) -> None:
    x, y = limits((3, 5, terms), dtype, 0), limits((terms, 4), dtype, 1)
    shifts: dict[str, Any] = {
        "none": (),
        "number": (3, 7),
        "tensor": (np.array(3, dtype), np.array(7, dtype)),
        "rows": (limits((5,), dtype, 2), limits((4,), dtype, 3)),
    }
    wide = [array.astype(np.int64) for array in (x, y)]
    if zero_point == "rows":
        wide = [wide[0] - shifts["rows"][0][:, None], wide[1] - shifts["rows"][1]]
    elif zero_point != "none":
        wide = [wide[0] - 3, wide[1] - 7]
    expected = np.matmul(*wide).astype(np.int32)
    arrays = [x, y, *(s for s in shifts[zero_point] if isinstance(s, np.ndarray))]
    numbers = [s for s in shifts[zero_point] if isinstance(s, int)]

    def product(*operands: Any) -> Any:
        return ops.integer_matmul(*operands, *numbers)

    results, notes = compiled(product, arrays)
    for result in results:
        np.testing.assert_array_equal(result, expected)
    assert notes == []


@pytest.mark.cuda
@pytest.mark.parametrize("channels", (3, 64))
@pytest.mark.parametrize("zero_point", ((), (3, 7), (3, [7, 0, 9, 1])))
def test_integer_convolutions_are_exact(channels: int, zero_point: Any) -> None:
    x, w = limits((2, channels, 6, 5), "uint8", 0), limits(
        (4, channels, 3, 3), "int8", 1
    )

    def convolution(x: Any, w: Any) -> Any:
        return ops.integer_conv(x, w, *zero_point, padding=1)

    results, notes = compiled(convolution, (x, w))
    expected = convolution(burn.from_numpy(x), burn.from_numpy(w)).numpy()
    for result in results:
        np.testing.assert_array_equal(result, expected)
    assert notes == []


@pytest.mark.cuda
@pytest.mark.parametrize("kind", ("number", "tensor"))
def test_requantized_layers_equal_the_host(kind: str) -> None:
    x, y = limits((6, 300), "uint8", 0), limits((300, 4), "int8", 1)
    given: list[Any] = [0.02, 128, 0.01, 0, 0.5, 120]
    if kind == "tensor":
        kinds = ("float32", "uint8", "float32", "int8", "float32", "uint8")
        given = [np.array(n, dtype) for n, dtype in zip(given, kinds, strict=True)]

    def layers(x: Any, y: Any, *more: Any) -> Any:
        a, b, c, d, e, f = more or given
        product = ops.quantized_matmul(x, a, b, y, c, d, e, f)
        image, weight = x.reshape(2, 3, 30, 10), y.reshape(4, 3, 10, 10)
        return product, ops.quantized_conv(image, a, b, weight, c, d, e, f)

    arrays = [x, y, *(given if kind == "tensor" else ())]
    expected = [r.numpy() for r in layers(*map(burn.from_numpy, arrays))]
    run = burn.compile(layers)
    there = [burn.from_numpy(array, device()) for array in arrays]
    for _ in range(3):
        for result, wanted in zip(run(*there), expected, strict=True):
            error = np.abs(result.numpy().astype(int) - wanted.astype(int))
            assert error.max() <= 1  # a number between two is rounded to either
    assert list(run.notes) == []


@pytest.mark.cuda
@pytest.mark.parametrize("aggregate", ("sum", "average", "min", "max"))
@pytest.mark.parametrize("rows", (0, 1, 700))
@pytest.mark.parametrize("dtype", ("float32", "float64"))
def test_trees_equal_the_host(aggregate: str, rows: int, dtype: str) -> None:
    rng = np.random.default_rng(rows)
    arrays = complete(9, rng)
    count = len(arrays[1])
    arrays[2] = rng.integers(0, 6, count).astype(np.uint8)
    arrays[3] = np.round(arrays[3], 1).astype(dtype)
    arrays[5][::7] = -1
    missing, base = rng.random(count) < 0.5, rng.standard_normal(3).astype(np.float32)
    x = np.round(rng.standard_normal((rows, 20)), 1).astype(dtype)
    x[rng.random(x.shape) < 0.2] = np.nan

    def scores(*operands: Any) -> Any:
        return ops.tree_ensemble(*operands, targets=3, aggregate=aggregate)

    given = [x, *arrays, missing, base]
    expected = scores(*map(burn.from_numpy, given)).numpy()
    results, notes = compiled(scores, given)
    for result in results:
        assert result.dtype == expected.dtype
        np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-6)
    assert notes == []


@pytest.mark.cuda
def test_a_circle_of_branches_is_refused() -> None:
    arrays = complete(1, np.random.default_rng(0))
    arrays[4][3] = 0
    x = np.random.default_rng(1).standard_normal((50, 20)).astype(np.float32)
    there = [burn.from_numpy(array, device()) for array in (x, *arrays)]
    with pytest.raises(ValueError, match="circle"):
        ops.tree_ensemble(*there, targets=3)


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", ("int4", "float8_e4m3fn"))
def test_dtypes_that_the_device_lacks_are_named(dtype: str) -> None:
    weight = burn.tensor([1.0, 2.0]).cast(getattr(burn, dtype))
    with pytest.raises(TypeError, match=rf"Cuda\(0\) holds no tensors of {dtype}"):
        weight.to(device())

"""Kernels that only CUDA devices have: products, convolutions, rows, memory orders."""

from itertools import product
from typing import Any

import numpy as np
import pytest

import burn
from burn import ops
from burn.backend.cuda.kernels.convolution.convolution import Geometry
from burn.backend.cuda.kernels.convolution.depthwise import launch, tiles
from burn.backend.cuda.kernels.convolution.layouts import Layout
from burn.backend.cuda.kernels.elementwise.elementwise import memory_order, preserving
from burn.ops.window import windows
from tests.runtime.onnx_node import normal


def device() -> Any:
    """The first CUDA device; the test is skipped without CuPy."""
    pytest.importorskip("cupy")
    return burn.Cuda(0)


def both(fn: Any, *arrays: Any, **static: Any) -> tuple[Any, Any]:
    """The results of the device and of the host."""
    there = fn(*(burn.from_numpy(a, device()) for a in arrays), **static)
    return there.numpy(), fn(*map(burn.from_numpy, arrays), **static).numpy()


OPERANDS: dict[str, Any] = {
    "plain": (lambda: (normal(5, 7), normal(7, 3))),
    "one row": (lambda: (normal(1, 7), normal(7, 3))),
    "one column": (lambda: (normal(5, 7), normal(7, 1))),
    "inner extent 1": (lambda: (normal(5, 1), normal(1, 3))),
    "left transposed": (lambda: (normal(7, 5).T, normal(7, 3))),
    "right transposed": (lambda: (normal(5, 7), normal(3, 7).T)),
    "both transposed": (lambda: (normal(7, 5).T, normal(3, 7).T)),
    "rows with gaps": (lambda: (normal(5, 14)[:, ::2], normal(7, 6)[:, :3])),
    "reversed": (lambda: (normal(5, 7)[::-1], normal(7, 3)[:, ::-1])),
    "unaligned": (lambda: (normal(5, 8)[:, 1:], normal(7, 4)[:, 1:])),
    "batch": (lambda: (normal(4, 5, 7), normal(4, 7, 3))),
    "batch by matrix": (lambda: (normal(2, 4, 5, 7), normal(7, 3))),
    "matrix by batch": (lambda: (normal(5, 7), normal(2, 4, 7, 3))),
    "broadcast": (lambda: (normal(2, 1, 5, 7), normal(1, 4, 7, 3))),
    "heads": (
        lambda: (
            normal(2, 6, 4, 8).transpose(0, 2, 1, 3),
            normal(2, 6, 4, 8, seed=1).transpose(0, 2, 3, 1),
        )
    ),
    "empty": (lambda: (normal(0, 7), normal(7, 3))),
    "no inner": (lambda: (normal(5, 0), normal(0, 3))),
}
TOLERANCE = {"float64": 1e-12, "float32": 1e-5, "float16": 2e-2}


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", OPERANDS)
def test_products(name: str, dtype: str) -> None:
    cupy = pytest.importorskip("cupy")
    arrays = [array.astype(dtype) for array in OPERANDS[name]()]
    # A copy to the device would be row-major: the strides are made there.
    there = [cupy.asarray(np.ascontiguousarray(_base(a))) for a in arrays]
    views = [
        (
            cupy.lib.stride_tricks.as_strided(b, a.shape, a.strides)
            if min(a.strides, default=0) >= 0 and a.size
            else cupy.asarray(a)
        )
        for a, b in zip(arrays, there, strict=True)
    ]
    out = ops.matmul(*(burn.Tensor(view, device()) for view in views))
    wanted = np.matmul(*(array.astype("float64") for array in arrays))
    assert out.dtype == np.dtype(dtype)
    tol = TOLERANCE[dtype]
    np.testing.assert_allclose(out.numpy(), wanted, rtol=tol, atol=tol * 5)


def _base(array: Any) -> Any:
    """The memory of ``array`` from its first element on, as one axis."""
    steps = sum((n - 1) * s for n, s in zip(array.shape, array.strides, strict=True))
    if steps <= 0 or not array.size:
        return array
    count = steps // array.itemsize + 1
    return np.lib.stride_tricks.as_strided(array, (count,), (array.itemsize,))


@pytest.mark.cuda
@pytest.mark.parametrize("biased", (True, False))
@pytest.mark.parametrize("shape", ((5, 7), (2, 3, 7), (1, 7), (7,)))
def test_linear(shape: tuple[int, ...], biased: bool) -> None:
    arrays = [normal(*shape), normal(4, 7, seed=1)] + [normal(4, seed=2)] * biased
    there, here = both(ops.linear, *arrays)
    np.testing.assert_allclose(there, here, rtol=1e-5, atol=1e-5)


@pytest.mark.cuda
def test_tensor_float_32_is_a_choice() -> None:
    x, weight = normal(256, 512), normal(128, 512, seed=1)
    exact = np.matmul(x.astype("float64"), weight.T.astype("float64"))
    errors = []
    for tf32 in (False, True):
        device().tf32 = tf32
        try:
            there = ops.linear(*(burn.from_numpy(a, device()) for a in (x, weight)))
        finally:
            device().tf32 = False
        errors.append(np.abs(there.numpy() - exact).max() / np.abs(exact).max())
    assert errors[0] < 1e-6 < errors[1] < 3e-3


CONVOLUTIONS: list[Any] = [
    ((2, 8, 9, 7), (16, 8, 3, 3), {"padding": 1}),
    ((2, 8, 9, 7), (16, 8, 3, 3), {"padding": 1, "stride": 2}),
    ((2, 8, 10, 8), (16, 8, 3, 3), {"padding": 1, "stride": 2}),
    ((2, 8, 9, 7), (16, 8, 1, 1), {}),
    ((2, 8, 9, 7), (16, 4, 3, 3), {"groups": 2, "dilation": 2, "padding": 2}),
    ((2, 16, 9, 7), (16, 1, 3, 3), {"groups": 16, "padding": 1}),
    ((2, 8, 9, 7), (16, 8, 3, 2), {"padding": ((0, 1), (1, 0))}),
    ((2, 3, 9, 7), (5, 3, 3, 3), {}),
    ((2, 8, 20), (16, 8, 5), {"padding": 2, "stride": 3}),
    ((1, 8, 5, 6, 7), (8, 8, 3, 3, 3), {"padding": 1}),
    ((0, 8, 9, 7), (16, 8, 3, 3), {"padding": 1}),
    ((2, 3, 9, 12), (16, 3, 4, 4), {"stride": 4}),
    ((2, 16, 9, 11), (16, 1, 7, 7), {"groups": 16, "padding": 3}),
]


@pytest.mark.cuda
@pytest.mark.parametrize("mode", ("float32", "tf32", "float16"))
@pytest.mark.parametrize("case", CONVOLUTIONS, ids=str)
def test_convolutions_and_their_gradients(case: Any, mode: str) -> None:
    image, kernel, static = case
    dtype = "float16" if mode == "float16" else "float32"
    arrays = [normal(*image), normal(*kernel, seed=1), normal(kernel[0], seed=2)]
    arrays = [array.astype(dtype) for array in arrays]
    device().tf32 = mode == "tf32"
    try:
        there = _with_gradients(arrays, static, device())
    finally:
        device().tf32 = False
    tol = 1e-4 if mode == "float32" else 2e-2
    wide = [array.astype("float32") for array in arrays]
    for part, value in zip(
        there, _with_gradients(wide, static, burn.Cpu()), strict=True
    ):
        scale = max(np.abs(value).max(initial=0), 1.0)
        np.testing.assert_allclose(part / scale, value / scale, atol=tol)


LARGE: list[Any] = [
    ((4, 16, 150, 161), (16, 1, 3, 3), {"groups": 16, "padding": 1}),
    ((8, 64, 100, 101), (64, 1, 7, 7), {"groups": 64, "padding": 3}),
    ((16, 64, 121, 120), (64, 1, 5, 3), {"groups": 64, "padding": 1, "stride": 2}),
    ((16, 64, 60, 61), (64, 1, 3, 3), {"groups": 64, "padding": 2, "dilation": 2}),
]


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", ("float16", "float32"))
@pytest.mark.parametrize("case", LARGE, ids=str)
def test_large_depthwise_convolutions(case: Any, dtype: str) -> None:
    image, kernel, static = case
    arrays = [normal(*image), normal(*kernel, seed=1), normal(kernel[0], seed=2)]
    there = [burn.from_numpy(a.astype(dtype), device()) for a in arrays]
    wide = [burn.from_numpy(a.astype(dtype).astype("float32")) for a in arrays]
    actual, expected = ops.conv(*there, **static), ops.conv(*wide, **static).numpy()
    atol = (2e-3 if dtype == "float16" else 1e-5) * np.abs(expected).max()
    np.testing.assert_allclose(actual.numpy(), expected, atol=atol, rtol=0)


TILED: list[Any] = [
    *LARGE,
    ((2, 16, 30, 31), (16, 1, 7, 7), {"groups": 16, "padding": 3}),
    ((3, 8, 45, 43), (8, 1, 5, 3), {"groups": 8, "padding": (2, 0), "stride": (1, 2)}),
    ((3, 8, 45, 43), (8, 1, 3, 3), {"groups": 8, "padding": 3, "dilation": (3, 2)}),
]


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", ("float16", "float32"))
@pytest.mark.parametrize("case", TILED, ids=str)
def test_tiles_of_depthwise_convolutions(case: Any, dtype: str) -> None:
    """All tiles that may be chosen in plans, also those that end outside of a row."""
    cupy = pytest.importorskip("cupy")
    image, kernel, static = case
    options = {"stride": 1, "padding": 0, "dilation": 1, **static}
    sizes = [options[name] for name in ("stride", "padding", "dilation")]
    wins = windows(image[2:], kernel[2:], *sizes)
    channels = image[1]
    geometry = Geometry.of(image[0], channels, channels, channels, wins)
    assert geometry is not None
    x, weight, bias = (normal(*s) for s in (image, kernel, (channels,)))
    wide = [
        burn.from_numpy(a.astype(dtype).astype("float32")) for a in (x, weight, bias)
    ]
    expected = ops.relu(ops.conv(*wide, **static)).numpy()
    layout = Layout(channels_last=True)
    given = [cupy.asarray(a.astype(dtype)) for a in (x, weight, bias)]
    taps = cupy.ascontiguousarray(given[1].reshape(channels, -1).T)
    choices = tiles(np.dtype(dtype), geometry)
    assert len(choices) > 1
    for tile in choices:
        out = layout.empty(geometry.result, np.dtype(dtype))
        arrays = (layout.of(given[0]), taps, given[2], np.uint64(0), out)
        launch(tile, arrays, geometry, (("relu",),))
        atol = (2e-3 if dtype == "float16" else 1e-5) * np.abs(expected).max()
        np.testing.assert_allclose(out.get(), expected, atol=atol, rtol=0)


def _with_gradients(arrays: Any, static: Any, backend: Any) -> list[Any]:
    tape = burn.Autodiff(backend)
    leaves = [burn.from_numpy(a, tape).require_grad() for a in arrays]
    out = ops.conv(*leaves, **static)
    grads = ops.mean(out * out).backward() if out.size else None
    shares = [] if grads is None else [grads[leaf].numpy() for leaf in leaves]
    return [out.numpy(), *shares]


ROWS: dict[str, Any] = {
    "plain": lambda x: x,
    "minus infinity": lambda x: np.where(x < 0, -np.inf, x),
    "all minus infinity": lambda x: np.full_like(x, -np.inf),
    "infinity": lambda x: np.where(x > 1, np.inf, x),
    "NaN": lambda x: np.where(x > 1, np.nan, x),
    "large": lambda x: x * 1000,
}


@pytest.mark.cuda
@pytest.mark.parametrize("shape", ((3, 5), (2, 3, 1), (2, 1500), (4,), (2, 0), (0, 3)))
@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("fn", (ops.softmax, ops.masked_softmax))
def test_softmax_of_rows(fn: Any, name: str, shape: tuple[int, ...]) -> None:
    there, here = both(fn, ROWS[name](normal(*shape)).astype("float32"))
    np.testing.assert_allclose(there, here, rtol=1e-5, atol=1e-6)


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("features", ((7,), (5, 7), (2000,)))
def test_norms_of_rows(features: tuple[int, ...], dtype: str) -> None:
    x, weight, bias = (
        normal(*shape, seed=i).astype(dtype)
        for i, shape in enumerate(((2, 3, *features), features, features))
    )
    tol = TOLERANCE[dtype]
    for fn, operands in (
        (ops.layer_norm, (x, weight, bias)),
        (ops.rms_norm, (x, weight)),
    ):
        for given in (operands, operands[:1]):
            there, here = both(fn, *given, axis=-len(features))
            np.testing.assert_allclose(there, here, rtol=tol, atol=tol * 10)


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("columns", (4, 24, 36, 96, 100, 192, 384, 768))
def test_many_short_rows(columns: int, dtype: str) -> None:
    """Several rows are computed by one warp; the last warp has fewer of them."""
    x, weight, bias = normal(1201, columns), normal(columns), normal(columns, seed=1)
    operands = [array.astype(dtype) for array in (x, weight, bias)]
    tol = TOLERANCE[dtype]
    for fn, given in ((ops.layer_norm, operands), (ops.softmax, operands[:1])):
        there, here = both(fn, *given)
        np.testing.assert_allclose(there, here, rtol=tol, atol=tol * 10)


ROLLED: Any = (
    *(((3, 4, 6), (1, -2), (0, 1)), ((3, 4, 6), (5,), (2,)), ((7,), (-3,), (0,))),
    *(((2, 3, 5), (0, 3), (0, 1)), ((2, 8, 8, 16), (-3, -3), (1, 2))),
    *(((4, 1, 3), (2, 1, -1), (-3, 1, 2)), ((0, 3), (1,), (1,)), ((3, 4), (4,), (1,))),
)


@pytest.mark.cuda
@pytest.mark.parametrize(("shape", "shifts", "axes"), ROLLED)
@pytest.mark.parametrize("dtype", ("bool", "int8", "float16", "float32", "complex128"))
def test_rolls(shape: Any, shifts: Any, axes: Any, dtype: str) -> None:
    x = (normal(*shape) * 9).astype(dtype)
    there, here = both(ops.roll, x, shifts=shifts, axes=axes)
    np.testing.assert_array_equal(there, here)
    moved = burn.from_numpy(x, device()).transpose(0, -1)
    actual = ops.roll(moved, shifts[:1], -1).numpy()
    np.testing.assert_array_equal(actual, np.roll(np.swapaxes(x, 0, -1), shifts[0], -1))


def test_memory_orders() -> None:
    x = np.zeros((2, 3, 4, 5), "float32")
    assert memory_order(x.shape, x.strides, 4) is None
    last = x.transpose(0, 2, 3, 1)
    assert memory_order(last.shape, last.strides, 4) == (0, 3, 1, 2)
    gaps = last[:, ::2]
    assert memory_order(gaps.shape, gaps.strides, 4) is None


@pytest.mark.parametrize("axes", ((0, 2, 3, 1), (3, 2, 1, 0), (0, 1, 2, 3)))
def test_elementwise_kernels_keep_the_order_of_axes(axes: tuple[int, ...]) -> None:
    def row_major(x: Any, y: Any) -> Any:
        return np.add(x, y, order="C")

    shape = (2, 3, 4, 5)
    moved = np.zeros([shape[a] for a in axes], "float32").transpose(np.argsort(axes))
    moved[...] = normal(*shape, seed=1)
    x = normal(*shape)
    others = (x, normal(3, 1, 1), normal(5), np.float32(2), normal(2, 1, 4, 1))
    for other in others:
        out = preserving(row_major)(moved, other)
        np.testing.assert_array_equal(out, moved + other)
        assert out.strides == moved.strides


@pytest.mark.parametrize("size", range(1, 9))
def test_padding_is_symmetric_only_where_the_result_is_the_same(size: int) -> None:
    steps = product((1, 2, 3), (1, 2, 3), (1, 2), (0, 1, 2), (0, 1, 2))
    for taps, stride, dilation, before, after in steps:
        if size + before + after < dilation * (taps - 1) + 1:
            continue
        wins = windows((size,), (taps,), stride, ((before, after),), dilation)
        geometry = Geometry.of(1, 1, 1, 1, wins)
        padded = np.pad(np.arange(size), (before, after), constant_values=-1)
        starts = [
            padded[i * stride : i * stride + dilation * (taps - 1) + 1 : dilation]
            for i in range(wins.count[0])
        ]
        if geometry is None:
            assert after != before
            continue
        same = np.pad(np.arange(size), before, constant_values=-1)
        room = len(same) - dilation * (taps - 1) - 1
        assert room // stride + 1 == len(starts) == geometry.result[-1]
        for i, window in enumerate(starts):
            other = same[i * stride : i * stride + dilation * (taps - 1) + 1 : dilation]
            np.testing.assert_array_equal(other, window)


def test_layouts() -> None:
    assert Layout(False).strides((2, 3, 4, 5)) == (60, 20, 5, 1)
    assert Layout(True).strides((2, 3, 4, 5)) == (60, 1, 15, 3)

"""Pooling against onnxruntime, PyTorch's definitions and the gradient law."""

from math import prod
from typing import Any

import numpy as np
import pytest

import burn
from burn import ops
from burn.ops.window import pads_of
from tests.runtime.gradcheck import check_gradient
from tests.runtime.onnx_node import normal, run_node

CASES: dict[str, Any] = {
    "1d": ((2, 3, 11), {"kernel_size": 3, "stride": 2, "padding": ((1, 0),)}),
    "2d": (
        (2, 3, 9, 8),
        {"kernel_size": (3, 2), "stride": (2, 3), "padding": ((1, 1), (0, 1))},
    ),
    "3d": ((2, 2, 5, 6, 7), {"kernel_size": (2, 3, 2), "stride": (1, 2, 3)}),
    "ceil": (
        (2, 3, 10, 9),
        {"kernel_size": 3, "stride": (2, 4), "padding": 1, "ceil_mode": True},
    ),
    "ceil-dropped": (
        (2, 3, 6, 5),
        {"kernel_size": 1, "stride": (3, 4), "padding": 0, "ceil_mode": True},
    ),
    "ceil-wider-than-the-axis": (
        (2, 3, 1, 2),
        {"kernel_size": (2, 3), "stride": 3, "padding": 0, "ceil_mode": True},
    ),
    "ceil-far-wider-than-the-axis": (
        (2, 3, 2, 3),
        {"kernel_size": 50_000, "stride": 50_000, "padding": 0, "ceil_mode": True},
    ),
    "padding-wider-than-the-axis": ((2, 3, 2, 3), {"kernel_size": 9, "padding": 4}),
    "dilated-padding-wider-than-the-axis": (
        (2, 3, 2, 3),
        {"kernel_size": (7, 5), "stride": (1, 2), "dilation": 2, "padding": (6, 4)},
    ),
    "dilated": (
        (2, 3, 9, 8),
        {"kernel_size": (3, 2), "dilation": (2, 3), "padding": (1, 0)},
    ),
}


def onnx_attributes(x: Any, static: dict[str, Any]) -> dict[str, Any]:
    rank = len(x) - 2
    pads = pads_of(static.get("padding", 0), rank)
    results: dict[str, Any] = {"pads": [p[0] for p in pads] + [p[1] for p in pads]}
    for ours, theirs in (
        ("kernel_size", "kernel_shape"),
        ("stride", "strides"),
        ("dilation", "dilations"),
    ):
        if ours in static:
            value = static[ours]
            results[theirs] = [value] * rank if isinstance(value, int) else list(value)
    if "ceil_mode" in static:
        results["ceil_mode"] = 1
    return results


@pytest.mark.parametrize("opset", [10, 12, 22])
@pytest.mark.parametrize("name", CASES)
def test_max_pool_is_onnxruntimes(name: str, opset: int) -> None:
    shape, static = CASES[name]
    x = normal(*shape)
    attributes = onnx_attributes(shape, static)
    expected = run_node("MaxPool", x, opset=opset, outputs=2, **attributes)
    actual = ops.max_pool(burn.from_numpy(x), **static)
    values, indices = ops.max_pool_with_indices(burn.from_numpy(x), **static)
    np.testing.assert_array_equal(actual.numpy(), expected[0])
    np.testing.assert_array_equal(values.numpy(), expected[0])
    area = int(np.prod(shape[2:]))
    planes = np.arange(shape[0] * shape[1]).reshape(shape[:2])
    planes = planes.reshape(*shape[:2], *(1,) * (len(shape) - 2)) * area
    np.testing.assert_array_equal(indices.numpy() + planes, expected[1])
    assert indices.dtype == burn.int64


@pytest.mark.parametrize("dtype", [burn.int8, burn.uint8, burn.float16])
def test_max_pool_of_other_dtypes(dtype: Any) -> None:
    x = (normal(2, 3, 6, 5) * 20).astype(dtype)
    actual = ops.max_pool(burn.from_numpy(x), kernel_size=3, padding=1).numpy()
    low = -np.inf if dtype == burn.float16 else np.iinfo(dtype).min
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=low)
    view = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    np.testing.assert_array_equal(actual, view.max((-2, -1)))
    assert actual.dtype == dtype


@pytest.mark.parametrize("name", CASES)
def test_max_pool_gradients(name: str) -> None:
    shape, static = CASES[name]
    check_gradient(lambda x: ops.max_pool(x, **static), normal(*shape))
    check_gradient(lambda x: ops.max_pool_with_indices(x, **static), normal(*shape))


def test_the_gradient_of_equal_maxima_goes_to_the_first() -> None:
    tape = burn.Autodiff(burn.Cpu())
    x = burn.from_numpy(np.ones((1, 1, 3, 4), np.float32), tape).require_grad()
    grads = ops.sum(ops.max_pool(x, kernel_size=2, stride=(1, 2))).backward()
    expected = [[1.0, 0, 1, 0], [1, 0, 1, 0], [0, 0, 0, 0]]
    assert grads[x].tolist() == [[expected]]


@pytest.mark.parametrize("include", [False, True])
@pytest.mark.parametrize("opset", [10, 11, 22])
@pytest.mark.parametrize("name", CASES)
def test_avg_pool_is_onnxruntimes(name: str, opset: int, include: bool) -> None:
    shape, static = CASES[name]
    if opset < 19 and ("dilated" in name or (name == "ceil" and include)):
        pytest.skip("before opset 19: no dilations, and ceil_mode counted otherwise")
    x = normal(*shape)
    attributes = onnx_attributes(shape, static)
    expected = run_node(
        "AveragePool", x, opset=opset, count_include_pad=int(include), **attributes
    )
    actual = ops.avg_pool(burn.from_numpy(x), count_include_pad=include, **static)
    np.testing.assert_allclose(actual.numpy(), expected[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("include", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_avg_pool_gradients(name: str, include: bool) -> None:
    shape, static = CASES[name]
    check_gradient(
        lambda x: ops.avg_pool(x, count_include_pad=include, **static), normal(*shape)
    )


@pytest.mark.parametrize("opset", [11, 18, 22])
@pytest.mark.parametrize("name", CASES)
def test_lp_pool(name: str, opset: int) -> None:
    shape, static = CASES[name]
    x = normal(*shape)
    check_gradient(lambda t: ops.lp_pool(t, p=3.0, **static), x, tol=1e-5)
    if opset < 18 and ("dilated" in name or "ceil_mode" in static):
        pytest.skip("before opset 18 there are no dilations and no ceil_mode")
    expected = run_node("LpPool", x, opset=opset, p=3, **onnx_attributes(shape, static))
    actual = ops.lp_pool(burn.from_numpy(x), p=3.0, **static)
    np.testing.assert_allclose(actual.numpy(), expected[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("shape", "size"), [((2, 3, 7), 3), ((2, 3, 8, 5), (4, 7)), ((1, 2, 4, 5, 6), 2)]
)
def test_adaptive_avg_pool(shape: Any, size: Any) -> None:
    x = normal(*shape)
    actual = ops.adaptive_avg_pool(burn.from_numpy(x), output_size=size).numpy()
    sizes = (size,) * (len(shape) - 2) if isinstance(size, int) else size
    expected = np.empty((*shape[:2], *sizes))
    for index in np.ndindex(*sizes):
        keys = [
            slice(i * n // k, -(-(i + 1) * n // k))
            for i, n, k in zip(index, shape[2:], sizes, strict=True)
        ]
        part = x[(slice(None), slice(None), *keys)]
        expected[(..., *index)] = part.mean(tuple(range(2, x.ndim)))
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)
    check_gradient(lambda t: ops.adaptive_avg_pool(t, output_size=size), x)


@pytest.mark.parametrize(
    ("shape", "size"),
    [
        *[((2, 3, 7), 3), ((2, 3, 8, 5), (4, 7)), ((1, 2, 4, 5, 6), 2)],
        *[((2, 3, 8, 6), (4, 3)), ((0, 3, 5, 5), (2, 3)), ((1, 2, 5, 5), (1, 1))],
    ],
)
def test_adaptive_max_pool(shape: Any, size: Any) -> None:
    x = np.round(normal(*shape))  # has equal maxima
    values, places = ops.adaptive_max_pool_with_indices(
        burn.from_numpy(x), output_size=size
    )
    sizes = (size,) * (len(shape) - 2) if isinstance(size, int) else size
    planes = np.arange(prod(shape[2:])).reshape(shape[2:])
    for index in np.ndindex(*shape[:2], *sizes):
        keys = tuple(
            slice(i * n // k, -(-(i + 1) * n // k))
            for i, n, k in zip(index[2:], shape[2:], sizes, strict=True)
        )
        part = x[(*index[:2], *keys)]
        assert values.numpy()[index] == part.max()
        assert places.numpy()[index] == planes[keys].reshape(-1)[part.argmax()]
    alone = ops.adaptive_max_pool(burn.from_numpy(x), output_size=size)
    np.testing.assert_array_equal(alone.numpy(), values.numpy())
    assert places.dtype == burn.int64 and places.shape == values.shape
    if x.size:
        distinct = normal(*shape)
        check_gradient(lambda t: ops.adaptive_max_pool(t, output_size=size), distinct)


@pytest.mark.parametrize("kind", [ops.max_pool, ops.avg_pool])
def test_the_memory_order_is_kept(kind: Any) -> None:
    x = np.moveaxis(normal(2, 8, 7, 5), -1, 1)
    for padding in (0, 1):
        actual = kind(burn.from_numpy(x), kernel_size=3, padding=padding)
        assert np.moveaxis(actual.numpy(), 1, -1).flags.c_contiguous


def test_halves_accumulate_in_float32() -> None:
    x = np.full((1, 1, 64, 65), 0.1, np.float16)
    actual = ops.avg_pool(burn.from_numpy(x), kernel_size=(64, 65)).item()
    assert actual == np.float16(0.1)
    assert ops.window_sum(burn.from_numpy(x), kernel_size=(64, 65)).item() == 416

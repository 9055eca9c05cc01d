"""Convolutions against onnxruntime and the gradient law."""

import sys
from typing import Any

import numpy as np
import pytest

import burn
from burn import ops
from burn.ops.window import pads_of
from tests.runtime.gradcheck import check_gradient
from tests.runtime.onnx_node import normal, run_node

# x, weight and the attributes of burn; pads are (before, after) for each axis.
CASES: dict[str, Any] = {
    "1d": ((2, 4, 11), (6, 4, 3), {"stride": 2, "padding": ((1, 2),)}),
    "2d": (
        (2, 3, 9, 7),
        (5, 3, 3, 2),
        {"stride": (2, 1), "padding": ((1, 0), (2, 1)), "dilation": (2, 3)},
    ),
    "3d": ((2, 2, 5, 6, 7), (3, 2, 2, 3, 2), {"stride": (1, 2, 3), "padding": 1}),
    "pointwise": ((2, 5, 4, 6), (7, 5, 1, 1), {}),
    "pointwise-stride": ((2, 5, 5, 6), (3, 5, 1, 1), {"stride": (2, 3)}),
    "deep": ((1, 3, 4, 3), (40, 3, 3, 2), {"padding": (1, 0)}),
    "grouped": (
        (3, 6, 7, 5),
        (4, 3, 3, 2),
        {"groups": 2, "stride": (1, 2), "padding": (1, 0)},
    ),
    "grouped-deep": ((1, 6, 4, 5), (60, 3, 3, 2), {"groups": 2}),
    "depthwise": (
        (2, 5, 8, 7),
        (5, 1, 3, 2),
        {"groups": 5, "padding": ((2, 1), (0, 1)), "dilation": (2, 1)},
    ),
    "depthwise-stride": (
        (2, 3, 8, 7),
        (6, 1, 3, 2),
        {"groups": 3, "stride": (2, 3), "padding": 1},
    ),
    "depthwise-many": ((2, 70, 6, 5), (140, 1, 3, 2), {"groups": 70, "padding": 1}),
}


def onnx_attributes(weight: Any, static: dict[str, Any]) -> dict[str, Any]:
    rank = len(weight) - 2
    pads = pads_of(static.get("padding", 0), rank)
    results: dict[str, Any] = {
        "pads": [p[0] for p in pads] + [p[1] for p in pads],
        "group": static.get("groups", 1),
    }
    for ours, theirs in (
        ("stride", "strides"),
        ("dilation", "dilations"),
        ("output_padding", "output_padding"),
    ):
        if ours in static:
            value = static[ours]
            results[theirs] = [value] * rank if isinstance(value, int) else list(value)
    return results


def arrays_of(x: Any, weight: Any, channels: int, dtype: Any = np.float32) -> Any:
    shapes = (x, weight, (channels,))
    return [normal(*s, seed=i).astype(dtype) for i, s in enumerate(shapes)]


@pytest.mark.parametrize("opset", [1, 11, 22])
@pytest.mark.parametrize("name", CASES)
def test_conv_is_onnxruntimes(name: str, opset: int) -> None:
    x, weight, static = CASES[name]
    arrays = arrays_of(x, weight, weight[0])
    actual = ops.conv(*map(burn.from_numpy, arrays), **static)
    attributes = onnx_attributes(weight, static)
    expected = run_node("Conv", *arrays, opset=opset, **attributes)[0]
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-4, atol=1e-4)
    assert actual.dtype == np.float32


@pytest.mark.parametrize("name", CASES)
def test_conv_gradients(name: str) -> None:
    x, weight, static = CASES[name]
    check_gradient(lambda *a: ops.conv(*a, **static), *arrays_of(x, weight, weight[0]))


TRANSPOSED: dict[str, Any] = {
    "1d": ((2, 4, 6), (4, 3, 3), {"stride": 3, "padding": 1, "output_padding": 2}),
    "2d": (
        (2, 3, 5, 4),
        (3, 5, 3, 2),
        {"stride": (2, 3), "padding": ((1, 0), (2, 1)), "output_padding": (1, 2)},
    ),
    "dilated": (
        (2, 3, 5, 4),
        (3, 5, 3, 2),
        {"dilation": (2, 3), "output_padding": (1, 2), "stride": (2, 3)},
    ),
    "3d": ((1, 2, 3, 4, 2), (2, 3, 2, 3, 2), {"stride": (1, 2, 3), "padding": 1}),
    "pointwise": ((2, 5, 4, 6), (5, 7, 1, 1), {"stride": 2}),
    "deep": ((1, 20, 3, 2), (20, 4, 3, 2), {"stride": 2}),
    "grouped": ((2, 6, 4, 5), (6, 2, 3, 2), {"groups": 3, "stride": (1, 2)}),
    "depthwise": ((2, 5, 6, 4), (5, 1, 3, 2), {"groups": 5, "padding": (2, 1)}),
    "depthwise-stride": (
        (2, 6, 5, 4),
        (6, 1, 3, 2),
        {"groups": 3, "stride": (2, 3), "output_padding": (1, 0)},
    ),
}


@pytest.mark.parametrize("opset", [1, 11, 22])
@pytest.mark.parametrize("name", TRANSPOSED)
def test_conv_transpose_is_onnxruntimes(name: str, opset: int) -> None:
    x, weight, static = TRANSPOSED[name]
    channels = weight[1] * static.get("groups", 1)
    arrays = arrays_of(x, weight, channels)
    actual = ops.conv_transpose(*map(burn.from_numpy, arrays), **static)
    attributes = onnx_attributes(weight, static)
    expected = run_node("ConvTranspose", *arrays, opset=opset, **attributes)[0]
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-4, atol=1e-4)


# onnxruntime refuses an output_padding that reaches the stride.
WIDE = ((2, 3, 5, 4), (3, 5, 3, 2), {"dilation": (2, 3), "output_padding": (1, 2)})


@pytest.mark.parametrize("case", [*TRANSPOSED.values(), WIDE])
def test_conv_transpose_gradients(case: Any) -> None:
    x, weight, static = case
    channels = weight[1] * static.get("groups", 1)
    check_gradient(
        lambda *a: ops.conv_transpose(*a, **static), *arrays_of(x, weight, channels)
    )


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    x, weight, bias = map(burn.from_numpy, arrays_of((3, 2, 9, 8), (5, 2, 3, 3), 5))
    wide: Any = {"stride": (2, 1), "padding": (1, 0)}

    def results() -> list[Any]:
        y = ops.conv(x, weight, bias, **wide)
        back = ops.conv_transpose(y, weight, **wide)
        grad = ops.conv_weight_grad(x, y, kernel_size=(3, 3), **wide)
        return [y.numpy(), back.numpy(), grad.numpy()]

    whole = results()
    for limit in (2000, 300):
        monkeypatch.setattr(sys.modules["burn.ops.conv"], "_LIMIT", limit)
        for part, expected in zip(results(), whole, strict=True):
            np.testing.assert_allclose(part, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_copied_windows_stay_in_the_cache(
    rank: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    conv = sys.modules["burn.ops.conv"]
    sizes: list[int] = []

    def product_into(out: Any, x: Any, y: Any) -> None:
        sizes.append(x.nbytes)
        np.matmul(x, y, out=out)

    monkeypatch.setattr(conv, "product_into", product_into)
    x, weight, _ = map(
        burn.from_numpy,
        arrays_of((2, 4, 3000, 10, 4)[: 2 + rank], (6, 2, 3, 3, 3)[: 2 + rank], 6),
    )
    actual = ops.conv.kernel(x.numpy(), weight.numpy(), padding=1, groups=2)
    assert max(sizes) <= conv._CACHED
    assert (
        sum(sizes) == 2 * 3000 * (1, 10, 40)[rank - 1] * 4 * 3**rank * x.dtype.itemsize
    )
    monkeypatch.setattr(conv, "_CACHED", conv._LIMIT)
    whole = ops.conv.kernel(x.numpy(), weight.numpy(), padding=1, groups=2)
    np.testing.assert_allclose(actual, whole, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [burn.float16, burn.bfloat16])
def test_halves_accumulate_in_float32(dtype: Any) -> None:
    x = burn.from_numpy(np.ones((1, 4096, 3, 2), dtype))
    weight = burn.from_numpy(np.full((2, 4096, 1, 1), 0.25, dtype))
    actual = ops.conv(x, weight)
    assert actual.dtype == dtype
    assert (actual.numpy() == 1024).all()


def test_the_result_is_channels_last_in_memory() -> None:
    x, weight, _ = map(burn.from_numpy, arrays_of((2, 3, 9, 8), (5, 3, 3, 3), 5))
    actual = ops.conv(x, weight)
    assert np.moveaxis(actual.numpy(), 1, -1).flags.c_contiguous


def test_an_empty_batch() -> None:
    x, weight, _ = map(burn.from_numpy, arrays_of((0, 3, 9, 8), (5, 3, 3, 3), 5))
    y = ops.conv(x, weight)
    assert y.shape == (0, 5, 7, 6)
    assert ops.conv_transpose(y, weight).shape == x.shape
    grad = ops.conv_weight_grad(x, y, kernel_size=(3, 3)).numpy()
    assert grad.shape == weight.shape and not grad.any()


def test_errors_say_what_was_expected() -> None:
    x, weight, _ = map(burn.from_numpy, arrays_of((2, 3, 4, 5), (5, 3, 6, 3), 5))
    with pytest.raises(ValueError, match="window of 6 .* to fit spatial axis 0 of 4"):
        ops.conv(x, weight)
    with pytest.raises(ValueError, match="6 channels .* got 3"):
        ops.conv(x, weight, groups=2)
    with pytest.raises(ValueError, match="one rank"):
        ops.conv(x, weight.reshape(5, 3, 18))
    with pytest.raises(ValueError, match="2 values of stride"):
        ops.conv(x, weight, stride=(1, 2, 3), padding=4)


@pytest.mark.parametrize("padding", ["same_upper", "same_lower"])
@pytest.mark.parametrize("extents", [(9, 7), (8, 4)])
def test_same_padding_is_that_of_onnxruntime(
    padding: Any, extents: tuple[int, int]
) -> None:
    x, weight = normal(2, 3, *extents), normal(4, 3, 3, 4)
    steps: Any = {"stride": (2, 3)}  # onnxruntime has no dilation here
    expected = run_node(
        "Conv",
        x,
        weight,
        auto_pad=padding.upper(),
        strides=[2, 3],
    )
    actual = ops.conv(burn.tensor(x), burn.tensor(weight), padding=padding, **steps)
    np.testing.assert_allclose(actual.numpy(), expected[0], rtol=1e-4, atol=1e-5)
    check_gradient(
        lambda a, b: ops.conv(a, b, padding=padding, **steps), x, weight, order=1
    )


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_weight_that_is_not_finite_reaches_its_own_results(
    value: float, stride: int
) -> None:
    x, weight = normal(2, 3, 4, 2), normal(3, 1, 1, 3, seed=1)
    finite = ops.conv_transpose.kernel(x, weight, groups=3, stride=stride)
    weight[2, 0, 0, 2] = value
    out = ops.conv_transpose.kernel(x, weight, groups=3, stride=stride)
    reached = ~np.isfinite(out)
    taps = np.zeros_like(weight)
    taps[2, 0, 0, 2] = 1
    ones = np.ones_like(x)
    expected = ops.conv_transpose.kernel(ones, taps, groups=3, stride=stride) > 0
    np.testing.assert_array_equal(reached, expected)
    np.testing.assert_array_equal(out[~reached], finite[~reached])

"""Resampling against ONNX Runtime over its attributes, and its gradient."""

from functools import partial
from typing import Any

import numpy as np
import pytest

import burn
from burn import ops
from tests.runtime.gradcheck import check_gradient
from tests.runtime.onnx_node import by_reference, run_node as run_opset

run_node = partial(run_opset, opset=21)

RNG = np.random.default_rng(21)
X = RNG.standard_normal((2, 3, 5, 7)).astype(np.float32)
COORDINATES = ["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel"] + [
    "align_corners",
    "pytorch_align_corners",
    "asymmetric",
]
TRANSFORMATION = "coordinate_transformation_mode"
NEAREST = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
UP = np.array([1, 1, 1.7, 2.3], np.float32)
DOWN = np.array([1, 1, 0.45, 0.6], np.float32)
MIXED = np.array([2, 3, 8, 2])


def check(scales: Any, sizes: Any, roi: Any = None, x: Any = X, **attrs: Any) -> None:
    options = {k: int(v) if isinstance(v, bool) else v for k, v in attrs.items()}
    reference = run_node
    if options.get(TRANSFORMATION) == "pytorch_align_corners":
        options[TRANSFORMATION] = "align_corners"
    elif sizes is None and options.get(TRANSFORMATION) == "align_corners":
        # onnxruntime aligns the corners of rounded extents; ONNX's own cases
        # (resize_downsample_scales_linear_align_corners) those of scaled ones.
        reference = partial(by_reference, cubic_coeff_a=-0.75)
    (expected,) = reference("Resize", x, roi, scales, sizes, opset=19, **options)
    actual = ops.resize(burn.tensor(x), scales, sizes, roi, **attrs)
    assert actual.dtype == x.dtype
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("coordinate", COORDINATES)
@pytest.mark.parametrize("nearest", NEAREST)
def test_nearest(coordinate: str, nearest: str) -> None:
    attrs = {"coordinate_transformation_mode": coordinate, "nearest_mode": nearest}
    check(UP, None, **attrs)
    check(DOWN, None, **attrs)
    check(None, MIXED, **attrs)
    check(None, MIXED, x=(X * 9).astype(np.int32), **attrs)
    check_gradient(lambda x: ops.resize(x, UP, **attrs), X)


@pytest.mark.parametrize("coordinate", COORDINATES)
@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("exclude_outside", [False, True])
def test_smooth(
    coordinate: str, mode: str, antialias: bool, exclude_outside: bool
) -> None:
    attrs: dict[str, Any] = {
        "coordinate_transformation_mode": coordinate,
        "mode": mode,
        "antialias": antialias,
    }
    if mode == "cubic":
        attrs |= {"cubic_coeff_a": -0.5, "exclude_outside": exclude_outside}
    check(UP, None, **attrs)
    check(DOWN, None, **attrs)
    check(None, MIXED, **attrs)
    check_gradient(lambda x: ops.resize(x, DOWN, **attrs), X[:1])
    check_gradient(lambda x: ops.resize(x, None, MIXED, **attrs), X)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_crop_and_resize(mode: str) -> None:
    roi = np.array([0, 0, -0.2, 0.1, 1, 1, 0.8, 1.3], np.float32)
    attrs = {
        "coordinate_transformation_mode": "tf_crop_and_resize",
        "mode": mode,
        "extrapolation_value": 2.5,
    }
    check(None, np.array([2, 3, 4, 9]), roi, **attrs)
    check(UP, None, roi, **attrs)
    check_gradient(lambda x: ops.resize(x, UP, None, roi, **attrs), X)


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
def test_aspect_ratio_and_axes(policy: str) -> None:
    attrs = {"keep_aspect_ratio_policy": policy, "mode": "linear", "axes": [3, 2]}
    check(None, np.array([11, 10]), **attrs)
    check(None, np.array([3, 4]), **attrs)
    check(UP[[3, 2]], None, mode="cubic", axes=[3, 2])


def test_integers_are_clamped_not_wrapped() -> None:
    x = np.array([[[[0, 255, 0, 255, 255]]]], np.uint8)
    actual = ops.resize(burn.tensor(x), [1, 1, 1, 3.0], mode="cubic").numpy()
    smooth = ops.resize(burn.tensor(x.astype(float)), [1, 1, 1, 3.0], mode="cubic")
    np.testing.assert_array_equal(actual, smooth.numpy().clip(0, 255).astype(np.uint8))


def test_volumes_and_halves() -> None:
    x = RNG.standard_normal((1, 2, 3, 4, 5))
    sizes = (1, 2, 6, 3, 8)
    actual = ops.resize(burn.tensor(x.astype(np.float16)), None, sizes, mode="linear")
    exact = ops.resize(burn.tensor(x), None, sizes, mode="linear")
    assert actual.dtype == burn.float16
    np.testing.assert_allclose(actual.numpy(), exact.numpy(), atol=4e-3)
    (expected,) = run_node(
        "Resize", x.astype(np.float32), None, None, np.array(sizes), mode="linear"
    )
    np.testing.assert_allclose(exact.numpy(), expected, atol=1e-5)


def test_errors_name_what_is_wrong() -> None:
    x = burn.tensor(X)
    with pytest.raises(ValueError, match="scales or sizes"):
        ops.resize(x)
    with pytest.raises(ValueError, match="'area'"):
        ops.resize(x, UP, mode="area")
    with pytest.raises(ValueError, match="'middle'"):
        ops.resize(x, UP, coordinate_transformation_mode="middle")


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize(
    ("extent", "scale", "expected"),
    [(10, 0.7, 7), (20, 0.9, 18), (5, 1.4, 7), (30, 2.3, 69), (100, 0.29, 29)],
)
def test_extents_are_rounded_down_after_a_product_in_float32(
    mode: str, extent: int, scale: float, expected: int
) -> None:
    x = RNG.standard_normal((1, 1, extent, 2)).astype(np.float32)
    scales = np.array([1, 1, scale, 1], np.float32)
    assert ops.resize(burn.tensor(x), scales, mode=mode).shape[2] == expected
    check(scales, None, x=x, mode=mode, **{TRANSFORMATION: "asymmetric"})

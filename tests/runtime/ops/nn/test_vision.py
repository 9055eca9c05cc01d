"""Sampling, regions, windows and selection where the laws do not reach."""

import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import burn
from burn import ops
from tests.runtime.gradcheck import check_gradient
from tests.runtime.onnx_node import by_reference

RNG = np.random.default_rng(34)
X = RNG.standard_normal((2, 3, 5, 4)).astype(np.float32)
NONE, ONE = np.zeros(0, np.int64), np.zeros(1, np.int64)
MODES = ["nearest", "linear", "cubic"]
PADDINGS = ["zeros", "border", "reflection"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("aligned", [False, True])
def test_points_far_away_read_what_lies_outside(
    mode: str, padding: str, aligned: bool
) -> None:
    grid = np.full((2, 1, 1, 2), 1e30, np.float32)
    out = ops.grid_sample(
        X, grid, mode=mode, padding_mode=padding, align_corners=aligned
    )
    assert np.isfinite(out.numpy()).all()
    if padding != "reflection":
        expected = X[:, :, -1:, -1:] if padding == "border" else X[:, :, :1, :1] * 0
        np.testing.assert_allclose(out.numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize("offset", [np.inf, -np.inf, 1e30])
def test_an_offset_to_infinity_reads_zeros(offset: float) -> None:
    x, weight = np.ones((1, 2, 4, 4), np.float32), np.ones((1, 2, 1, 1), np.float32)
    moves = np.zeros((1, 2, 4, 4), np.float32)
    moves[0, 1, 2, 3] = offset
    actual = ops.deform_conv(*map(burn.from_numpy, (x, weight, moves))).numpy()
    expected = np.full((1, 1, 4, 4), 2.0, np.float32)
    expected[0, 0, 2, 3] = 0
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_points_beside_an_image_do_not_read_it(bad: float) -> None:
    x = np.full((1, 1, 3, 3), bad, np.float32)
    rois = np.array([[10, 10, 12, 12]], np.float32)
    boxes = burn.from_numpy(rois), burn.tensor([0])
    actual = ops.roi_align(burn.from_numpy(x), *boxes, output_size=(2, 2)).numpy()
    np.testing.assert_array_equal(actual, np.zeros((1, 1, 2, 2)))


def test_what_is_not_a_number_stays_none() -> None:
    grid = np.array([[[[np.nan, 0.1]]]] * 2, np.float32)
    assert np.isnan(ops.grid_sample(X, grid, padding_mode="border").numpy()).all()


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("mode", MODES)
def test_halves_are_sampled_in_float32(dtype: Any, mode: str) -> None:
    x, grid = X.astype(dtype), RNG.uniform(-1.2, 1.2, (2, 3, 3, 2)).astype(dtype)
    actual = ops.grid_sample(x, grid, mode=mode)
    wide = ops.grid_sample(x.astype(np.float32), grid.astype(np.float32), mode=mode)
    assert actual.dtype == dtype
    np.testing.assert_array_equal(actual.numpy(), wide.numpy().astype(dtype))


def test_text_and_truth_are_sampled_at_the_nearest() -> None:
    grid = np.array([[[[-1, -1], [0.4, 0.4], [3, 0]]]], np.float32)
    text = np.array(["a", "b", "c", "d"], object).reshape(1, 1, 2, 2)
    actual = ops.grid_sample(text, grid, mode="nearest").numpy()
    assert actual.ravel().tolist() == ["a", "d", ""]
    truth = ops.grid_sample(text == "d", grid, mode="nearest").numpy()
    assert truth.dtype == np.bool_
    assert truth.ravel().tolist() == [False, True, False]


def test_cubic_of_a_volume() -> None:
    x = RNG.standard_normal((1, 2, 4, 3, 5)).astype(np.float32)
    grid = RNG.uniform(-0.9, 0.9, (1, 2, 2, 3, 3)).astype(np.float32)
    (expected,) = by_reference("GridSample", x, grid, opset=20, mode="cubic")
    actual = ops.grid_sample(x, grid, mode="cubic")
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-4, atol=1e-5)


def test_gradients_have_gradients() -> None:
    """Taps are linear in elements and weights, so each gradient is of the others."""
    index = RNG.integers(-1, 20, (2, 4, 6))
    weight = RNG.standard_normal((2, 4, 6))
    x, grad = X.reshape(2, 3, 20), RNG.standard_normal((2, 3, 6))
    check_gradient(lambda a, w: ops.gather_sum(a, index, w), x, weight)
    check_gradient(lambda g, w: ops.scatter_sum(g, index, w, size=20), grad, weight)
    check_gradient(lambda g, a: ops.gather_dot(g, a, index), grad, x)
    check_gradient(
        lambda a: ops.unfold(a, (2, 3), stride=(2, 1), padding=1, dilation=(1, 2)), X
    )


@pytest.mark.parametrize(("axis", "step"), [(-1, 1), (2, 2), (-2, 3), (0, 1)])
def test_slices_along_an_axis(axis: int, step: int) -> None:
    windows = np.lib.stride_tricks.sliding_window_view(X, 2, axis)
    keys: list[slice] = [slice(None)] * X.ndim
    keys[axis] = slice(None, None, step)
    out = ops.unfold_axis(X, size=2, axis=axis, step=step)
    np.testing.assert_array_equal(out.numpy(), windows[tuple(keys)])
    check_gradient(lambda x: ops.unfold_axis(x, size=2, axis=axis, step=step), X)
    extent, at = X.shape[axis], axis % X.ndim
    check_gradient(lambda x: ops.fold_axis(x, extent, axis=at, step=step), out.numpy())


@pytest.mark.parametrize("size", [0, 7, 1_000_000_000])
def test_slices_that_are_longer_than_the_axis(size: int) -> None:
    with pytest.raises(ValueError, match="elements for a slice"):
        ops.unfold_axis(burn.tensor(np.ones((2, 6))), size=size)


def test_no_channels_to_sum() -> None:
    x, grad = np.zeros((2, 0, 4), np.float32), np.zeros((2, 0, 3), np.float32)
    index, weight = np.zeros((2, 1, 3), np.int64), np.ones((2, 1, 3), np.float32)
    assert ops.gather_sum(x, index, weight).shape == (2, 0, 3)
    assert ops.scatter_sum(grad, index, weight, size=4).shape == (2, 0, 4)
    np.testing.assert_array_equal(ops.gather_dot(grad, x, index).numpy(), 0)


def test_nothing_to_do() -> None:
    none = np.zeros((0, 4), np.float32)
    assert ops.roi_align(X, none, NONE, output_size=(2, 3)).shape == (0, 3, 2, 3)
    rois = np.zeros((0, 5), np.float32)
    assert ops.max_roi_pool(X, rois, output_size=(2, 3)).shape == (0, 3, 2, 3)
    assert ops.grid_sample(X, np.zeros((2, 0, 3, 2))).shape == (2, 3, 0, 3)
    scores = np.zeros((1, 2, 0), np.float32)
    assert ops.non_max_suppression(none[None], scores, 5).shape == (0, 3)
    assert [len(y) for y in ops.unique(none, axis=0)] == [0, 0, 0, 0]
    assert [len(y) for y in ops.unique(none)] == [0, 0, 0, 0]


def test_boxes_are_selected_over_many_blocks() -> None:
    corner = RNG.uniform(0, 3, (1, 700, 2))
    boxes = np.concatenate([corner, corner + 0.2], -1).astype(np.float32)
    scores = RNG.random((1, 1, 700)).astype(np.float32)
    actual = ops.non_max_suppression(boxes, scores, 700, 0.3).numpy()[:, 2]
    kept: list[int] = []
    for box in np.argsort(-scores[0, 0]):
        if all(_overlap(boxes[0, box], boxes[0, other]) <= 0.3 for other in kept):
            kept.append(int(box))
    assert actual.tolist() == kept
    assert 100 < len(kept) < 600


@pytest.mark.parametrize("block", [1, 8, 64])
@pytest.mark.parametrize(
    "limit, threshold", [(0, None), (1, None), (4, 0.5), (60, 0.2)]
)
def test_boxes_of_several_images_and_classes(
    block: int, limit: int, threshold: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("burn.ops.selection._BLOCK", block)  # pairs at once, or blocks
    corner = RNG.uniform(0, 2, (2, 60, 2))
    boxes = np.concatenate([corner, corner + 0.3], -1).astype(np.float32)
    boxes[1, 7] = boxes[1, 8]
    scores = RNG.random((2, 3, 60)).astype(np.float32).round(1)  # some are equal
    scores[0, 1, 5], scores[1, 0, :] = np.nan, 0.1
    actual = ops.non_max_suppression(boxes, scores, limit, 0.1, threshold).numpy()
    expected = []
    for image, label in np.ndindex(2, 3):
        kept: list[int] = []
        rating = scores[image, label]
        for box in np.argsort(-rating, kind="stable").tolist():
            others = (_overlap(boxes[image, box], boxes[image, o]) for o in kept)
            above = threshold is None or rating[box] > threshold
            if len(kept) < limit and above and all(o <= 0.1 for o in others):
                kept.append(box)
        expected += [[image, label, box] for box in kept]
    assert actual.dtype == np.int64
    assert actual.tolist() == expected
    assert (len(expected) > 0) == (limit > 0)
    compiled = burn.compile(ops.non_max_suppression)
    given = (burn.from_numpy(boxes), burn.from_numpy(scores), limit, 0.1, threshold)
    for _ in range(3):
        assert compiled(*given).numpy().tolist() == expected


def _overlap(a: Any, b: Any) -> Any:
    height, width = np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2])
    common = max(height, 0) * max(width, 0)
    return common / (np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - common)


def test_narrow_and_complex_elements_differ_too() -> None:
    for dtype in (ml_dtypes.bfloat16, ml_dtypes.int4, np.float16, np.uint64):
        values, first, inverse, counts = ops.unique(np.array([3, 1, 3], dtype))
        assert values.dtype == dtype
        assert values.numpy().tolist() == [1, 3]
        assert [v.numpy().tolist() for v in (first, inverse, counts)] == [
            [1, 0],
            [1, 0, 1],
            [1, 2],
        ]
    pair = np.array([[1 + 1j, 1], [1 + 1j, 1]])
    assert ops.unique(pair, axis=1)[0].numpy().tolist() == [[1, 1 + 1j], [1, 1 + 1j]]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.bool_])
@pytest.mark.parametrize("shape", [(1,), (7,), (2, 3, 4), (0,)])
def test_unique_elements_are_those_of_numpy(dtype: Any, shape: tuple[int, ...]) -> None:
    x = RNG.integers(-2, 2, shape).astype(dtype)
    if x.size > 3 and np.dtype(dtype).kind == "f":
        x.reshape(-1)[[0, 2]] = np.nan
        x.reshape(-1)[3] = -0.0
    expected = np.unique(x, True, True, True)
    for actual, values in zip(ops.unique(x), expected, strict=True):
        np.testing.assert_array_equal(actual.numpy(), values.reshape(-1))


@pytest.mark.parametrize("threshold", [-0.5, 0.0, 0.4, 0.6])
def test_boxes_without_an_area_meet_none(threshold: float) -> None:
    box = [0.0, 0.0, 1.0, 1.0]
    boxes = np.array([box, [0.5, 0.5, 0.5, 0.5], [0, 0, np.nan, 1], box, [0, 0, 2, 1]])
    scores = np.array([[[5.0, 4.0, 3.0, 2.0, 1.0]]], np.float32)
    given = (boxes[None].astype(np.float32), scores, 9, threshold)
    kept = ops.non_max_suppression(*given).numpy()[:, 2].tolist()
    assert kept == ([0, 1, 2] if threshold < 0.5 else [0, 1, 2, 4])


def test_an_image_needs_pillow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImportError, match=r"Pillow.*burn-runtime\[images\]"):
        ops.decode_image(burn.tensor(np.zeros(9, np.uint8)))


def test_errors_name_what_is_wrong() -> None:
    grid = np.zeros((2, 1, 1, 2), np.float32)
    with pytest.raises(ValueError, match="'bilinear'"):
        ops.grid_sample(X, grid, mode="bilinear")
    with pytest.raises(ValueError, match="'wrap'"):
        ops.grid_sample(X, grid, padding_mode="wrap")
    with pytest.raises(ValueError, match="6 windows"):
        ops.fold(np.zeros((1, 4, 5)), (3, 4), (2, 2))
    with pytest.raises(ValueError, match="'sum'"):
        ops.roi_align(X, np.zeros((1, 4)), ONE, output_size=(1, 1), mode="sum")
    with pytest.raises(ValueError, match="'CMYK'"):
        ops.decode_image(np.zeros(9, np.uint8), pixel_format="CMYK")


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("taps", [1, 4])
@pytest.mark.parametrize("count", [7, 20_000])
def test_gather_sum_of_few_and_of_many_elements(
    batch: int, taps: int, count: int
) -> None:
    """Few are read together, many tap by tap; what is outside is not even read."""
    x = RNG.standard_normal((batch, 2, 11)).astype(np.float32)
    x[:, :, 0] = np.inf
    index = RNG.integers(-2, 11, (batch, taps, count))
    index[index == 0] = -1
    weight = RNG.standard_normal((batch, taps, count)).astype(np.float32)
    actual = ops.gather_sum(x, index, weight).numpy()
    expected = np.zeros((batch, 2, count))
    for n in range(batch):
        for k in range(taps):
            terms = x[n][:, np.maximum(index[n, k], 1)] * weight[n, k]
            expected[n] += np.where(index[n, k] < 0, 0, terms)
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)
    plain = ops.gather_sum(x, index).numpy()
    ones = ops.gather_sum(x, index, np.ones_like(weight)).numpy()
    np.testing.assert_allclose(plain, ones, rtol=1e-6, atol=1e-6)

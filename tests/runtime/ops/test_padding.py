"""Padding, tiling, stacking and turning round by value and by gradient."""

from functools import partial
from math import prod
from typing import Any

import numpy as np
import pytest

import burn
from burn import ops
from tests.runtime.gradcheck import check_gradient
from tests.runtime.onnx_node import run_node as run_opset

run_node = partial(run_opset, opset=21)

RNG = np.random.default_rng(4)
X = RNG.standard_normal((4, 5, 6)).astype(np.float32)


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
@pytest.mark.parametrize(
    ("pads", "axes"),
    [([1, 0, 2, 3, 4, 1], None), ([2, 3], [-1]), ([0, 3, 1, 2], [2, 0])],
)
def test_pad(mode: str, pads: list[int], axes: list[int] | None) -> None:
    value = np.array(1.5, np.float32) if mode == "constant" else None
    given = None if axes is None else np.array(axes)
    inputs = [X, np.array(pads), value, given]
    (expected,) = run_node("Pad", *inputs, mode=mode)
    actual = ops.pad(
        burn.tensor(X),
        burn.tensor(pads),
        1.5,
        None if axes is None else axes,
        mode=mode,
    )
    np.testing.assert_array_equal(actual.numpy(), expected)
    check_gradient(lambda x: ops.pad(x, pads, 0.0, axes, mode=mode), X)


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
def test_negative_pads_crop(mode: str) -> None:
    pads = [-1, 2, -2, 1, -1, -1]
    cropped = X[1:, :4, 2:5]
    widths = [(0, 1), (2, 0), (0, 0)]
    options: Any = {"constant_values": 0.5} if mode == "constant" else {}
    actual = ops.pad(burn.tensor(X), pads, 0.5, mode=mode)
    np.testing.assert_array_equal(
        actual.numpy(), np.pad(cropped, widths, mode, **options)  # type: ignore[call-overload]
    )
    check_gradient(lambda x: ops.pad(x, pads, 0.0, mode=mode), X)


@pytest.mark.parametrize(
    ("extent", "pads"),
    [
        (0, [-1, 1]),
        (1, [-2, 2]),
        (2, [3, -2]),
        (3, [4, -5]),
        (2, [-1, -1]),
        (0, [2, 0]),
    ],
)
def test_crops_of_more_than_there_is(extent: int, pads: list[int]) -> None:
    x = X[0, 0, :extent]
    value = np.array(9, np.float32)
    (expected,) = run_node("Pad", x, np.array(pads), value)
    actual = ops.pad(burn.tensor(x), pads, 9.0)
    np.testing.assert_array_equal(actual.numpy(), expected)
    check_gradient(lambda x, value: ops.pad(x, pads, value), x, value)


@pytest.mark.parametrize("mode", ["constant", "edge"])
def test_less_than_nothing_is_left(mode: str) -> None:
    with pytest.raises(ValueError, match="expected 6 elements or fewer to crop"):
        ops.pad(burn.tensor(X), [-4, -3], 0.0, [-1], mode=mode)


def test_gradient_of_the_value_padded_with() -> None:
    pads = [1, 0, 2, 3, -4, 1]
    check_gradient(lambda x, value: ops.pad(x, pads, value), X, np.array(0.3))


def test_reflect_further_than_the_array_reaches() -> None:
    x = X[0, 0, :3]
    actual = ops.pad(burn.tensor(x), [7, 5], mode="reflect")
    np.testing.assert_array_equal(actual.numpy(), np.pad(x, (7, 5), "reflect"))


def test_pad_says_what_is_wrong() -> None:
    with pytest.raises(ValueError, match="expected 6 pads, got 2"):
        ops.pad(burn.tensor(X), [1, 1])
    with pytest.raises(ValueError, match="'mirror'"):
        ops.pad(burn.tensor(X), [1, 1], 0, [0], mode="mirror")


def test_tile() -> None:
    (expected,) = run_node("Tile", X, np.array([2, 1, 3]))
    actual = ops.tile(burn.tensor(X), burn.tensor([2, 1, 3]))
    np.testing.assert_array_equal(actual.numpy(), expected)
    check_gradient(lambda x: ops.tile(x, (2, 1, 3)), X)
    check_gradient(lambda x: ops.tile(x, (3, 2, 1, 1)), X)


@pytest.mark.parametrize("axis", [0, 2, -1])
def test_stack(axis: int) -> None:
    xs = [X, X * 2, X - 1]
    actual = ops.stack([burn.tensor(x) for x in xs], axis)
    np.testing.assert_array_equal(actual.numpy(), np.stack(xs, axis))
    check_gradient(lambda *tensors: ops.stack(list(tensors), axis), *xs)


def test_flip_and_roll() -> None:
    x = burn.tensor(X)
    np.testing.assert_array_equal(ops.flip(x, (0, -1)).numpy(), np.flip(X, (0, 2)))
    check_gradient(lambda x: ops.flip(x, 1), X)
    np.testing.assert_array_equal(
        ops.roll(x, (2, -1), (0, 2)).numpy(), np.roll(X, (2, -1), (0, 2))
    )
    check_gradient(lambda x: ops.roll(x, (2, -1), (0, 2)), X)


@pytest.mark.parametrize("k", [-2, 0, 3])
@pytest.mark.parametrize("upper", [True, False])
def test_trilu(k: int, upper: bool) -> None:
    (expected,) = run_node("Trilu", X, np.array(k), upper=int(upper))
    actual = ops.trilu(burn.tensor(X), burn.tensor(k), upper=upper)
    np.testing.assert_array_equal(actual.numpy(), expected)
    check_gradient(lambda x: ops.trilu(x, k, upper=upper), X)


@pytest.mark.parametrize("batch_axis", [0, 1])
def test_reverse_sequence(batch_axis: int) -> None:
    axes = {"batch_axis": batch_axis, "time_axis": 1 - batch_axis}
    lengths = np.array([1, 3, 0, 4, 2])[: X.shape[batch_axis]]
    (expected,) = run_node("ReverseSequence", X, np.maximum(lengths, 1), **axes)
    actual = ops.reverse_sequence(burn.tensor(X), np.maximum(lengths, 1), **axes)
    np.testing.assert_array_equal(actual.numpy(), expected)
    check_gradient(lambda x: ops.reverse_sequence(x, lengths, **axes), X)


@pytest.mark.parametrize("axis", range(-3, 3))
@pytest.mark.parametrize("shift", [-7, -1, 0, 2, 4, 9])
def test_roll_along_one_axis_is_numpys(axis: int, shift: int) -> None:
    x = np.arange(60, dtype=np.float32).reshape(3, 4, 5).transpose(2, 0, 1)
    actual = ops.roll(burn.from_numpy(x), shift, axis).numpy()
    np.testing.assert_array_equal(actual, np.roll(x, shift, axis))


@pytest.mark.parametrize(
    ("shape", "shifts", "axes"),
    [
        ((1, 6, 8, 12), (-1, 1), (2, 3)),
        ((3, 4, 5), (1, 2, 3), (0, 1, 2)),
        ((3, 4), (4, 1), (1, 0)),  # a whole extent
        ((3, 4), (3, 4), (0, 1)),
        ((1, 4), (3, 1), (0, 1)),
        ((4, 4), 2, (0, 1)),
        ((0, 4), (1, 1), (0, 1)),
    ],
)
@pytest.mark.parametrize("generated", [False, True])
def test_rolls_along_several_axes_are_numpys(
    shape: tuple[int, ...], shifts: Any, axes: Any, generated: bool
) -> None:
    x = np.arange(prod(shape), dtype=np.float32).reshape(shape)
    if generated:
        pytest.importorskip("llvmlite")
    plan = burn.compile(lambda x: ops.roll(x * 2.0, shifts, axes), generated=generated)
    for turn in range(3):
        np.testing.assert_array_equal(
            plan(burn.from_numpy(x + turn)).numpy(),
            np.roll((x + turn) * 2.0, shifts, axes),
        )


@pytest.mark.parametrize("axis", range(-3, 3))
def test_stack_is_numpys(axis: int) -> None:
    xs = [np.arange(6.0).reshape(2, 3) + i for i in range(3)]
    actual = ops.stack([burn.from_numpy(x) for x in xs], axis).numpy()
    np.testing.assert_array_equal(actual, np.stack(xs, axis))


def test_stacks_are_of_one_shape() -> None:
    xs = [burn.from_numpy(np.ones(shape)) for shape in ((2, 3), (2, 4))]
    with pytest.raises(ValueError, match="expected one shape"):
        ops.stack(xs, 1)


def test_axes_that_are_squeezed_have_one_element() -> None:
    x = burn.from_numpy(np.ones((2, 1, 5), np.float32))
    assert ops.squeeze(x, 1).shape == (2, 5)
    with pytest.raises(ValueError, match=r"extent 1 on axis 2 of float32\[2, 1, 5\]"):
        ops.squeeze(x, (1, -1))

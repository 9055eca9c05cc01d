"""Plans write in place only where nothing else is read from there meanwhile."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import burn
from burn import ops
from burn.backend.cpu.onednn.binding import engine
from tests.runtime.onednn import assert_close, normal

MATRIX = burn.Parameter(burn.from_numpy(normal(64, 64, seed=1)))
FILTERS = burn.Parameter(burn.from_numpy(normal(16, 16, 3, 3, seed=2)))
SQUARE = burn.Parameter(burn.from_numpy(normal(16, 16, seed=3)))


def channels_first(y: Any) -> Any:
    return ops.permute(y, (0, 3, 1, 2))


def norm_of_channels(x: Any) -> Any:
    """A norm whose statistics are pixels of what it normalizes."""
    y = ops.tanh(x) * 2.0
    parts = (y[0, 0, 0], ops.abs(y[0, 0, 1]), y[0, 1, 0], y[0, 0, 2])
    return ops.batch_norm(channels_first(y), *parts)


def bias_of_residual(x: Any) -> Any:
    y = ops.tanh(x)
    return ops.relu(ops.linear(x, MATRIX, y[0]) + y)


def bias_of_residual_image(x: Any) -> Any:
    y = ops.tanh(x)
    image = channels_first(x * 0.5)
    return ops.conv(image, FILTERS, y[0, 0, 0], padding=1) + channels_first(y)


def rows_of_itself(x: Any) -> Any:
    y = ops.tanh(x) * 2.0
    return ops.layer_norm(y, y[0], y[1])


def residual(change: Callable[[Any], Any], other: Callable[[Any], Any]) -> Any:
    """A convolution of ``change``, with ``other`` added."""

    def function(x: Any) -> Any:
        y = change(x)
        return ops.relu(ops.conv(y, FILTERS, padding=1) + other(y))

    return function


IMAGES, ROWS = (2, 16, 9, 9), (300, 64)
#: Functions whose operands are in one memory that is free afterwards, and the shape.
ALIASED: dict[str, tuple[Any, tuple[int, ...]]] = {
    "norm of channels": (norm_of_channels, (2, 5, 6, 16)),
    "norm of rows": (rows_of_itself, (70, 16)),
    "bias": (bias_of_residual, ROWS),
    "bias of images": (bias_of_residual_image, (2, 40, 40, 16)),
    "weight": (
        lambda x: ops.linear(x, (y := ops.tanh(x))[:64]) + y,
        ROWS,
    ),
    "operand": (residual(ops.tanh, lambda y: y), IMAGES),
    "turned operand": (residual(ops.tanh, lambda y: ops.flip(y, 3)), IMAGES),
    "transposed operand": (
        residual(ops.tanh, lambda y: ops.transpose(y, 2, 3)),
        IMAGES,
    ),
    "repeated operand": (
        residual(ops.tanh, lambda y: ops.expand(y[:, :, :1, :1], IMAGES)),
        IMAGES,
    ),
    "half of a sum": (
        residual(
            lambda x: ops.concat([x, x], 1)[:, ::2],
            lambda y: ops.tanh(ops.concat([y, y], 1))[:, 3:19],
        ),
        IMAGES,
    ),
    "product": (lambda x: ops.relu((y := ops.tanh(x)) @ y + y), (3, 9, 9)),
    "product of another order": (
        lambda x: ops.relu((y := ops.tanh(x)) @ y + ops.transpose(y, 1, 2)),
        (3, 9, 9),
    ),
    "row for all": (
        lambda x: ops.linear(x, MATRIX) + ops.expand(ops.tanh(x)[:1], ROWS),
        ROWS,
    ),
    "sum with itself": (lambda x: (y := ops.tanh(x)) + y, (7, 9)),
    "sum with views": (
        lambda x: (y := ops.tanh(x)) - ops.flip(y, 0) * ops.transpose(y, 0, 1),
        (9, 9),
    ),
    "activations of parts": (
        lambda x: [ops.gelu(y := x * 2.0), ops.tanh(y[1:]), ops.silu(y[:, ::2])],
        (5, 9),
    ),
    "softmax of parts": (
        lambda x: [ops.softmax(y := x * 2.0), ops.softmax(y[1:]), y],
        (5, 9),
    ),
    "given and returned": (
        lambda x: [x, ops.tanh(x), x, ops.transpose(x, 0, 1), x[1:], x + x],
        (5, 9),
    ),
}


@pytest.mark.parametrize("name", ALIASED)
@pytest.mark.parametrize("numpy", [False, True])
def test_operands_in_one_memory(name: str, numpy: bool) -> None:
    function, shape = ALIASED[name]
    compiled = burn.compile(function)
    for seed in range(3):
        x = burn.from_numpy(normal(*shape, seed=seed))
        before = x.numpy().copy()
        if numpy:
            with engine.numpy_only():
                actual = compiled(x)
        else:
            actual = compiled(x)
        with engine.numpy_only():
            expected = function(x)
        np.testing.assert_array_equal(x.numpy(), before)
        for a, b in zip(leaves(actual), leaves(expected), strict=True):
            assert_close(a.numpy(), b.numpy(), 1e-4)
    assert not compiled.notes


def leaves(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def test_what_is_kept_of_a_run_stays() -> None:
    compiled = burn.compile(lambda x: [x @ SQUARE, ops.transpose(x, 0, 1), x])
    runs = []
    for seed in range(4):
        x = burn.from_numpy(normal(7, 16, seed=seed))
        actual = compiled(x)
        runs.append((actual, [y.numpy().copy() for y in actual]))
        actual[0].data[...] = 5.0  # memory of its own: nobody else sees it
    for actual, copies in runs:
        for y, copy in zip(actual[1:], copies[1:], strict=True):
            np.testing.assert_array_equal(y.numpy(), copy)
    x = burn.from_numpy(normal(7, 16, seed=1))
    np.testing.assert_allclose(compiled(x)[0].numpy(), runs[1][1][0], rtol=1e-6)

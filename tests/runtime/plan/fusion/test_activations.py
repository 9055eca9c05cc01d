"""Activations in plans are NumPy's, alone and at the end of layers."""

from typing import Any

import numpy as np
import pytest

import burn
from burn import ops
from burn.backend.cpu.onednn.binding import engine
from tests.runtime.onednn import assert_close, needs_onednn, normal
from tests.runtime.plan.fusion.test_fusion import left
from tests.runtime.plan.fusion.test_images import box

pytestmark = needs_onednn

#: What is computed alone, and the numbers that it is given.
ALONE: dict[str, Any] = {
    "elu": lambda x: ops.elu(x, alpha=0.7),
    "elu by default": ops.elu,
    "selu": ops.selu,
    "selu with numbers": lambda x: ops.selu(x, alpha=1.2, gamma=0.8),
    "celu": lambda x: ops.celu(x, alpha=1.7),
    "softplus": ops.softplus,
    "hard_sigmoid": ops.hard_sigmoid,
    "hard_sigmoid with numbers": lambda x: ops.hard_sigmoid(x, alpha=0.3, beta=0.1),
}
#: What ends a layer as well.
ENDINGS: dict[str, Any] = {
    **{name: f for name, f in ALONE.items() if "selu" not in name and name != "celu"},
    "mish": ops.mish,
    "leaky_relu": lambda x: ops.leaky_relu(x, alpha=0.3),
}
SLOPES = [(6, 1, 1), (1, 6, 1, 1), (1,), (7,), (5, 1), (2, 6, 5, 7)]
KERNEL, BIAS = box(4, 6, 3, 3, seed=1), box(4, seed=2)
TURNED = (0, 3, 1, 2)


def used_in(function: Any, *arrays: Any) -> list[str]:
    """Assert that a plan computes the same, and name the primitives that it is of."""
    session = engine.current()
    assert session is not None
    session.primitives.clear()
    given = [burn.tensor(array) for array in arrays]
    with engine.numpy_only():
        expected = function(*given).numpy()
    compiled = burn.compile(function)
    for _ in range(3):
        actual = compiled(*given).numpy()
    assert_close(actual, expected)
    return session.primitives.implementations()


@pytest.mark.parametrize("scale", [0.1, 3.0, 60.0])
@pytest.mark.parametrize("name", ALONE)
def test_activation(name: str, scale: float) -> None:
    x = normal(2, 6, 5, 7) * np.float32(scale)
    assert used_in(ALONE[name], x)
    assert used_in(lambda x: ALONE[name](ops.permute(x, TURNED)[:, :, ::2]), x)


@pytest.mark.parametrize("shape", SLOPES)
def test_prelu(shape: tuple[int, ...]) -> None:
    x, slope = normal(2, 6, 5, 7), normal(*shape, seed=1)
    used = used_in(ops.prelu, x, slope)
    if shape in SLOPES[:2]:
        assert used
    turned = np.ascontiguousarray(x.transpose(0, 2, 3, 1))
    used = used_in(lambda x, s: ops.prelu(ops.permute(x, TURNED), s), turned, slope)
    if shape in SLOPES[:2]:
        assert used


@pytest.mark.parametrize("name", ENDINGS)
def test_ending_of_a_convolution(name: str) -> None:
    def run(x: Any) -> Any:
        return ENDINGS[name](ops.conv(x, KERNEL, BIAS, padding=(1, 0)))

    compiled = burn.compile(run)
    for seed in (3, 4):
        x = burn.tensor(normal(2, 6, 5, 7, seed=seed))
        for _ in range(2):
            actual = compiled(x).numpy()
        with engine.numpy_only():
            assert_close(actual, run(x).numpy())
    assert left(compiled) == ["conv_then"]


def test_what_is_not_finite_is_numpys() -> None:
    x = normal(2, 6, 5, 7)
    compiled = burn.compile(lambda x: ops.softplus(ops.elu(x)))
    for _ in range(3):
        compiled(burn.tensor(x))
    x[0, 1, 2, 3:6] = np.nan, np.inf, -np.inf
    with engine.numpy_only():
        expected = ops.softplus(ops.elu(burn.tensor(x))).numpy()
    np.testing.assert_allclose(compiled(burn.tensor(x)).numpy(), expected, rtol=1e-5)


def test_eager_activations_are_numpys() -> None:
    x = burn.tensor(normal(2, 6, 5, 7) * np.float32(1e-4))
    with engine.whatever_size():
        actual = ops.elu(x).numpy()
    with engine.numpy_only():
        np.testing.assert_array_equal(actual, ops.elu(x).numpy())

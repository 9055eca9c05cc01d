"""Gradients of maxima over windows: the same elements as on the host, to the bit."""

from typing import Any

import numpy as np
import pytest

import burn
from burn import ops
from burn.backend.cuda.kernels.pooling_grad import window_argmax, window_scatter
from burn.ops.pool import window_argmax as argmax_op, window_scatter as scatter_op

pytestmark = pytest.mark.cuda

CASES: list[dict[str, Any]] = [
    {"kernel_size": 3, "stride": 2, "padding": 1},
    {"kernel_size": 2, "stride": 2},
    {"kernel_size": (3, 2), "stride": (1, 3), "padding": ((2, 0), (1, 1))},
    {"kernel_size": 3, "stride": 2, "dilation": 2, "padding": 1},
    {"kernel_size": 3, "stride": 2, "ceil_mode": True},
    {"kernel_size": (20, 1), "stride": 4, "padding": ((10, 9), (0, 0))},
]


def images(kind: str, shape: tuple[int, ...], dtype: Any) -> Any:
    """Few different numbers, so that windows have ties; with what is not finite."""
    rng = np.random.default_rng(0)
    x = rng.integers(-3, 4, shape).astype(dtype)
    if kind == "not finite":
        x.reshape(-1)[::7] = np.nan
        x[:, 0] = -np.inf
    return x


@pytest.fixture(autouse=True)
def require_cupy() -> None:
    """Skip without CuPy."""
    pytest.importorskip("cupy")


@pytest.mark.parametrize("dtype", (np.float32, np.float16, np.float64))
@pytest.mark.parametrize("kind", ("ties", "not finite"))
@pytest.mark.parametrize("order", ((0, 1, 2, 3), (0, 3, 1, 2)))
@pytest.mark.parametrize("case", CASES, ids=str)
def test_choices_and_gradients_are_those_of_the_host(
    case: dict[str, Any], order: Any, kind: str, dtype: Any
) -> None:
    import cupy

    shape = (2, 5, 9, 8) if order[1] == 1 else (2, 9, 8, 5)
    x = images(kind, shape, dtype).transpose(order)
    out = ops.max_pool(burn.from_numpy(x), **case).numpy()
    rng = np.random.default_rng(1)
    grad = rng.integers(-4, 5, out.shape).astype(dtype)
    expected = argmax_op.kernel(x, out, **case)
    there = cupy.asarray(x), cupy.asarray(out)
    choice = window_argmax(*there, **case)
    np.testing.assert_array_equal(choice.get(), expected)
    size = x.shape[2:]
    result = window_scatter(cupy.asarray(grad), choice, size=size, **case)
    wanted = scatter_op.kernel(grad, expected, size=size, **case)
    assert result.dtype == wanted.dtype
    np.testing.assert_array_equal(result.get(), wanted)

"""The law of gradients: a vjp is the directional derivative, to the order asked for."""

from collections.abc import Callable
from typing import Any

import numpy as np

import burn
from burn import ops

STEP = 1e-5


def check_gradient(fn: Callable[..., Any], *arrays: Any, order: int = 2) -> None:
    """Assert that gradients of ``fn`` along one random direction are derivatives.

    ``fn`` takes tensors of ``arrays`` (float64) and returns a tensor, or a tuple of
    which the floating results count. Its results are weighted at random and summed.
    Order 2 differentiates the directional derivative once more.
    """
    rng = np.random.default_rng(7)
    values = [np.asarray(a, np.float64) for a in arrays]
    weights = [rng.standard_normal(out.shape) for out in _outs(fn, values)]
    directions = [rng.standard_normal(a.shape) for a in values]

    def scalar(*tensors: Any) -> Any:
        parts = [
            ops.sum(out * weight)
            for out, weight in zip(_floats(fn(*tensors)), weights, strict=True)
        ]
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total

    _check(scalar, values, directions, "first")
    if order > 1:
        second = [rng.standard_normal(a.shape) for a in values]
        _check(lambda *ts: _slope(scalar, ts, directions), values, second, "second")


def _check(scalar: Any, values: Any, directions: Any, order: str) -> None:
    """Compare the derivative along ``directions`` with a central difference."""
    backend = burn.Autodiff(burn.Cpu())
    leaves = [burn.tensor(a, backend).require_grad() for a in values]
    out = scalar(*leaves)
    found = out.backward() if out.backend.tracks_gradients else {}
    slope = sum(
        float(np.sum(found[leaf].numpy() * d))
        for leaf, d in zip(leaves, directions, strict=True)
        if leaf in found
    )
    ends = []
    for sign in (1.0, -1.0):
        moved = [a + sign * STEP * d for a, d in zip(values, directions, strict=True)]
        ends.append(scalar(*map(burn.tensor, moved)).item())
    expected = (ends[0] - ends[1]) / (2 * STEP)
    np.testing.assert_allclose(
        slope, expected, rtol=2e-6, atol=2e-7, err_msg=f"{order} derivative"
    )


def _slope(scalar: Any, tensors: Any, directions: Any) -> Any:
    """The derivative of ``scalar`` along ``directions``, itself differentiable."""
    outer = burn.Autodiff(tensors[0].backend)
    leaves = [burn.Tensor(t, outer).require_grad() for t in tensors]
    found = scalar(*leaves).backward()
    total: Any = burn.tensor(np.zeros(()))
    for leaf, d in zip(leaves, directions, strict=True):
        if leaf in found:
            total = total + ops.sum(found[leaf] * d)
    return total


def _outs(fn: Any, values: Any) -> Any:
    return _floats(fn(*map(burn.tensor, values)))


def _floats(result: Any) -> Any:
    outs = result if isinstance(result, tuple | list) else (result,)
    return [out for out in outs if burn.dtypes.is_float(out.dtype)]

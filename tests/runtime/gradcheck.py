"""The gradient law: a vjp is the directional derivative, in float64."""

from collections.abc import Callable
from typing import Any

import numpy as np

import burn
from burn import Autodiff, Cpu, Tensor, ops

Array = np.ndarray[Any, Any]
Function = Callable[..., Any]


def check_gradient(
    fn: Function, *arrays: Array, order: int = 2, seed: int = 0, tol: float = 1e-6
) -> None:
    """Assert that the gradients of ``fn`` are its directional derivatives.

    ``fn`` takes tensors of float64 and returns one tensor or several. A random form
    of the float results is differentiated along one random direction, by its vjp and by
    central differences; with ``order=2`` the same is done to the gradient.
    """
    rng = np.random.default_rng(seed)
    points = [np.asarray(array, np.float64) for array in arrays]
    direction = [rng.standard_normal(point.shape) for point in points]
    scalar = _scalar(fn, points, rng)
    _compare(scalar, points, direction, tol)
    if order == 2:
        other = [rng.standard_normal(point.shape) for point in points]
        _compare(_derivative(scalar, direction), points, other, tol)


def _scalar(fn: Function, points: list[Array], rng: Any) -> Function:
    """``fn`` and a random form with curvature: order 2 sees a linear ``fn`` too."""
    outs = _tuple(fn(*map(burn.from_numpy, points)))
    weights = [
        rng.standard_normal(out.shape) if out.dtype.kind == "f" else None
        for out in outs
    ]

    def scalar(*tensors: Tensor) -> Tensor:
        total: Any = 0.0
        for out, weight in zip(_tuple(fn(*tensors)), weights, strict=True):
            if weight is not None:
                total = total + ops.sum(out * weight + 0.5 * out * out)
        return ops.reshape(total, ())

    return scalar


def _derivative(scalar: Function, direction: list[Array]) -> Function:
    """The directional derivative of ``scalar``, by its vjp on one more layer."""

    def derivative(*tensors: Tensor) -> Tensor:
        grads = _gradients(scalar, tensors)
        total: Any = 0.0
        for grad, step in zip(grads, direction, strict=True):
            if grad is not None:
                total = total + ops.sum(grad * step)
        return ops.reshape(total, ())

    return derivative


def _gradients(scalar: Function, tensors: Any) -> list[Tensor | None]:
    tape = Autodiff(tensors[0].backend)
    leaves = [tensor.to(tape).require_grad() for tensor in tensors]
    grads = scalar(*leaves).backward()
    return [grads.get(leaf) for leaf in leaves]


def _compare(
    scalar: Function, points: list[Array], direction: list[Array], tol: float
) -> None:
    tape = Autodiff(Cpu())
    leaves = [burn.from_numpy(point, tape).require_grad() for point in points]
    result = scalar(*leaves)
    grads = result.backward() if result.node is not None else {}
    actual = sum(
        float(np.sum(grads[leaf].numpy() * step))
        for leaf, step in zip(leaves, direction, strict=True)
        if leaf in grads
    )
    expected = _difference(scalar, points, direction)
    scale = max(1.0, abs(expected), _size(points, direction))
    assert abs(actual - expected) <= tol * scale, (actual, expected)


def _difference(scalar: Function, points: list[Array], direction: list[Array]) -> float:
    step = 1e-5

    def at(amount: float) -> float:
        moved = [p + amount * d for p, d in zip(points, direction, strict=True)]
        return float(scalar(*map(burn.from_numpy, moved)).item())

    # Richardson's extrapolation: the error is of fourth order in the step.
    near = (at(step) - at(-step)) / (2 * step)
    far = (at(2 * step) - at(-2 * step)) / (4 * step)
    return (4 * near - far) / 3


def _size(points: list[Array], direction: list[Array]) -> float:
    return float(np.sqrt(sum(np.sum(d * d) for d in direction)))


def _tuple(outs: Any) -> tuple[Tensor, ...]:
    return outs if isinstance(outs, tuple) else (outs,)

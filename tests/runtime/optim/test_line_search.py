"""Line searches find lengths that fulfill the strong Wolfe conditions."""

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, Tensor, optim
from burn.optim.line_search import Point, strong_wolfe


def quartic(length: float) -> Point:
    """A function with minima at 1 and 6, which is higher between them."""
    slope = np.polynomial.Polynomial.fromroots([1.0, 3.0, 6.0])
    loss = float(slope.integ()(length))
    return Point(length, loss, float(slope(length)), burn.tensor(slope(length)))


@pytest.mark.parametrize("first", [1e-4, 0.3, 1.0, 2.9, 3.1, 40.0, 1e6])
def test_the_length_is_sufficient(first: float) -> None:
    start = quartic(0.0)
    assert start.slope < 0
    lengths: list[float] = []

    def evaluate(length: float) -> Point:
        lengths.append(length)
        return quartic(length)

    point, count = strong_wolfe(evaluate, start, first, shortest=1e-9, limit=25)
    assert count == len(lengths) <= 26
    assert point.loss <= start.loss + 1e-4 * point.length * start.slope
    assert abs(point.slope) <= -0.9 * start.slope


@pytest.mark.parametrize("first", [1e-6, 1e6])
@pytest.mark.parametrize("limit", [0, 1, 3])
def test_evaluations_are_limited(first: float, limit: int) -> None:
    start = quartic(0.0)
    point, count = strong_wolfe(quartic, start, first, shortest=0.0, limit=limit)
    assert count == limit + 1
    assert point.loss <= start.loss


def valley(x: burn.Parameter) -> Tensor:
    """The function of H. Rosenbrock, whose minimum is at (1, 1)."""
    wide = x[1] - x[0] * x[0]
    return wide * wide * 100.0 + (1.0 - x[0]) * (1.0 - x[0])


@pytest.mark.parametrize("lr", [1e-3, 1.0, 100.0])
def test_lbfgs_finds_the_minimum_of_a_valley(lr: float) -> None:
    x = burn.Parameter(burn.tensor(np.array([-1.2, 1.0]), Autodiff(Cpu())))
    opt = optim.LBFGS({"x": x}, lr=lr, max_iter=50, line_search_fn="strong_wolfe")
    losses = [opt.step(lambda: valley(x)).item() for _ in range(8)]
    assert losses == sorted(losses, reverse=True)
    np.testing.assert_allclose(x.numpy(), [1, 1], atol=1e-4)


def test_other_searches_are_refused() -> None:
    x = burn.Parameter(burn.tensor(np.zeros(2), Autodiff(Cpu())))
    with pytest.raises(ValueError, match="'strong_wolfe' or None, got 'armijo'"):
        optim.LBFGS({"x": x}, line_search_fn="armijo")

"""Only the rows that are used are computed, with the results of eager calls."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, nn, ops, optim, train
from burn.plan.plan_ir import Step
from tests.runtime.onednn import normal
from tests.runtime.programs import optimized

PRODUCTS = ("matmul", "linear", "linear_then", "matmul_then")
#: Batch, positions and width; extents are equal in one of them.
SHAPES = ((3, 8, 12), (8, 8, 8), (1, 6, 4), (2, 5, 4))


class Encoder(nn.Module):
    """A layer of a transformer whose output is sliced by ``take``."""

    def __init__(self, width: int, take: Callable[[Any], Any], mask: Any = None):
        nn.init.seed(5)
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)
        self.value, self.out = nn.Linear(width, width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 3 * width), nn.Linear(
            3 * width, width
        )
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.RMSNorm(width)
        self.take, self.mask = take, mask

    def __call__(self, x: Any) -> Any:
        batch, length, width = x.shape
        query, key, value = (
            ops.permute(ops.reshape(f(x), (batch, length, 2, width // 2)), (0, 2, 1, 3))
            for f in (self.query, self.key, self.value)
        )
        scores = query @ key.mT * 0.4
        if self.mask is not None:
            scores = scores + burn.from_numpy(self.mask)
        mixed = ops.permute(ops.softmax(scores) @ value, (0, 2, 1, 3))
        x = self.norm1(x + self.out(ops.reshape(mixed, x.shape)))
        x = self.norm2(x + self.narrow(ops.gelu(self.wide(x))))
        return self.take(x)


def first(x: Any) -> Any:
    return x[:, 0]


def last(x: Any) -> Any:
    return x[:, -1]


def pair(x: Any) -> Any:
    return x[:, 1:3]


def of_one_item(x: Any) -> Any:
    return x[:1] * 2.0


def two_of_them(x: Any) -> Any:
    """Different rows of one value."""
    return x[:, 0] * x[:, -1]


def beside_all(x: Any) -> Any:
    """Rows of a value that is used as a whole, too."""
    return x[:, 1] + ops.mean(x, 1)


def of_width(x: Any) -> Any:
    """Columns, not rows: norms need all of them."""
    return x[..., :1]


TAKES = (first, last, pair, of_one_item, two_of_them, beside_all, of_width)


def trained(take: Any, shape: Any, compiled: bool, mask: Any = None) -> Any:
    """The losses of four steps, and the weights after them."""
    net = Encoder(shape[-1], take, mask).to(Autodiff(Cpu()))

    @train.step(net, optim.SGD(net, lr=0.1), compiled=compiled)
    def step(x: Any) -> Any:
        return ops.mean((net(x) - 0.5) ** 2.0)

    losses = [step(burn.from_numpy(normal(*shape, seed=i))).numpy() for i in range(4)]
    return losses, {k: box.value.numpy() for k, box in net.parameters()}


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("take", TAKES)
def test_training(take: Any, shape: Any) -> None:
    losses, weights = trained(take, shape, True)
    expected_losses, expected = trained(take, shape, False)
    np.testing.assert_allclose(losses, expected_losses, rtol=1e-5)
    for name, value in weights.items():
        np.testing.assert_allclose(value, expected[name], 1e-4, 2e-6, err_msg=name)


def test_training_with_mask() -> None:
    mask = np.triu(np.full((8, 8), -1e9, np.float32), 1)
    losses, weights = trained(last, (2, 8, 4), True, mask)
    expected_losses, expected = trained(last, (2, 8, 4), False, mask)
    np.testing.assert_allclose(losses, expected_losses, rtol=1e-5)
    for name, value in weights.items():
        np.testing.assert_allclose(value, expected[name], 1e-4, 2e-6, err_msg=name)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("take", TAKES)
def test_inference(take: Any, shape: Any) -> None:
    net = Encoder(shape[-1], take)
    compiled = burn.compile(net)
    for seed in range(3):
        x = burn.from_numpy(normal(*shape, seed=seed))
        np.testing.assert_allclose(compiled(x), net(x), 1e-4, 1e-5)


def product_shapes(compiled: Any) -> list[tuple[int, ...]]:
    steps = [s for s in optimized(compiled).steps if isinstance(s, Step)]
    return [s.shapes[0] for s in steps if s.primitive.name in PRODUCTS]


def test_products_of_the_used_rows() -> None:
    net = burn.compile(Encoder(12, first))
    net(burn.from_numpy(normal(3, 8, 12)))
    whole = [shape for shape in product_shapes(net) if 8 in shape[:-1]]
    assert whole == [(3, 8, 24)]  # keys and values in one product


def test_products_of_gradients() -> None:
    net = Encoder(12, first).to(Autodiff(Cpu()))

    @train.step(net, optim.SGD(net, lr=0.1))
    def step(x: Any) -> Any:
        return ops.mean(net(x) ** 2.0)

    for _ in range(2):
        step(burn.from_numpy(normal(3, 8, 12)))
    whole = [shape for shape in product_shapes(step._train) if 8 in shape[:-1]]
    # Keys and values, and their gradients.
    assert sorted(whole) == [(3, 2, 8, 6)] * 2 + [(3, 8, 12)] * 2


def test_rows_that_are_not_finite() -> None:
    net, x = Encoder(4, first), normal(2, 6, 4)
    compiled = burn.compile(net)
    compiled(burn.from_numpy(x))
    x[0, 3] = np.nan
    np.testing.assert_array_equal(
        *(np.isnan(f(burn.from_numpy(x)).numpy()) for f in (compiled, net))
    )


def test_empty_batch() -> None:
    compiled = burn.compile(Encoder(4, first))
    for _ in range(2):
        assert compiled(burn.from_numpy(normal(0, 6, 4))).shape == (0, 4)


def test_values_between_slice_and_reshape() -> None:
    """Axes are merged in another order than that of the batch."""

    def function(x: Any, w: Any) -> Any:
        y = ops.permute(ops.reshape(x @ w, (4, 6, 2, 3)), (2, 1, 0, 3))
        return ops.reshape(y, (2, 6, 12))[:, 2:4]

    x, w = (burn.from_numpy(normal(*s)) for s in ((4, 6, 6), (6, 6)))
    compiled = burn.compile(function)
    for _ in range(3):
        np.testing.assert_allclose(compiled(x, w), function(x, w), 1e-5, 1e-6)

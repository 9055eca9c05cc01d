"""A transposed product is the product of the transposed factors, where that is less."""

from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, nn, ops
from tests.runtime.onednn import (
    assert_close,
    assert_trained_alike,
    needs_onednn,
    normal,
)
from tests.runtime.plan.test_passes import left
from tests.runtime.programs import calls_of


def in_a_branch(x: Any, y: Any) -> Any:
    product = x.mT @ y
    return product.mT if bool(ops.sum(x) < 1e9) else y


#: Shapes of both factors, what is computed of them, and what is left.
CASES: dict[str, tuple[Any, Any, Any, str]] = {
    "of a transpose": (
        *((3, 5, 8), (3, 5, 6)),
        *(lambda x, y: (x.mT @ y).mT, "transpose matmul"),
    ),
    "of a transpose on the right": (
        *((2, 3, 5, 8), (2, 3, 6, 8)),
        *(lambda x, y: ops.transpose(x @ y.mT, 2, 3), "transpose matmul"),
    ),
    "of two": ((3, 5, 8), (3, 6, 5), lambda x, y: (x.mT @ y.mT).mT, "matmul"),
    "of matrices": ((5, 8), (5, 6), lambda x, y: (x.mT @ y).mT, "transpose matmul"),
    "with a batch of one": (
        *((1, 5, 8), (3, 5, 6)),
        *(lambda x, y: (x.mT @ y).mT, "transpose matmul"),
    ),
    "of none": ((3, 5, 8), (3, 8, 6), lambda x, y: (x @ y).mT, "matmul transpose"),
    "of other axes": (
        *((3, 5, 8), (3, 5, 6)),
        *(lambda x, y: ops.transpose(x.mT @ y, 0, 1), "transpose matmul transpose"),
    ),
    "of factors with other axes turned": (
        *((5, 3, 8), (3, 8, 6)),
        *(lambda x, y: (ops.transpose(x, 0, 1) @ y).mT, "transpose matmul transpose"),
    ),
    "in a branch": (
        *((3, 5, 8), (3, 5, 6)),
        *(in_a_branch, "sum less transpose matmul"),
    ),
    "used twice": (
        *((3, 5, 8), (3, 5, 8)),
        *(lambda x, y: (z := x.mT @ y) + z.mT, "transpose matmul transpose add"),
    ),
    "of other ranks": (
        *((5, 8), (3, 5, 6)),
        *(lambda x, y: (x.mT @ y).mT, "transpose matmul transpose"),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_it_is_the_product(name: str) -> None:
    first, second, function, names = CASES[name]
    compiled = burn.compile(function)
    for seed in range(3):
        given = [
            burn.from_numpy(normal(*shape, seed=seed + n))
            for n, shape in enumerate((first, second))
        ]
        assert_close(compiled(*given).numpy(), function(*given).numpy())
    assert left(compiled) == names.split()


@pytest.mark.parametrize("axes", [(0, -2), (1, 1), (-1, 0), (1, -2)])
def test_axes_have_several_names(axes: tuple[int, int]) -> None:
    compiled = burn.compile(lambda x: ops.transpose(ops.tanh(x), *axes))
    for seed in range(3):
        x = normal(4, 7, seed=seed)
        found = compiled(burn.from_numpy(x)).numpy()
        assert_close(found, np.swapaxes(np.tanh(x), *axes))
    given = {"first": axes[0], "second": axes[1]}
    named = burn.compile(lambda x: ops.transpose(ops.tanh(x), **given))
    for _ in range(2):
        assert_close(named(burn.from_numpy(x)).numpy(), found)


class Attention(nn.Module):
    """Of two heads, on [batch, length, 16]."""

    def __init__(self) -> None:
        self.query, self.key = nn.Linear(16, 16), nn.Linear(16, 16)
        self.value = nn.Linear(16, 16)

    def __call__(self, x: Any) -> Any:
        query, key, value = (
            ops.permute(ops.reshape(part(x), (*x.shape[:2], 2, 8)), (0, 2, 1, 3))
            for part in (self.query, self.key, self.value)
        )
        mixed = ops.softmax(query @ key.mT) @ value
        return ops.reshape(ops.permute(mixed, (0, 2, 1, 3)), x.shape)


def test_attention_is_trained_alike() -> None:
    assert_trained_alike(Attention, 3, 5, 16, scale=0.3)


@needs_onednn
def test_gradients_of_attention_are_written_where_they_are_read() -> None:
    net = Attention().to(Autodiff(Cpu()))

    def step(x: Any) -> Any:
        grads = ops.mean(net(x) ** 2.0).backward()
        return [grads[box] for _, box in net.parameters()]

    compiled = burn.compile(step)
    x = burn.from_numpy(normal(8, 64, 16))
    for _ in range(2):
        compiled(x)
    calls = calls_of(compiled)
    assert np.copyto not in calls

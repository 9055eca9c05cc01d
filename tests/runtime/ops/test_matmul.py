"""Matrix products by value and by gradient."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided
from numpy.testing import assert_array_equal

import burn
from burn import ops
from burn.ops.support import contract
from tests.runtime.gradcheck import check_gradient

RNG = np.random.default_rng(5)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape)


SHAPES = [
    ((3, 4), (4, 5)),
    ((2, 3, 4), (4, 5)),
    ((2, 3, 4), (2, 4, 5)),
    ((2, 1, 3, 4), (6, 4, 5)),
    ((3, 4), (6, 4, 5)),
    ((4,), (4, 5)),
    ((4,), (2, 4, 5)),
    ((2, 3, 4), (4,)),
    ((4,), (4,)),
]


@pytest.mark.parametrize(("left", "right"), SHAPES)
def test_matmul(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    x, y = normal(*left), normal(*right)
    np.testing.assert_allclose(
        ops.matmul(burn.tensor(x), burn.tensor(y)).numpy(), x @ y, rtol=1e-12
    )
    check_gradient(ops.matmul, x, y)


def test_matmul_of_integers_and_of_nothing() -> None:
    x, y = np.arange(24).reshape(2, 3, 4), np.arange(20).reshape(4, 5)
    out = ops.matmul(burn.tensor(x), burn.tensor(y))
    assert out.dtype == burn.int64
    np.testing.assert_array_equal(out.numpy(), x @ y)
    empty = ops.matmul(burn.tensor(normal(2, 0, 4)), burn.tensor(normal(4, 5)))
    assert empty.shape == (2, 0, 5)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_halves_accumulate_in_float32(dtype: Any) -> None:
    x = np.full((1, 4096), 0.5, dtype)
    weight = np.ones((2, 4096), dtype)
    for out in (
        ops.matmul(burn.tensor(x), burn.tensor(weight.T.copy())),
        ops.linear(burn.tensor(x), burn.tensor(weight)),
        ops.einsum("ij,kj->ik", [burn.tensor(x), burn.tensor(weight)]),
    ):
        assert out.dtype == np.dtype(dtype)
        assert out.numpy().astype(np.float32).tolist() == [[2048.0, 2048.0]]


def test_linear() -> None:
    x, weight, bias = normal(2, 3, 4), normal(5, 4), normal(5)
    out = ops.linear(*map(burn.tensor, (x, weight, bias)))
    np.testing.assert_allclose(out.numpy(), x @ weight.T + bias, rtol=1e-12)
    check_gradient(ops.linear, x, weight, bias)
    check_gradient(ops.linear, normal(4), weight)


EQUATIONS = [
    ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]),
    ("ij,kj", [(3, 4), (5, 4)]),
    ("...ij,...jk->...ik", [(2, 1, 3, 4), (6, 4, 5)]),
    ("iij->ji", [(3, 3, 2)]),
    ("ii", [(4, 4)]),
    ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]),
    ("ijk,l->i", [(2, 3, 4), (5,)]),
    ("b...d -> ...b", [(2, 3, 4, 5)]),
    ("i,j->ij", [(2,), (3,)]),
    # An extent of 1 is broadcast, in operands and in their gradients.
    ("abc,ab->a", [(2, 4, 5), (2, 1)]),
    ("ij,jk->ik", [(1, 4), (1, 3)]),
    ("ij,jk,k->i", [(2, 1), (4, 3), (1,)]),
    ("iij,j->j", [(3, 3, 2), (1,)]),
]


@pytest.mark.parametrize(("equation", "shapes"), EQUATIONS)
def test_einsum(equation: str, shapes: list[tuple[int, ...]]) -> None:
    xs = [normal(*shape) for shape in shapes]
    out = ops.einsum(equation, [burn.tensor(x) for x in xs])
    np.testing.assert_allclose(out.numpy(), np.einsum(equation, *xs), rtol=1e-12)
    check_gradient(lambda *tensors: ops.einsum(equation, list(tensors)), *xs)


def test_einsum_counts_operands() -> None:
    x = burn.tensor(normal(2, 3)).to(burn.Autodiff(burn.Cpu())).require_grad()
    with pytest.raises(ValueError, match="einsum"):
        ops.einsum("ij,jk->ik", [x])


def test_gradients_of_a_product_over_an_axis_of_no_elements() -> None:
    backend = burn.Autodiff(burn.Cpu())
    x, y = (
        burn.tensor(np.zeros(shape, np.float32)).to(backend).require_grad()
        for shape in ((5, 4, 0), (0, 3))
    )
    gradients = ops.sum(x @ y).backward()
    assert [gradients[of].shape for of in (x, y)] == [(5, 4, 0), (0, 3)]


def test_sums_over_no_elements_do_not_read_memory() -> None:
    """NumPy's ``einsum`` multiplies by what lies behind an operand of stride 0."""
    unread = np.full(64, np.nan, np.float32)
    x = as_strided(unread, (6, 0), (4, 0))
    y = as_strided(unread, (6, 0), (4, 4))
    assert_array_equal(contract("pc,pc->p", x, y), np.zeros(6))
    assert_array_equal(contract("pc,pc->p", y, x), np.zeros(6))
    assert_array_equal(contract(x, [0, 1], y, [2, 1], [0, 2]), np.zeros((6, 6)))
    assert_array_equal(contract("pc,k->pk", x, unread), np.zeros((6, 64)))
    assert_array_equal(ops.einsum("pc,pc->p", [x, y]).numpy(), np.zeros(6))
    assert contract("pc,pc->pc", x, y).shape == (6, 0)

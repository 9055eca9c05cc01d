"""Functions and operators of NumPy with tensors and parameters, and formats."""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, Tensor, nn, ops

ARRAY = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
X = burn.tensor(np.array([[3, 2, 1], [1, 2, 2]], np.float32))
OPERATORS = (
    *(operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv),
    *(operator.mod, operator.pow, operator.eq, operator.ne, operator.lt, operator.le),
    *(operator.gt, operator.ge),
)


@pytest.mark.parametrize("function", OPERATORS, ids=lambda one: one.__name__)
@pytest.mark.parametrize("array", [ARRAY, np.float32(2)], ids=["array", "scalar"])
def test_an_operator_gives_a_tensor_on_both_sides(
    function: Callable[[Any, Any], Any], array: Any
) -> None:
    for result, expected in (
        (function(array, X), function(array, X.numpy())),
        (function(X, array), function(X.numpy(), array)),
    ):
        assert type(result) is Tensor
        np.testing.assert_allclose(result.numpy(), expected, 1e-6)


def test_products_and_logic_give_tensors() -> None:
    product: Any = ARRAY @ X.mT
    assert type(product) is Tensor
    np.testing.assert_allclose(product.numpy(), ARRAY @ X.numpy().T)
    mask = np.array([True, True, False])
    for function in (operator.and_, operator.or_, operator.xor):
        result = function(mask, burn.tensor([True, False, False]))
        assert type(result) is Tensor
        assert result.tolist() == function(mask, [True, False, False]).tolist()


def test_operators_keep_the_history() -> None:
    x = burn.tensor([1.0, 2.0], Autodiff(Cpu())).require_grad()
    gradients = (np.array([3, 4], np.float32) * x).sum().backward()
    assert gradients[x].tolist() == [3.0, 4.0]


@pytest.mark.parametrize(
    "call",
    [
        np.mean,
        np.exp,
        np.add.reduce,
        np.linalg.norm,
        lambda x: np.sum(x, axis=0),
        lambda x: np.max(x, 1, keepdims=True),
        lambda x: np.stack([x, x]),
        lambda x: np.clip(x, 1, 2),
        lambda x: np.where(np.greater(np.asarray(x), 1), x, 0),
    ],
)
def test_functions_compute_with_the_elements(call: Callable[[Any], Any]) -> None:
    weight = nn.Linear(3, 2).weight
    for value in (X, weight):
        result, expected = call(value), call(value.numpy())
        assert isinstance(result, np.ndarray | np.generic)
        np.testing.assert_array_equal(result, expected)


def test_an_array_is_changed_in_place() -> None:
    array = ARRAY.copy()
    array += X
    np.testing.assert_array_equal(array, ARRAY + X.numpy())


def test_no_copy_is_made() -> None:
    assert np.shares_memory(np.asarray(X), X.numpy())


def test_a_history_is_not_lost_without_a_word() -> None:
    x = burn.tensor([1.0, 2.0], Autodiff(Cpu())).require_grad()
    with pytest.raises(TypeError, match=r"numpy.exp has no gradient; .*x\.numpy\(\)"):
        np.exp(x)


def test_one_element_has_formats() -> None:
    assert f"{X.sum():.2f}|{X.sum():>6.1f}|{burn.tensor(3):03d}" == "11.00|  11.0|003"
    assert f"{X}" == str(X)
    with pytest.raises(TypeError, match=r"one element .*'.2f', got float32\[2, 3\]"):
        f"{X:.2f}"


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min"])
def test_arguments_of_torch_are_answered(name: str) -> None:
    with pytest.raises(TypeError, match=rf"{name}\(\) .* 'dim'; use axis"):
        getattr(X, name)(dim=1)
    with pytest.raises(TypeError, match="'keepdim'; use keepdims"):
        getattr(X, name)(1, keepdim=True)


def test_a_dtype_is_no_backend() -> None:
    backend: Any = burn.float64
    with pytest.raises(TypeError, match=r"expected a backend.*; use x\.cast\(dtype\)"):
        X.to(backend)


class Foreign:
    """An array of a library that kernels do not know."""

    dtype, shape, ndim = "float32", (3,), 1

    def __dlpack__(self) -> None:
        raise AssertionError("it is not read")


@pytest.mark.parametrize("call", [ops.relu, lambda x: ops.add(X, x), ops.neg])
def test_arrays_of_other_libraries_are_refused_by_name(call: Any) -> None:
    Foreign.__module__ = "torch"
    for function in (call, burn.compile(call)):
        with pytest.raises(
            TypeError, match=r"got a torch.Foreign; .* burn.tensor\(x\)"
        ):
            function(Foreign())


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_limits_of_dtypes_are_those_of_numpy(name: str) -> None:
    actual, expected = burn.finfo(getattr(burn, name)), np.finfo(name)
    assert actual == (float(expected.min), float(expected.max), float(expected.eps))
    assert all(type(number) is float for number in actual)


def test_limits_need_a_floating_dtype() -> None:
    assert burn.finfo(burn.bfloat16).max == 255 * 2.0**120
    with pytest.raises(ValueError, match="expected a floating dtype, got int32"):
        burn.finfo(burn.int32)

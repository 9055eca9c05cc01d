"""Losses and their gradients are those of PyTorch, to 1e-6."""

from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, loss, ops
from tests.runtime.loss.cases import CASES, Case

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")


def cast(array: Any, dtype: Any) -> Any:
    return array.astype(dtype) if array.dtype.kind == "f" else array


def ours(case: Case, dtype: Any) -> tuple[Any, list[Any]]:
    home = Autodiff(Cpu())
    leaves = [burn.tensor(cast(a, dtype), home).require_grad() for a in case.inputs]
    rest = [burn.tensor(cast(a, dtype)) for a in case.rest]
    arrays = {name: burn.tensor(cast(a, dtype)) for name, a in case.arrays.items()}
    value = getattr(loss, case.name)(*leaves, *rest, **case.options, **arrays)
    grads = ops.sum(value).backward()
    return value.numpy(), [grads[leaf].numpy() for leaf in leaves]


def theirs(case: Case, dtype: Any) -> tuple[Any, list[Any]]:
    leaves = [
        torch.from_numpy(cast(a, dtype).copy()).requires_grad_() for a in case.inputs
    ]
    rest = [torch.from_numpy(cast(a, dtype)) for a in case.rest]
    arrays = {name: torch.from_numpy(cast(a, dtype)) for name, a in case.arrays.items()}
    function = getattr(torch.nn.functional, case.name)
    value = function(*leaves, *rest, **case.options, **arrays)
    value.sum().backward()
    return value.detach().numpy(), [leaf.grad.numpy() for leaf in leaves]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_and_gradients_are_those_of_torch(case: Case, dtype: Any) -> None:
    (value, grads), (expected, wanted) = ours(case, dtype), theirs(case, dtype)
    assert value.dtype == dtype
    np.testing.assert_allclose(value, expected, 1e-6, 1e-6)
    for grad, other in zip(grads, wanted, strict=True):
        np.testing.assert_allclose(grad, other, 1e-6, 1e-6)


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("infinite", [False, True])
def test_ctc_is_that_of_torch(reduction: str, infinite: bool) -> None:
    rng = np.random.default_rng(5)
    logits = rng.standard_normal((9, 4, 6)) * 2
    targets = np.array([[1, 2, 2, 5], [3, 3, 3, 0], [4, 0, 0, 0], [1, 1, 1, 1]])
    inputs, lengths = np.array([9, 7, 3, 5 if infinite else 7]), np.array([4, 3, 1, 4])
    options = {"reduction": reduction, "zero_infinity": infinite}
    x = burn.tensor(logits, Autodiff(Cpu())).require_grad()
    value = loss.ctc_loss(
        ops.log_softmax(x, axis=2),
        *(burn.tensor(a) for a in (targets, inputs, lengths)),
        **options,  # type: ignore[arg-type]
    )
    grad = ops.sum(value).backward()[x].numpy()
    leaf = torch.from_numpy(logits).requires_grad_()
    other = torch.nn.functional.ctc_loss(
        leaf.log_softmax(2),
        *(torch.from_numpy(a) for a in (targets, inputs, lengths)),
        **options,
    )
    other.sum().backward()
    np.testing.assert_allclose(value.numpy(), other.detach().numpy(), 1e-9)
    np.testing.assert_allclose(grad, leaf.grad.numpy(), 1e-7, 1e-9)

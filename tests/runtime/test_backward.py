"""Gradients of tensors of several elements, and gradients by name."""

from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, nn, ops


def leaf(*values: float) -> Any:
    return burn.tensor(np.array(values), Autodiff(Cpu())).require_grad()


@pytest.mark.parametrize("backend", [Cpu(), Autodiff(Cpu())])
def test_a_seed_weighs_elements(backend: Any) -> None:
    x = leaf(1.0, 2.0, 3.0)
    seed = burn.tensor(np.array([1.0, 10.0, -2.0]), backend)
    grads = (x * x).backward(seed)
    np.testing.assert_array_equal(grads[x].numpy(), [2.0, 40.0, -12.0])


def test_seeds_are_in_the_shape_and_dtype_of_the_tensor() -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(ValueError, match="or give the gradient of each element"):
        (x * x).backward()
    with pytest.raises(ValueError, match=r"expected a gradient float64\[2\], got floa"):
        (x * x).backward(burn.tensor([1.0, 2.0]))
    with pytest.raises(ValueError, match="depends on no parameter"):
        ops.exp(x.detach()).backward(burn.tensor(np.ones(2)))


def test_gradients_by_name_leave_out_frozen_parameters() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1)).to(Autodiff(Cpu()))
    model.freeze("*.bias")
    x = burn.tensor(np.ones((4, 2), np.float32))
    grads = model(x).mean().backward()
    named = grads.by_name(model)
    assert list(named) == ["0.weight", "1.weight"]
    assert named["1.weight"] is grads[dict(model.parameters())["1.weight"]]
    with pytest.raises(ValueError, match="depends on no parameter"):
        model.freeze()(x).mean().backward()

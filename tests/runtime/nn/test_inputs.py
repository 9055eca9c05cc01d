"""Models check what they are called with."""

import inspect
from typing import Any

import numpy as np
import pytest

import burn
from burn import Tensor, nn, ops


class Net(nn.Module):
    @nn.check_inputs(
        image="float32[batch, 3, 4, ?]", ids="int64[batch]", scale="float32[...]"
    )
    def __call__(
        self, image: Tensor, ids: Tensor, scale: Tensor | None = None, more: Any = None
    ) -> Tensor:
        x = image.sum((1, 2, 3)) + ids.cast(burn.float32)
        return x if scale is None else x * scale


def image(*shape: int, dtype: Any = np.float32) -> Tensor:
    return burn.tensor(np.ones(shape, dtype))


def ids(count: int = 2) -> Tensor:
    return burn.tensor(np.arange(count))


GOOD = (image(2, 3, 4, 5), ids())


@pytest.mark.parametrize(
    "more", [(), (None,), (image(),), (image(2),), (image(7, 2), "anything")]
)
def test_right_inputs(more: tuple[Any, ...]) -> None:
    assert Net()(*GOOD, *more).shape[-1] == 2


def test_names_and_positions() -> None:
    assert Net()(ids=ids(), image=GOOD[0]).shape == (2,)
    assert list(inspect.signature(Net.__call__).parameters)[1:3] == ["image", "ids"]


def test_a_plan_does_not_take_other_inputs_once_it_is_recorded() -> None:
    model: Any = burn.compile(Net())
    for _ in range(3):
        model(*GOOD)
        with pytest.raises(nn.InputError, match="float64"):
            model(image(2, 3, 4, 5, dtype=np.float64), ids())
        with pytest.raises(nn.InputError, match="batch is 2"):
            model(GOOD[0], ids(5))
        with pytest.raises(nn.InputError, match="the NumPy array float32"):
            model(GOOD[0].numpy(), ids())


def test_gradients_flow_through_a_check() -> None:
    x = burn.from_numpy(np.ones((2, 3, 4, 5), np.float32), burn.Autodiff(burn.Cpu()))
    x = x.require_grad()
    grads = ops.sum(Net()(x, ids())).backward()
    np.testing.assert_array_equal(grads[x].numpy(), np.ones((2, 3, 4, 5)))

"""Plans that set boxes, in lower precision: buffers and steps of training."""

from typing import Any

import numpy as np

import burn
from burn import nn, ops, optim
from tests.runtime.onednn import normal
from tests.runtime.plan.precision.test_precision import Net, images, noise


def counting(layer: nn.Linear, count: burn.Buffer) -> Any:
    def function(x: Any) -> Any:
        count.set(count.value + 1.0)
        return layer(x)

    return function


def test_boxes_are_set_beside_products_of_bfloat16() -> None:
    layer, count = nn.Linear(8, 8), burn.Buffer(burn.from_numpy(normal(1)))
    x = burn.from_numpy(normal(4, 8))
    result = burn.compile(counting(layer, count), precision="bf16")
    before = count.value.numpy().copy()
    for _ in range(3):
        assert 0 < noise(result(x), layer(x)) < 0.05
    np.testing.assert_allclose(count.value.numpy(), before + 3, rtol=1e-6)
    assert not any("is not used" in note for note in result.notes)


def test_a_function_of_integers_sets_no_boxes() -> None:
    layer, count = nn.Linear(8, 8), burn.Buffer(burn.from_numpy(normal(1)))
    x = burn.from_numpy(normal(4, 8))
    result = burn.compile(counting(layer, count), precision="int8")
    np.testing.assert_allclose(result(x).numpy(), layer(x).numpy(), 1e-5, 1e-6)
    assert "int8 is not used: it sets boxes" in result.notes


def test_a_training_step_of_bfloat16_has_gradients_near_those_of_float32() -> None:
    x = images(4)
    updates = []
    for precision in ("float32", "bf16"):
        nn.init.seed(5)
        model = Net().to(burn.Autodiff(burn.Cpu()))
        opt = optim.SGD(model, lr=1.0)

        def step(x: Any, model: Any = model, opt: Any = opt) -> Any:
            value = ops.mean(ops.tanh(model(x)))
            opt.step(value.backward())
            return value.data

        before = {k: v.numpy().copy() for k, v in model.state_dict().items()}
        compiled = burn.compile(step, precision=precision)
        compiled(x)
        assert not any("is not used" in note for note in compiled.notes)
        after = {k: v.numpy() for k, v in model.state_dict().items()}
        updates.append({key: after[key] - before[key] for key in after})
    for key, expected in updates[0].items():
        assert updates[1][key].dtype == np.float32
        error = np.linalg.norm(updates[1][key] - expected)
        assert 0 < error <= 0.05 * np.linalg.norm(expected), key

"""Plans of buffers that have infinities, such as masks of scores."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, nn, ops
from burn.backend.cpu.onednn.binding import engine
from tests.runtime.onednn import normal
from tests.runtime.programs import program_of

Function = Callable[[Any, Any], Any]


def tensor(*shape: int, seed: int = 0) -> burn.Tensor:
    return burn.from_numpy(normal(*shape, seed=seed))


FILTERS, SCALE = tensor(4, 4, 3, 3, seed=1), tensor(4, seed=2)
MATRIX = tensor(6, 6, seed=3)


def normed(x: Any, scale: Any, bias: Any, mean: Any, variance: Any) -> Any:
    y = ops.conv(x, FILTERS, padding=1)
    return ops.relu(ops.batch_norm(y, scale, bias, mean, variance, epsilon=1e-5))


#: What is computed of an image [2, 4, 6, 6] and a box, and the shape of the box.
FUNCTIONS: dict[str, tuple[tuple[int, ...], Function]] = {
    "mask": ((6, 6), lambda x, box: ops.softmax(x @ MATRIX + box) @ x),
    "mask of a product": ((6, 6), lambda x, box: ops.softmax(x @ x.mT * 0.5 + box) @ x),
    "sum": ((6, 6), lambda x, box: ops.sigmoid(x + box).sum(-1)),
    "relu": ((6, 6), lambda x, box: ops.conv(ops.relu(x + box), FILTERS, padding=1)),
    "product": ((6, 6), lambda x, box: (x * box).max(-1)),
    "filters": ((4, 4, 3, 3), lambda x, box: ops.relu(ops.conv(x, box))),
    "bias": ((4,), lambda x, box: ops.relu(ops.conv(x, FILTERS, box, padding=1))),
    "linear": ((6, 6), lambda x, box: ops.tanh(ops.linear(x, box, None)) + x),
    "shift": ((6,), lambda x, box: ops.tanh(ops.linear(x, MATRIX, box)) + x),
    "norm": ((6,), lambda x, box: ops.layer_norm(x, box, None, axis=-1, epsilon=1e-5)),
    "scale": ((4,), lambda x, box: normed(x, box, SCALE, SCALE, ops.abs(SCALE))),
    "mean": ((4,), lambda x, box: normed(x, SCALE, SCALE, box, ops.abs(SCALE))),
    "variance": ((4,), lambda x, box: normed(x, SCALE, SCALE, SCALE, ops.abs(box))),
    "clip": ((6, 6), lambda x, box: ops.clip(x + box, -1.0, 1.0) @ MATRIX),
    "square": ((6, 6), lambda x, box: ops.exp(-(box * box) + x) @ MATRIX),
}


@pytest.mark.parametrize("special", [np.inf, -np.inf])
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("generated", [None, True])
@pytest.mark.parametrize("numpy", [False, True])
def test_boxes_with_infinities(
    name: str, special: float, generated: bool | None, numpy: bool
) -> None:
    shape, function = FUNCTIONS[name]
    array = normal(*shape, seed=5)
    array.reshape(-1)[[0, 2]] = special
    box = burn.Buffer(burn.from_numpy(array))
    if generated:
        pytest.importorskip("llvmlite", reason="kernels need llvmlite")
    compiled = burn.compile(lambda x: function(x, box), generated=generated)
    for turn in range(4):
        x = tensor(2, 4, 6, 6, seed=turn)
        expected = function(x, box.value).numpy()
        if numpy:
            with engine.numpy_only():
                actual = compiled(x).numpy()
        else:
            actual = compiled(x).numpy()
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)


def test_a_plan_with_a_mask_is_not_replayed() -> None:
    mask = np.triu(np.full((6, 6), -np.inf, np.float32), 1)
    box = burn.Buffer(burn.from_numpy(mask))
    compiled = burn.compile(lambda x: ops.softmax(x @ x.mT + box) @ x)
    for turn in range(3):
        compiled(tensor(2, 4, 6, 6, seed=turn))
    assert program_of(compiled)._node is not None


class Attention(nn.Module):
    """One head with a causal mask."""

    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(6, 6)
        mask = np.triu(np.full((5, 5), -np.inf, np.float32), 1)
        self.mask = nn.Buffer(burn.from_numpy(mask))

    def __call__(self, x: burn.Tensor) -> burn.Tensor:
        y = self.project(x)
        return ops.softmax(y @ x.mT + self.mask) @ y


def test_gradients_of_masked_scores_are_those_of_eager_calls() -> None:
    model = Attention().to(Autodiff(Cpu()))

    def step(x: burn.Tensor) -> tuple[burn.Tensor, list[burn.Tensor]]:
        loss = ops.mean(ops.tanh(model(x)))
        gradients = loss.backward()
        return loss.detach(), [gradients[box] for _, box in model.parameters()]

    compiled = burn.compile(step)
    for turn in range(4):
        x = tensor(2, 5, 6, seed=turn)
        (loss, grads), (expected, eager) = compiled(x), step(x)
        np.testing.assert_allclose(loss.numpy(), expected.numpy(), rtol=1e-5)
        for a, b in zip(grads, eager, strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-6)
    assert not compiled.notes

"""Plans that set boxes: steps of training with their gradients and updates."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, nn, ops
from tests.runtime.onednn import normal


def tensor(*shape: int, seed: int = 0) -> burn.Tensor:
    return burn.from_numpy(normal(*shape, seed=seed))


class Net(nn.Module):
    """A convolution with a norm in training, and a layer."""

    def __init__(self) -> None:
        self.conv = nn.Conv2d(3, 6, 3, padding=1)
        self.norm = nn.BatchNorm2d(6)
        self.layer = nn.Linear(6 * 2 * 3, 5)

    def __call__(self, x: Any) -> Any:
        x = ops.relu(self.norm(self.conv(x)))
        x = ops.max_pool(x, kernel_size=2, stride=2)
        return self.layer(ops.flatten(x, 1))


def trained() -> Net:
    net = Net().to(Autodiff(Cpu()))
    for seed, (_, box) in enumerate(net.parameters()):
        box.set(burn.from_numpy(normal(*box.shape, seed=seed) / 4))
    return net


def stepping(net: Any) -> Callable[[Any, Any], Any]:
    """A step of gradient descent, which returns the loss."""

    def step(x: Any, target: Any) -> Any:
        loss = ops.mean((net(x) - target) ** 2.0)
        grads = loss.backward()
        for _, box in net.parameters():
            box.set(box.value.detach() - grads[box] * 0.05)
        return loss.detach()

    return step


def held(net: Any) -> dict[str, Any]:
    boxes = net.state_dict().items()
    return {name: np.array(value) for name, value in boxes}


def assert_same_boxes(a: Any, b: Any) -> None:
    for name, array in held(a).items():
        np.testing.assert_allclose(held(b)[name], array, 1e-4, 1e-6, err_msg=name)


def test_a_step_of_training_is_a_plan() -> None:
    eager, planned = trained(), trained()
    one, other = stepping(eager), burn.compile(stepping(planned))
    for seed in range(6):
        x, target = tensor(4, 3, 4, 6, seed=seed), tensor(4, 5, seed=seed + 50)
        expected, actual = one(x, target), other(x, target)
        assert actual.backend is expected.backend
        np.testing.assert_allclose(actual.numpy(), expected.numpy(), rtol=1e-5)
        assert_same_boxes(eager, planned)
    assert not other.notes


def test_what_a_user_sets_between_steps_is_seen() -> None:
    eager, planned = trained(), trained()
    one, other = stepping(eager), burn.compile(stepping(planned))
    x, target = tensor(4, 3, 4, 6), tensor(4, 5)
    for seed in range(5):
        for net in (eager, planned):
            if seed % 2:
                net.layer.weight.set(tensor(5, 36, seed=seed))
        one(x, target), other(x, target)
        assert_same_boxes(eager, planned)


def test_what_was_held_before_a_step_does_not_change() -> None:
    net = trained()
    step = burn.compile(stepping(net))
    x, target = tensor(4, 3, 4, 6), tensor(4, 5)
    kept = []
    for _ in range(4):
        step(x, target)
        value = net.layer.weight.value
        kept.append((value, value.numpy().copy()))
    for value, before in kept:
        np.testing.assert_array_equal(value.numpy(), before)


def test_a_trained_model_is_compiled_for_inference_as_well() -> None:
    net = trained()
    step = burn.compile(stepping(net))
    x = tensor(4, 3, 4, 6)
    for seed in range(5):
        step(x, tensor(4, 5, seed=seed))
        valid = net.valid()
        same = burn.compile(valid)
        for _ in range(2):
            np.testing.assert_allclose(same(x).numpy(), valid(x).numpy(), 1e-5, 1e-6)


def test_a_counter_counts_every_call_once() -> None:
    counter = burn.Buffer(burn.tensor(0.0))

    def count(x: Any) -> Any:
        counter.set(counter.value + 1.0)
        return x + counter

    compiled = burn.compile(count)
    for step in range(5):
        assert compiled(burn.tensor([1.0])).tolist() == [2.0 + step]
    for step in range(5, 8):  # which the plan for finite numbers is left for
        assert compiled(burn.tensor([np.inf])).tolist() == [np.inf]
        assert counter.value.item() == step + 1
    assert not compiled.notes


def test_what_has_no_plan_is_done_once() -> None:
    counter = burn.Buffer(burn.tensor(0.0))

    def count(x: Any) -> Any:
        counter.set(counter.value + 1.0)
        return float(x.numpy().max())

    compiled = burn.compile(count)
    for step in range(3):
        compiled(tensor(20, 20))
        assert counter.value.item() == step + 1
    assert compiled.notes == ["float32[20, 20] is read on the host"]


def test_an_error_leaves_boxes_as_they_are() -> None:
    counter = burn.Buffer(burn.tensor(0.0))

    def count(x: Any, index: Any) -> Any:
        counter.set(counter.value + 1.0)
        return ops.take(x, index, 0)

    compiled = burn.compile(count)
    x = tensor(3)
    for _ in range(2):
        compiled(x, burn.tensor([1]))
    with pytest.raises(IndexError, match="index 7 is out of bounds"):
        compiled(x, burn.tensor([7]))
    assert counter.value.item() == 2
    compiled(x, burn.tensor([2]))
    assert counter.value.item() == 3


def test_branches_write_what_they_say() -> None:
    state = burn.Buffer(burn.tensor([0.0, 0.0]))

    def function(x: Any) -> Any:
        state.set(state.value + 1.0)
        if bool(ops.sum(x) > 0):
            state.set(state.value * 2.0)
        return x + state

    compiled, expected = burn.compile(function), np.zeros(2, np.float32)
    for sign in (1, -1, -1, 1, 1, -1):
        x = burn.tensor([1.0, 2.0]) * float(sign)
        expected = (expected + 1) * (2 if sign > 0 else 1)
        np.testing.assert_array_equal(compiled(x).numpy(), x.numpy() + expected)
        np.testing.assert_array_equal(state.numpy(), expected)


def test_boxes_swap_their_values() -> None:
    a, b = burn.Buffer(tensor(3, seed=1)), burn.Buffer(tensor(3, seed=2))

    def swap(x: Any) -> Any:
        first, second = a.value, b.value
        a.set(second)
        b.set(first * 1.0)
        return x + first

    compiled = burn.compile(swap)
    values = [tensor(3, seed=1).numpy(), tensor(3, seed=2).numpy()]
    for _ in range(5):
        actual = compiled(tensor(3))
        np.testing.assert_array_equal(actual.numpy(), tensor(3).numpy() + values[0])
        values.reverse()
        np.testing.assert_array_equal(a.numpy(), values[0])
        np.testing.assert_array_equal(b.numpy(), values[1])


def test_random_numbers_are_drawn_anew() -> None:
    def drawing() -> tuple[Any, Any]:
        layer = nn.Dropout(0.5).to(Autodiff(Cpu()))
        return layer, lambda x: layer(x.to(Autodiff(Cpu()))).detach()

    (_, eager), (_, function) = drawing(), drawing()
    compiled = burn.compile(function)
    x = tensor(6, 7)
    actual = [compiled(x).numpy() for _ in range(4)]
    assert any((actual[0] != other).any() for other in actual[1:])
    assert not compiled.notes
    assert eager(x).shape == x.shape


def test_freezing_records_plans_anew() -> None:
    nn.init.seed(4)
    model = nn.Linear(4, 3).to(Autodiff(Cpu()))
    x = tensor(2, 4)

    @burn.compile
    def gradients(x: burn.Tensor) -> dict[str, burn.Tensor]:
        return (model(x) ** 2.0).mean().backward().by_name(model)

    @burn.compile
    def unrelated(x: burn.Tensor) -> burn.Tensor:
        return x * 2.0

    assert gradients(x).keys() == {"weight", "bias"}
    unrelated(x)
    kept = unrelated.executables
    model.freeze("weight")
    for _ in range(2):
        assert gradients(x).keys() == {"bias"}
        unrelated(x)
    model.unfreeze()
    for _ in range(2):
        assert gradients(x).keys() == {"weight", "bias"}
    assert not gradients.notes
    assert unrelated.executables == kept

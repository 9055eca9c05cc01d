"""Activation checkpointing: the same bits, for less memory."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, Tensor, nn, ops, optim, train
from burn.backend.tape import Leaf
from burn.plan.compiled import Compiled
from burn.plan.lifetimes import peak_bytes
from tests.runtime.programs import optimized

TRAINING = Autodiff(Cpu())


class Block(nn.Module):
    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.norm = nn.BatchNorm1d(width)
        self.dropout = nn.Dropout(0.3, seed=3)

    def __call__(self, x: Tensor) -> Tensor:
        return self.dropout(ops.tanh(self.norm(self.linear(x)))) + x


class Stack(nn.Module):
    def __init__(self, depth: int = 3, shared: bool = False) -> None:
        super().__init__()
        first = Block()
        blocks = [first if shared else Block() for _ in range(depth)]
        self.blocks = nn.ModuleList(blocks)
        self.head = nn.Linear(6, 2)

    def __call__(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def _stack(**options: Any) -> Stack:
    nn.init.seed(5)
    return Stack(**options).to(TRAINING)


def _images(seed: int = 0, rows: int = 4) -> Tensor:
    values = np.random.default_rng(seed).normal(size=(rows, 6)).astype(np.float32)
    return burn.tensor(values)


def _trained(model: Stack, *, compiled: bool, precision: Any = "float32") -> Any:
    opt = optim.SGD(model, lr=0.1)

    @train.step(model, opt, compiled=compiled, precision=precision)
    def step(x: Tensor) -> Tensor:
        return (model(x) ** 2).mean()

    losses = [step(_images(seed)).numpy().item() for seed in range(4)]
    return losses, {path: box.numpy() for path, box in model.boxes()}


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_steps_have_the_same_bits(shared: bool, compiled: bool, precision: str) -> None:
    plain = _stack(shared=shared)
    expected = _trained(plain, compiled=compiled, precision=precision)
    model = nn.checkpoint(_stack(shared=shared), "blocks.*")
    losses, boxes = _trained(model, compiled=compiled, precision=precision)
    assert losses == expected[0]
    assert boxes.keys() == expected[1].keys()
    for path, value in boxes.items():
        np.testing.assert_array_equal(value, expected[1][path], err_msg=path)


def test_a_plan_needs_less_memory() -> None:
    peaks, x = [], _images(rows=4096)
    for is_checkpointed in (False, True):
        model = _stack(depth=30)
        if is_checkpointed:
            nn.checkpoint(model, "blocks.*")
        loss = Compiled(lambda x, m=model: (m(x) ** 2).mean().backward().by_name(m))
        loss(x)
        peaks.append(peak_bytes(optimized(loss), [x.numpy()], set()))
    assert peaks[1] < 0.4 * peaks[0]


def test_the_tape_of_a_block_is_dropped() -> None:
    model = _stack()
    calls = _calls(model(_images()))
    nn.checkpoint(model, "blocks.*")
    assert _calls(model(_images())) < calls / 3


def _calls(tensor: Tensor) -> int:
    """Return the number of nodes on the tape below ``tensor`` that are no leaves."""
    seen, stack = {tensor.node}, [tensor.node]
    while stack:
        for node in stack.pop().parents():
            if node not in seen:
                seen.add(node)
                stack.append(node)
    return sum(not isinstance(node, Leaf) for node in seen)


def test_several_results_captured_tensors_and_arguments_that_are_returned() -> None:
    base = burn.tensor(np.array([0.5, -2.0, 3.0], np.float32)).to(TRAINING)

    def gradients(wrap: Callable[[Any], Any]) -> list[Any]:
        x, scale, y = base.require_grad(), base.require_grad(), base.require_grad()

        def function(a: Tensor, pair: dict[str, Tensor]) -> Any:
            product = a * scale
            return [product, (ops.exp(product), product)], a, pair["b"] * 3.0

        (first, (second, third)), same, unused = wrap(function)(x, {"b": y})
        loss = (first * second + third * same).sum()
        grads = loss.backward()
        assert y not in grads
        assert unused.shape == (3,)
        return [grads[x].numpy(), grads[scale].numpy()]

    expected = gradients(lambda function: function)
    for got, want in zip(gradients(nn.checkpointed), expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_nested_checkpoints() -> None:
    plain = _stack()
    expected = plain(_images()).sum().backward().by_name(plain)
    model = _stack()
    nn.checkpoint(model, "blocks.*")
    got = nn.checkpointed(model)(_images()).sum().backward().by_name(model)
    assert got.keys() == expected.keys()
    for path, gradient in got.items():
        np.testing.assert_array_equal(gradient.numpy(), expected[path].numpy())


def test_gradients_of_gradients() -> None:
    def penalty(wrap: Callable[[Any], Any]) -> Any:
        outer = Autodiff(Autodiff(Cpu()))
        nn.init.seed(1)
        model = nn.Linear(6, 6).to(outer)
        loss = (wrap(lambda x: ops.tanh(model(x)))(_images()) ** 2).sum()
        (weight,) = [g for p, g in loss.backward().by_name(model).items() if "w" in p]
        return (weight**2).sum().backward()[model.weight].numpy()

    expected = penalty(lambda function: function)
    np.testing.assert_allclose(penalty(nn.checkpointed), expected, rtol=1e-4)


def test_without_gradients_it_is_the_function() -> None:
    model = _stack().valid()
    expected = model(_images()).numpy()
    nn.checkpoint(model, "blocks.*")
    np.testing.assert_array_equal(model(_images()).numpy(), expected)


def test_a_function_that_changed_is_an_error() -> None:
    x = burn.tensor(np.ones(4, np.float32)).to(TRAINING).require_grad()
    sizes = iter([4, 2])
    y = nn.checkpointed(lambda t: (t * 2.0)[: next(sizes)])(x)
    with pytest.raises(RuntimeError, match=r"shapes \[\(4,\)\], got"):
        y.sum().backward()


def test_patterns_choose_the_outermost_and_must_match() -> None:
    model = nn.checkpoint(_stack(), "blocks.*")
    classes = {path: type(m) for path, m in model.modules()}
    assert classes["blocks.0"] is not Block
    assert classes["blocks.0"].__name__ == "Block"
    assert classes["blocks.0.linear"] is nn.Linear
    with pytest.raises(ValueError, match="nothing"):
        nn.checkpoint(model, "nothing.*")


def test_with_dropout_on_outputs_and_in_copies() -> None:
    model = nn.dropout(nn.checkpoint(_stack(), "blocks.0"), "blocks.0", p=0.5, seed=1)
    keys = model.state_dict().keys()
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        gradients = other(_images()).sum().backward().by_name(other)
        assert "blocks.0.linear.weight" in gradients
    nn.dropout(model, "blocks.0", p=0.0)
    assert model.state_dict().keys() == keys == _stack().state_dict().keys()
    assert _calls(model(_images())) < _calls(_stack()(_images()))

"""Adapters are all that is trained, and go into the weights."""

import copy
from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, Tensor, loss, nn, ops, optim, train


class Net(nn.Module):
    """[N, 12] to four classes, through both kinds of linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(12, 10)
        self.blocks = nn.ModuleTuple(nn.Conv1D(8, 10), nn.Linear(8, 8, bias=False))
        self.head = nn.Linear(8, 4)

    def __call__(self, x: Tensor) -> Tensor:
        x = ops.tanh(self.query(x))
        for block in self.blocks:
            x = ops.tanh(block(x))
        return self.head(x)


X = burn.tensor(np.random.default_rng(0).standard_normal((16, 12), np.float32))
Y = burn.tensor(np.random.default_rng(1).integers(0, 4, 16))


def net() -> Net:
    nn.init.seed(2)
    return Net().to(Autodiff(Cpu()))


def trained(model: Any) -> list[float]:
    opt = optim.AdamW(model, lr=0.02)
    step = train.step(model, opt)(lambda x, y: loss.cross_entropy(model(x), y))
    return [step(X, Y).item() for _ in range(60)]


def test_adapters_are_trained_and_merged() -> None:
    model = net()
    before = {key: value.numpy().copy() for key, value in model.state_dict().items()}
    first = model.valid()(X).numpy()
    assert nn.lora(model, "[qb]*", rank=2, alpha=4) is model
    np.testing.assert_array_equal(model.valid()(X).numpy(), first)
    wanted = {path for path, box in model.parameters() if box.requires_grad}
    layers = ("query", "blocks.0", "blocks.1")
    assert wanted == {f"{layer}.lora_{part}" for layer in layers for part in "AB"}
    losses = trained(model)
    assert losses[-1] < 0.7 * losses[0]
    state = model.state_dict()
    for key, value in before.items():
        np.testing.assert_array_equal(state[key].numpy(), value)
    adapted = model.valid()(X).numpy()
    assert np.abs(adapted - first).max() > 0.1
    nn.merge_lora(model)
    assert list(model.state_dict()) == list(before)
    np.testing.assert_allclose(model.valid()(X).numpy(), adapted, 1e-4, 1e-5)
    np.testing.assert_array_equal(model.head.weight.numpy(), before["head.weight"])
    again = Net().load_state_dict(model.state_dict())
    np.testing.assert_allclose(again(X).numpy(), adapted, 1e-4, 1e-5)


def test_a_head_is_trained_beside_adapters() -> None:
    model = nn.lora(net(), "query").unfreeze("head")
    before = model.head.weight.numpy().copy()
    trained(model)
    assert np.abs(model.head.weight.numpy() - before).max() > 0.01


def test_what_is_frozen_before_adapters_are_added_decides_what_is_trained() -> None:
    model = net().freeze("blocks")
    nn.lora(model, "query", rank=2)
    wanted = {path for path, box in model.parameters() if box.requires_grad}
    assert wanted == {"query.lora_A", "query.lora_B", "head.weight", "head.bias"}


def test_adapted_models_are_copied() -> None:
    model = nn.lora(net(), rank=1)
    twin = copy.deepcopy(model)
    trained(twin)
    assert not model.query.lora_B.numpy().any()  # type: ignore[attr-defined]
    assert twin.query.lora_B.numpy().any()  # type: ignore[attr-defined]


def test_wrong_adapters_are_refused() -> None:
    with pytest.raises(ValueError, match="'conv'; there are query, blocks.0, blocks.1"):
        nn.lora(net(), "conv")
    with pytest.raises(ValueError, match="expected rank >= 1, got 0"):
        nn.lora(net(), rank=0)
    with pytest.raises(ValueError, match="expected layers with adapters in Net"):
        nn.merge_lora(net())


def test_patterns_of_several_calls_are_added() -> None:
    model = nn.lora(net(), "query", rank=2)
    model.unfreeze("head")
    nn.lora(model, "blocks.0", "blocks.1", rank=3)
    adapted = {p.removesuffix(".lora_A") for p, _ in model.parameters() if "_A" in p}
    assert adapted == {"query", "blocks.0", "blocks.1"}
    trained_paths = {path for path, box in model.parameters() if box.requires_grad}
    adapters = {f"{layer}.lora_{part}" for layer in adapted for part in "AB"}
    assert trained_paths == adapters | {"head.weight", "head.bias"}
    with pytest.raises(ValueError, match="got 'blocks.2'"):
        nn.lora(net(), "query", "blocks.2")


def test_an_adapter_beside_a_trained_layer_freezes_it() -> None:
    model = nn.lora(net(), "query", rank=2).unfreeze("head")
    nn.lora(model, "head", rank=2)
    boxes = dict(model.parameters())
    assert not boxes["head.weight"].requires_grad
    assert boxes["head.lora_A"].requires_grad


def test_adapters_and_dropout_are_added_in_either_order() -> None:
    results = []
    for is_dropout_first in (True, False):
        model = net()
        if is_dropout_first:
            nn.dropout(model, "*", p=0.5, seed=3)
        nn.lora(model, "query", "blocks.*", rank=2)
        if not is_dropout_first:
            nn.dropout(model, "*", p=0.5, seed=3)
        assert not np.array_equal(model(X).numpy(), model.valid()(X).numpy())
        trained(model)
        adapted = model.valid()(X).numpy()
        nn.merge_lora(model)
        np.testing.assert_allclose(model.valid()(X).numpy(), adapted, 1e-5, 1e-5)
        assert not np.array_equal(model(X).numpy(), adapted)  # dropout is still there
        results.append(adapted)
    np.testing.assert_array_equal(results[0], results[1])

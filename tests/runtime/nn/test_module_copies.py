"""Copies of modules, arrays that modules are set from, and gradients of gradients."""

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, Tensor, nn, ops
from burn.record import open_record
from tests.runtime.onednn import assert_close, normal

ONCE, TWICE = Autodiff(Cpu()), Autodiff(Autodiff(Cpu()))
COPIES: list[Callable[[Any], Any]] = [
    copy.deepcopy,
    lambda value: pickle.loads(pickle.dumps(value)),
]
TOKENS = burn.tensor(np.array([1, 5, 0]))


class Tied(nn.Module):
    """A table, a layer, a norm, and a layer whose weight is the table."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(6, 4)
        self.layer, self.norm = nn.Linear(4, 4), nn.BatchNorm1d(4)
        self.out = nn.Linear(4, 6, bias=False)
        self.out.weight = self.table.weight

    def __call__(self, tokens: Tensor) -> Tensor:
        return self.out(self.norm(self.layer(self.table(tokens))))


@pytest.mark.parametrize("backend", [Cpu(), ONCE, TWICE], ids=str)
@pytest.mark.parametrize("copied", COPIES, ids=["deepcopy", "pickle"])
def test_a_copy_has_its_own_boxes(backend: Any, copied: Callable[[Any], Any]) -> None:
    model = Tied().to(backend)
    model(TOKENS)
    other = copied(model)
    assert other.out.weight is other.table.weight
    assert other.layer.weight is not model.layer.weight
    assert [box.backend for _, box in other.boxes()] == [
        box.backend for _, box in model.boxes()
    ]
    np.testing.assert_array_equal(other(TOKENS).numpy(), model(TOKENS).numpy())
    other.layer.weight.set(other.layer.weight.value * 2.0)
    assert not np.array_equal(other.layer.weight.numpy(), model.layer.weight.numpy())


@pytest.mark.parametrize("copied", COPIES, ids=["deepcopy", "pickle"])
def test_gradients_of_a_copy_are_found_by_its_boxes(
    copied: Callable[[Any], Any],
) -> None:
    model = nn.Linear(4, 4).to(ONCE)
    other, x = copied(model), burn.from_numpy(normal(3, 4))
    found = [ops.sum(ops.tanh(m(x))).backward() for m in (model, other)]
    assert set(found[1]) == {other.weight, other.bias}
    expected = found[0][model.weight].numpy()
    np.testing.assert_array_equal(found[1][other.weight].numpy(), expected)


def test_leaves_of_another_process_come_before_what_is_computed_from_them() -> None:
    model = copy.deepcopy(nn.Linear(2, 2).to(ONCE))
    weight = model.weight.value
    weight.node.order = 10**12  # of a process that has computed much more
    other = pickle.loads(pickle.dumps(model))
    y = ops.tanh(other.weight.value * 2.0)
    assert other.weight.value.node.order < y.node.order


@pytest.mark.parametrize("copied", COPIES, ids=["deepcopy", "pickle"])
def test_a_copy_of_a_compiled_model_records_its_own_plans(
    copied: Callable[[Any], Any],
) -> None:
    plan = burn.compile(nn.Linear(4, 4), precision="bf16")
    x = burn.from_numpy(normal(3, 4))
    for _ in range(2):
        plan(x)
    other = copied(plan)
    assert other.precision == "bf16"
    other.function.weight.set(other.function.weight.value * 0.0)
    for _ in range(3):
        rows = np.broadcast_to(other.function.bias.numpy(), (3, 4))
        assert_close(other(x).numpy(), rows, 2**-7)
        assert_close(plan(x).numpy(), plan.function(x).numpy(), 2**-6)


@pytest.mark.parametrize("part", [slice(None), np.s_[::-1]])
def test_arrays_of_a_state_dict_may_be_changed_afterwards(part: Any) -> None:
    layer = nn.Linear(3, 4)
    state = {"weight": normal(4, 3)[part], "bias": normal(4, seed=1)}
    expected = state["weight"].copy()
    layer.load_state_dict(state)
    state["weight"][:] = 7
    np.testing.assert_array_equal(layer.weight.numpy(), expected)
    whole = normal(4, 3)
    view = whole.view()
    view.flags.writeable = False  # its owner can be written to
    layer.load_state_dict({**state, "weight": view})
    whole[:] = 7
    np.testing.assert_array_equal(layer.weight.numpy(), normal(4, 3))


def test_mapped_weights_are_not_copied(tmp_path: Path) -> None:
    layer, path = nn.Linear(3, 4), tmp_path / "model.safetensors"
    layer.save_weights(path)
    layer.load_weights(path)
    assert not layer.weight.numpy().base.flags.writeable
    array = open_record(path)["weight"]
    layer.load_state_dict({**layer.state_dict(), "weight": array})
    assert np.may_share_memory(layer.weight.numpy(), array)


def test_penalty_on_gradients_of_parameters() -> None:
    model, x = nn.Linear(3, 1).to(TWICE), burn.from_numpy(normal(5, 3))

    def penalty(weight: Any) -> float:
        slope = 1 - np.tanh(x.numpy() @ weight.T + bias) ** 2
        return float(np.sum((slope.T @ x.numpy().astype(np.float64)) ** 2))

    assert model.bias is not None
    bias = model.bias.numpy().astype(np.float64)
    first = ops.sum(ops.tanh(model(x))).backward()
    second = ops.sum(first[model.weight] ** 2.0).backward()
    weight = model.weight.numpy().astype(np.float64)
    for place in range(3):
        step = np.zeros((1, 3))
        step[0, place] = 1e-4
        slope = (penalty(weight + step) - penalty(weight - step)) / 2e-4
        np.testing.assert_allclose(second[model.weight].numpy()[0, place], slope, 1e-3)


def test_a_step_by_gradients_leaves_no_history() -> None:
    model, x = nn.Linear(3, 1).to(TWICE), burn.from_numpy(normal(5, 3))
    for _ in range(2):
        grads = ops.sum(ops.tanh(model(x))).backward()
        weight = model.weight.value.detach() - grads[model.weight] * 0.1
        model.weight.set(weight)
        held = model.weight.value
        assert held.node.key is held.data.node.key is model.weight


def test_second_derivatives_by_inputs() -> None:
    x = burn.from_numpy(normal(4)).to(TWICE).require_grad()
    first = ops.sum(x * x * x).backward()[x]
    second = ops.sum(first).backward()[x]
    np.testing.assert_allclose(second.numpy(), 6 * x.numpy(), rtol=1e-6)


@pytest.mark.parametrize("backend", [ONCE, TWICE], ids=str)
def test_a_loss_without_parameters_is_refused(backend: Any) -> None:
    model = nn.Linear(3, 2)  # nobody moved it
    x = burn.from_numpy(normal(2, 3)).to(backend)
    with pytest.raises(ValueError, match="depends on no parameter"):
        ops.sum(model(x)).backward()

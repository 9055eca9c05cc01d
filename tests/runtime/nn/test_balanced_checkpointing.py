"""Balanced checkpointing: memory-bound results are computed again, to the same bits."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, Tensor, nn, ops, optim, train
from burn.backend.balanced import BalancedCallNode
from burn.backend.tape import Node
from burn.plan.compiled import Compiled
from burn.plan.lifetimes import peak_bytes
from burn.primitive import primitives
from tests.runtime.programs import optimized

KEEPING = Autodiff(Cpu())
BALANCED = Autodiff(Cpu(), checkpointing="balanced")


class ConvNet(nn.Module):
    shape = (4, 3, 8, 8)

    def __init__(self) -> None:
        super().__init__()
        widths = (3, 4, 4, 4, 4)
        pairs = zip(widths, widths[1:], strict=False)
        self.convs = nn.ModuleList(nn.Conv2d(i, o, 3, padding=1) for i, o in pairs)
        self.norms = nn.ModuleList(nn.BatchNorm2d(4) for _ in widths[1:])
        self.dropout = nn.Dropout(0.3, seed=3)
        self.head = nn.Linear(64, 2)

    def __call__(self, x: Tensor) -> Tensor:
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x = ops.relu(norm(conv(x)))
        x = ops.max_pool(x, kernel_size=(2, 2), stride=(2, 2))
        halves = ops.split(x, (2, 2), 1)
        x = ops.concat([ops.tanh(halves[0]), halves[1] * 2.0], 1)
        return self.head(self.dropout(ops.flatten(x, 1)))


class Transformer(nn.Module):
    shape = (2, 5, 8)

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(
                *(8, 2, 16), dropout=0.2, activation="gelu", batch_first=True
            )
            for _ in range(3)
        )

    def __call__(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        return x


NETWORKS: dict[str, Any] = {"conv": ConvNet, "transformer": Transformer}


def _batch(shape: tuple[int, ...], seed: int = 0) -> Tensor:
    values = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
    return burn.tensor(values)


def _model(make: Any, backend: Autodiff) -> Any:
    nn.init.seed(5)
    return make().to(backend)


def _trained(model: Any, **options: Any) -> Any:
    """Return losses and boxes after three steps; boxes have statistics and keys."""

    @train.step(model, optim.SGD(model, lr=0.1), **options)
    def step(x: Tensor) -> Tensor:
        value: Tensor = (model(x) ** 2).mean()
        return value

    losses = [float(step(_batch(model.shape, seed))) for seed in range(3)]
    return losses, {path: box.numpy() for path, box in model.boxes()}


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("precision", ["float32", "bf16", "fp16"])
def test_steps_have_the_same_bits(network: str, compiled: bool, precision: Any) -> None:
    make, options = NETWORKS[network], {"compiled": compiled, "precision": precision}
    expected = _trained(_model(make, KEEPING), **options)
    losses, boxes = _trained(_model(make, BALANCED), **options)
    assert losses == expected[0]
    assert boxes.keys() == expected[1].keys()
    for path, value in boxes.items():
        np.testing.assert_array_equal(value, expected[1][path], err_msg=path)


def test_with_checkpointed_blocks_the_bits_are_the_same() -> None:
    expected = _trained(nn.checkpoint(_model(Transformer, KEEPING), "blocks.*"))
    model = nn.checkpoint(_model(Transformer, BALANCED), "blocks.*")
    losses, boxes = _trained(model)
    assert losses == expected[0]
    for path, value in boxes.items():
        np.testing.assert_array_equal(value, expected[1][path], err_msg=path)


@pytest.mark.parametrize("network", NETWORKS)
def test_a_plan_needs_less_memory(network: str) -> None:
    peaks, make = [], NETWORKS[network]
    x = _batch((64, *make.shape[1:]))
    for backend in (KEEPING, BALANCED):
        model = _model(make, backend)
        loss = Compiled(lambda x, m=model: (m(x) ** 2).mean().backward().by_name(m))
        loss(x)
        peaks.append(peak_bytes(optimized(loss), [x.numpy()], set()))
    assert peaks[1] < 0.9 * peaks[0]


def _calls(tensor: Tensor) -> list[BalancedCallNode]:
    seen: set[Node] = {tensor.node}
    stack = list(seen)
    while stack:
        for node in stack.pop().parents():
            if node not in seen:
                seen.add(node)
                stack.append(node)
    return [node for node in seen if isinstance(node, BalancedCallNode)]


def test_the_tape_has_no_results_of_memory_bound_primitives() -> None:
    loss = (_model(ConvNet, BALANCED)(_batch(ConvNet.shape)) ** 2).mean()
    calls = _calls(loss)
    assert {call.primitive.name for call in calls if call.result is not None} == {
        *("conv", "max_pool", "linear", "mean")
    }
    loss.backward()
    assert not [c for c in calls if c.primitive.memory_bound and c.result is not None]


def test_each_result_is_computed_again_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, kernel = [], ops.tanh.kernel

    def counting(x: Any) -> Any:
        calls.append(x)
        return kernel(x)

    monkeypatch.setattr(ops.tanh, "kernel", counting)
    monkeypatch.setattr(ops.tanh, "device_kernels", {})
    x = _batch((3,)).to(BALANCED).require_grad()
    y = ops.tanh(x)
    (y * y + ops.exp(y)).sum().backward()
    assert len(calls) == 2


def test_after_an_error_nothing_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    x = _batch((3,)).to(BALANCED).require_grad()
    loss = (ops.exp(ops.tanh(x)) ** 2).sum()

    def fail(*args: Any, **options: Any) -> Any:
        raise MemoryError("no memory")

    with monkeypatch.context() as patch:
        patch.setattr(ops.tanh, "rule", fail)
        with pytest.raises(MemoryError):
            loss.backward()
    calls = _calls(loss)
    assert not [c for c in calls if c.primitive.memory_bound and c.result is not None]
    assert x in loss.backward()


def test_long_chains_need_no_recursion() -> None:
    x = y = _batch((2,)).to(BALANCED).require_grad()
    for _ in range(3000):
        y = y * 1.0
    np.testing.assert_array_equal(y.sum().backward()[x].numpy(), np.ones(2))


def _second(backend: Autodiff, function: Callable[[Tensor], Tensor]) -> Any:
    x = _batch((4,)).to(backend).require_grad()
    gradient = function(x).sum().backward()[x]
    return (gradient * gradient).sum().backward()[x].numpy()


def test_gradients_of_gradients() -> None:
    def function(x: Tensor) -> Tensor:
        return ops.tanh(x) * ops.exp(x * 0.5)

    expected = _second(Autodiff(KEEPING), function)
    balanced = Autodiff(BALANCED, checkpointing="balanced")
    np.testing.assert_allclose(_second(balanced, function), expected, rtol=1e-6)


def test_copies_and_pickles_keep_the_strategy() -> None:
    assert Autodiff(Cpu(), checkpointing="balanced") is BALANCED is not KEEPING
    assert pickle.loads(pickle.dumps(BALANCED)) is BALANCED
    assert copy.deepcopy(BALANCED) is BALANCED
    assert repr(BALANCED) == "Autodiff(Cpu(), checkpointing='balanced')"
    fresh = Autodiff(Cpu(), True, checkpointing="balanced")
    assert pickle.loads(pickle.dumps(fresh)).checkpointing == "balanced"


def test_an_unknown_strategy_is_an_error() -> None:
    with pytest.raises(ValueError, match="got 'all'"):
        Autodiff(Cpu(), checkpointing="all")  # type: ignore[arg-type]


def test_products_convolutions_and_reductions_are_kept() -> None:
    known = primitives()
    kept = "matmul linear einsum conv conv_transpose lstm gru rnn sum mean max min topk"
    assert not [name for name in kept.split() if known[name].memory_bound]
    again = "add mul exp where cast reshape permute relu gelu dropout layer_norm expand"
    assert all(known[name].memory_bound for name in again.split())

"""Plans with branches in straight parts, on a device that repeats straight plans."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import pytest

import burn
from burn import nn, ops
from burn.backend.cuda.graphs import branches, graph
from burn.backend.cuda.graphs.program import Program
from burn.plan.executable import Plan
from burn.plan.parts import Part, parts_of
from burn.plan.plan_ir import Read, Segment
from burn.tensor import innermost
from tests.runtime.onednn import assert_close, normal
from tests.runtime.plan.test_seam import OtherDevice


class Repeated:
    """A program in place of its graph, which may not have steps of ``nonzero``."""

    def __init__(
        self, program: Program, device: Any, inputs: Any, read: Any, shared: Any
    ) -> None:
        self._program, self._device = program, device
        self._constants, self._read = program.constants(), read
        self.kernels = len(program._steps)
        names = [step.primitive.name for step, _ in program._steps]
        device.captured.append(names)
        if "nonzero" in names:
            raise RuntimeError("a kernel waits for the device")

    def changed(self) -> frozenset[Any]:
        return frozenset(b for b, a in self._read if innermost(b.held()).data is not a)

    def launch(self, inputs: list[Any]) -> Any:
        reads = self._program.reads.values()
        values = {read.place: innermost(read.held()).data for read in reads}
        result, new = self._program.run(inputs, {**self._constants, **values})
        for box, value in zip(self._program.writes, new, strict=True):
            box.set(value)
        return result


class PartDevice(OtherDevice):
    """A device whose plans are repeated part by part."""

    def __init__(self) -> None:
        super().__init__()
        self.captured, self.plans = list[list[str]](), list[Plan]()

    def current(self) -> AbstractContextManager[None]:
        return nullcontext()

    def bind(self, plan: Plan) -> Any:
        self.plans.append(plan)
        return branches.bound(plan, self)  # type: ignore[arg-type]


def steps_of_nonzero(plan: Plan, device: Any, inputs: Any) -> list[int]:
    steps = enumerate(plan.root.steps)
    return [n for n, s in steps if not isinstance(s, Read) and "nonz" in str(s)]


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> PartDevice:
    monkeypatch.setattr(graph, "CapturedGraph", Repeated)
    monkeypatch.setattr(branches, "unrepeatable_steps", steps_of_nonzero)
    return PartDevice()


def branching(x: Any) -> Any:
    y = ops.tanh(ops.exp(x * 0.1) + 1.0)
    if y.sum().item() > 0:
        z = ops.relu(y * 2.0 + x)
        return (z - y, x) if z.max().item() > 3 else (z + y, y)
    return (ops.sigmoid(y * x - 1.0), y)


def loop(x: Any) -> Any:
    total, count = x, 0
    while ops.mean(total).item() < 1.0 and count < 4:
        total, count = ops.tanh(total * 0.5 + 1.0) + x * x, count + 1
    return total, total * x


FUNCTIONS: dict[str, Callable[[Any], Any]] = {"branches": branching, "loop": loop}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_part_is_a_graph(device: PartDevice, name: str) -> None:
    function = FUNCTIONS[name]
    compiled = burn.compile(function)
    for call in range(24):
        x = burn.from_numpy(normal(3, 4, seed=call % 6) * (1 + call % 3), device)
        for actual, expected in zip(compiled(x), function(x), strict=True):
            assert_close(actual.numpy(), expected.numpy(), 1e-6)
    assert compiled.notes == []
    graphs: Any = compiled.executables[-1]
    assert graphs.kernels >= 2


class Weighted(nn.Module):
    """A layer, and a branch whose layer has a weight that the first one reads too."""

    def __init__(self) -> None:
        self.linear = nn.Linear(6, 6)
        self.count = nn.Buffer(burn.from_numpy(np.zeros((), np.float32)))
        self.shift = nn.Buffer(burn.from_numpy(np.zeros(6, np.float32)))

    def __call__(self, x: Any) -> Any:
        weight = ops.transpose(self.linear.weight.value, 0, 1) * 2.0
        y = ops.relu(ops.tanh(x @ weight) + self.count.value)
        self.count.set(self.count.value + ops.max(y))
        if y.sum().item() > 4.0:
            y = ops.sigmoid(y @ weight) + ops.exp(y * 0.1)
            self.shift.set(self.shift.value + ops.mean(y, 0))
        return self.linear(ops.tanh(y)) + self.shift.value


def test_boxes_that_a_part_sets_are_read_by_the_others(device: PartDevice) -> None:
    nets = [Weighted().to(device) for _ in range(2)]
    nets[1].load_state_dict(nets[0].state_dict())
    compiled = burn.compile(nets[0])
    for call in range(12):
        x = burn.from_numpy(normal(3, 6, seed=call) * (call % 3), device)
        assert_close(compiled(x).numpy(), nets[1](x).numpy(), 1e-5)
        for key, value in nets[0].state_dict().items():
            assert_close(value.numpy(), nets[1].state_dict()[key].numpy(), 1e-5)
    assert compiled.notes == []


def test_constants_of_a_branch_are_constants_of_its_part(device: PartDevice) -> None:
    x = burn.from_numpy(normal(3, 6) * 9, device)
    burn.compile(Weighted().to(device))(x)
    first = parts_of(device.plans[-1])
    (last,) = first.children.values()
    # The activation, the new count and the value that is read: no weight is passed.
    assert (first.takes, len(first.gives), len(last.takes)) == ((0,), 3, 2)
    steps = [s for s in last.plan.root.steps if not isinstance(s, Read)]
    assert [s.primitive.name for s in steps].count("transpose") == 1


def positions(x: Any) -> Any:
    y = ops.relu(ops.tanh(ops.exp(x) - 1.0) * 2.0 + 0.5)
    places = ops.nonzero(y)
    z = ops.exp(y * 0.5) + 1.0
    return places * 2, ops.sigmoid(z) * ops.tanh(z - y)


def test_a_plan_is_cut_where_a_graph_cannot_repeat_a_step(device: PartDevice) -> None:
    compiled = burn.compile(positions)
    x = burn.from_numpy(normal(3, 4), device)
    for _ in range(4):
        for actual, expected in zip(compiled(x), positions(x), strict=True):
            assert_close(actual.numpy(), expected.numpy(), 1e-6)
    assert compiled.notes == []
    whole, *parts = device.captured
    assert "nonzero" in whole and len(parts) == 2
    assert not any("nonzero" in names for names in parts)


def test_other_positions_are_recorded_again(device: PartDevice) -> None:
    compiled = burn.compile(positions)
    for call in range(8):
        x = burn.from_numpy(normal(3, 4, seed=call % 4), device)
        for actual, expected in zip(compiled(x), positions(x), strict=True):
            assert_close(actual.numpy(), expected.numpy(), 1e-6)


def test_parts_without_steps_before_a_guard(device: PartDevice) -> None:
    def function(x: Any, rate: Any) -> Any:
        return ops.tanh(ops.exp(x) * 2.0) + 1.0 if rate.item() == 16 else ops.relu(x)

    compiled = burn.compile(function)
    for call in range(8):
        rate = burn.from_numpy(np.array(16 if call % 3 else 8), device)
        x = burn.from_numpy(normal(3, 4, seed=call), device)
        assert_close(compiled(x, rate).numpy(), function(x, rate).numpy(), 1e-6)
    assert [len(names) for names in device.captured] == [1]  # the chain is one kernel


def test_parts_of_a_plan_with_gradients_keep_forward_values(device: PartDevice) -> None:
    net = nn.Linear(4, 4).to(burn.Autodiff(device))

    def gradient(x: Any) -> Any:
        y = ops.tanh(net(x))
        if y.sum().item() > -99:
            y = y * y
        return y.sum().backward()[net.weight]

    burn.compile(gradient)(burn.from_numpy(normal(3, 4), device))
    parts = every(parts_of(device.plans[-1]))
    assert [part.plan.has_gradients for part in parts] == [True, True]


def every(part: Part) -> list[Part]:
    following = [*part.children.values(), *filter(None, [part.then])]
    return [part, *(p for each in following for p in every(each))]


def test_an_empty_plan_is_one_part() -> None:
    part = parts_of(Plan(Segment(), []))
    assert every(part) == [part] and part.is_last and part.count == 0

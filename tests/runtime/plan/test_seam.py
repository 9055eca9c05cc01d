"""The seam between plans and devices: another device binds the plans of the CPU."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Backend, nn, ops
from burn.backend.arrays import ArrayBackend
from burn.backend.base import map_structure
from burn.plan.executable import Executable, Plan
from burn.plan.passes import run_passes
from burn.plan.plan_ir import Read, Segment, Slot, StackedResult, UnforeseenError
from burn.tensor import innermost
from tests.runtime.onednn import assert_close, normal


class OtherDevice(ArrayBackend):
    """A device whose arrays are NumPy's, with nothing but generic kernels."""

    array_type = np.ndarray

    def __init__(self, passes: tuple[Any, ...] | None = ()) -> None:
        self.passes, self.bound = passes, list[PlainCalls]()

    def from_numpy(self, array: Any) -> Any:
        return np.array(array)

    def to_numpy(self, data: Any) -> Any:
        return data

    def bind(self, plan: Plan) -> "PlainCalls":
        root = run_passes(plan.root, plan.inputs, self.passes)
        self.bound.append(PlainCalls(root, self))
        return self.bound[-1]


class PlainCalls(Executable):
    """A plan that is run by calling its primitives, as an interpreter would."""

    notes: list[str] = []  # noqa: RUF012  it does all that is asked for

    def __init__(self, root: Segment, device: OtherDevice) -> None:
        self.root, self.device, self.runs = root, device, 0

    def run(self, inputs: list[Any]) -> Any:
        self.runs += 1
        values = {n: burn.Tensor(data, self.device) for n, data in enumerate(inputs)}

        def filled(leaf: Any) -> Any:
            if type(leaf) is StackedResult:
                return burn.Tensor(filled(leaf.value), leaf.backend)
            return values[leaf.place] if type(leaf) is Slot else leaf

        segment = self.root
        while True:
            for step in segment.steps:
                if isinstance(step, Read):
                    values[step.place] = innermost(step.held())
                    continue
                args = [map_structure(filled, arg) for arg in step.args]
                matches = step.primitive(*args, **step.static)
                results = [matches] if step.primitive.outputs == 1 else list(matches)
                values |= zip(step.outputs, results, strict=True)
            if segment.guard is None:
                for box, slot in segment.writes.items():
                    box.set(values[slot.place])
                return map_structure(filled, segment.result)
            seen = values[segment.guard].numpy().tobytes()
            if seen not in segment.children:
                raise UnforeseenError(f"{values[segment.guard]} was read")
            segment = segment.children[seen]


class Net(nn.Module):
    """A convolution, a norm, attention in small, and layers."""

    def __init__(self) -> None:
        self.conv = nn.Conv2d(3, 6, 3, padding=1)
        self.norm = nn.BatchNorm2d(6)
        self.layers = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 6))

    def __call__(self, x: Any) -> Any:
        x = ops.max_pool(ops.relu(self.norm(self.conv(x))), kernel_size=2)
        x = ops.transpose(ops.flatten(x, 2), 1, 2)
        x = ops.softmax(x @ ops.transpose(x, 1, 2)) @ x
        return self.layers(x) + x


def net_on(backend: Backend) -> Net:
    net = Net().to(backend)
    for seed, (_, box) in enumerate(net.parameters()):
        box.set(burn.from_numpy(normal(*box.shape, seed=seed) / 4).to(backend))
    return net


@pytest.mark.parametrize("passes", [(), None], ids=["as recorded", "all passes"])
def test_values_on_another_device(passes: tuple[Any, ...] | None) -> None:
    device = OtherDevice(passes)
    net = net_on(device)
    plan = burn.compile(net)
    for seed in range(3):
        x = burn.from_numpy(normal(2, 3, 8, 6, seed=seed), device)
        actual = plan(x)
        assert actual.backend is device
        assert_close(actual.numpy(), net(x).numpy())
    assert not plan.notes
    (bound,) = device.bound
    assert bound.runs == 2


def stepping(net: Net) -> Callable[[Any], Any]:
    """A step of gradient descent, which returns the loss and a gradient."""

    def step(x: Any) -> Any:
        x = x.to(net.conv.weight.backend).require_grad()
        loss = ops.mean(net(x) ** 2.0)
        grads = loss.backward()
        for _, box in net.parameters():
            box.set(box.value.detach() - grads[box] * 0.1)
        return loss.detach(), grads[x].detach()

    return step


@pytest.mark.parametrize("passes", [(), None], ids=["as recorded", "all passes"])
def test_gradients_and_updates_on_another_device(
    passes: tuple[Any, ...] | None,
) -> None:
    device = OtherDevice(passes)
    nets = [net_on(Autodiff(device)) for _ in range(2)]
    plan, eager = burn.compile(stepping(nets[0])), stepping(nets[1])
    for seed in range(4):
        x = burn.from_numpy(normal(2, 3, 8, 6, seed=seed), device)
        for actual, expected in zip(plan(x), eager(x), strict=True):
            assert_close(actual.numpy(), expected.numpy(), 1e-4)
    assert not plan.notes
    assert [bound.runs for bound in device.bound] == [3]
    for (_, a), (_, b) in zip(*(net.parameters() for net in nets), strict=True):
        assert_close(a.value.detach().numpy(), b.value.detach().numpy(), 1e-4)


def test_branches_on_another_device() -> None:
    device = OtherDevice()

    def function(x: Any) -> Any:
        return x * 2.0 if bool(ops.sum(x) > 0.0) else -x

    plan = burn.compile(function)
    for sign in (1.0, -1.0, 1.0, -1.0):
        x = burn.from_numpy(np.full(3, sign, np.float32), device)
        np.testing.assert_array_equal(plan(x).numpy(), function(x).numpy())
    assert [bound.runs for bound in device.bound] == [1, 2]


def test_what_a_device_has_not_is_noted() -> None:
    class Plain(OtherDevice):
        bind = ArrayBackend.bind  # type: ignore[assignment]

    device = Plain()
    x = burn.from_numpy(normal(4, 8), device)
    plan = burn.compile(lambda x: ops.relu(x @ x.transpose(0, 1)), precision="bf16")
    for _ in range(2):
        plan(x)
    (note,) = plan.notes
    assert note.startswith("bf16 is not used: it is on ")

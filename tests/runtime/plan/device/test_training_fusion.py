"""Fusion in plans with gradients for devices that generate elementwise kernels."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, nn, ops, optim, train
from burn.backend.cuda.kernels.elementwise.printing import PRIMITIVES, is_printed
from burn.plan.device_passes import training_segment
from burn.plan.executable import Plan
from burn.plan.passes.fusion.elements import KernelSupport
from burn.plan.plan_ir import Segment, Step
from tests.runtime.onednn import normal
from tests.runtime.plan.test_seam import OtherDevice, PlainCalls

ABILITIES = KernelSupport(is_printed, PRIMITIVES)


class Device(OtherDevice):
    """A device that computes functions of elements in training."""

    def bind(self, plan: Plan) -> PlainCalls:
        self.bound.append(PlainCalls(training_segment(plan, ABILITIES), self))
        return self.bound[-1]


class AsynchronousDevice(Device):
    """A device on which a step reads nothing on the host."""

    is_asynchronous = True


class Block(nn.Module):
    """Two convolutions with norms, the second before a residual."""

    def __init__(self) -> None:
        self.first = nn.Conv2d(4, 4, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(4)
        self.second = nn.Conv2d(4, 4, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(4)

    def __call__(self, x: Any) -> Any:
        y = ops.relu(self.norm1(self.first(x)))
        return ops.relu(self.norm2(self.second(y)) + x)


class Mlp(nn.Module):
    """A norm and two layers with a GELU between them."""

    def __init__(self) -> None:
        self.norm = nn.LayerNorm(8)
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 8)

    def __call__(self, x: Any) -> Any:
        return self.second(ops.gelu(self.first(self.norm(x))))


def trained(net: Any, device: Any, compiled: bool, precision: Any, *shape: int) -> Any:
    """Losses of five steps, and the weights and statistics after them."""
    net.to(Autodiff(device))

    @train.step(net, optim.AdamW(net, lr=1e-2), compiled=compiled, precision=precision)
    def step(x: Any) -> Any:
        return ops.mean((ops.cast(net(x), dtype=burn.float32) - 1.0) ** 2)

    losses = [
        float(step(burn.from_numpy(normal(*shape, seed=n), device)).numpy())
        for n in range(5)
    ]
    assert not step.notes
    return losses, {key: value.numpy() for key, value in net.state_dict().items()}


def counts(device: Device) -> Counter[str]:
    """How often the last plan calls each primitive."""

    def steps(segment: Segment) -> Any:
        yield from segment.steps
        for child in segment.children.values():
            yield from steps(child)

    every = steps(device.bound[-1].root)
    return Counter(s.primitive.name for s in every if isinstance(s, Step))


@pytest.mark.parametrize("precision", ["float32", "bf16", "fp16"])
@pytest.mark.parametrize(("kind", "shape"), [(Block, (2, 4, 5, 5)), (Mlp, (3, 4, 8))])
def test_steps_equal_eager_ones(kind: Any, shape: Any, precision: str) -> None:
    ours, other, device = kind(), kind(), Device()
    other.load_state_dict(ours.state_dict())
    losses, state = trained(ours, device, True, precision, *shape)
    expected, there = trained(other, OtherDevice(), False, precision, *shape)
    tolerance = 1e-5 if precision == "float32" else 2e-2
    np.testing.assert_allclose(losses, expected, rtol=tolerance)
    for key, value in state.items():
        np.testing.assert_allclose(
            value, there[key], rtol=tolerance, atol=tolerance, err_msg=key
        )
    kinds = counts(device)
    assert kinds["elements_of_many"] >= 3  # two moments, and the weights
    assert not {"gelu", "gelu_grad", "relu", "relu_grad", "batch_norm_train"} & set(
        kinds
    )


def test_norms_read_images_of_half_types() -> None:
    net, device = Block(), Device()
    trained(net, device, True, "bf16", 2, 4, 5, 5)
    root = device.bound[-1].root
    made: dict[int, Any] = {}
    for step in root.steps:
        if isinstance(step, Step):
            made |= zip(step.outputs, step.dtypes, strict=True)
    sums = [
        step
        for step in root.steps
        if isinstance(step, Step)
        and step.primitive.name in ("channel_moments", "channel_gradients")
    ]
    # x of the moments is an operand 0, that of the gradients an operand 1.
    assert len(sums) == 4
    for step in sums:
        x = step.args[0 if step.primitive.name == "channel_moments" else 1]
        assert made[x.place] == burn.bfloat16, step


def test_an_activation_that_elementwise_steps_read_is_computed_again() -> None:
    device = Device()

    def function(w: Any) -> Any:
        y = ops.relu(w * 2.0)
        return y * 3.0, ops.sin(y)

    tensor = burn.from_numpy(normal(4, 6), device)
    plan = burn.compile(lambda x: [t.detach() for t in function(x)])
    for _ in range(3):
        for actual, expected in zip(plan(tensor), function(tensor), strict=True):
            np.testing.assert_allclose(actual.numpy(), expected.numpy(), rtol=1e-6)
    assert counts(device) == {"elements": 2}


def test_a_chain_that_computes_an_activation_again_is_not_counted_as_a_reader() -> None:
    device = Device()

    def function(x: Any) -> Any:
        y = ops.relu(x * 2.0)
        return y * 2.0 + y, y * 5.0  # the sum reads y, and has a part that read it

    tensor = burn.from_numpy(normal(4, 6), device)
    plan = burn.compile(function)
    for _ in range(3):
        for actual, expected in zip(plan(tensor), function(tensor), strict=True):
            np.testing.assert_allclose(actual.numpy(), expected.numpy(), rtol=1e-6)
    assert counts(device) == {"elements": 2}


def test_an_activation_that_others_read_is_computed_once() -> None:
    device = Device()

    def function(x: Any) -> Any:
        y = ops.relu(x * 2.0)
        return y * 3.0, ops.sum(y, 0)

    tensor = burn.from_numpy(normal(4, 6), device)
    plan = burn.compile(function)
    for _ in range(3):
        for actual, expected in zip(plan(tensor), function(tensor), strict=True):
            np.testing.assert_allclose(actual.numpy(), expected.numpy(), rtol=1e-6)
    assert counts(device) == {"elements": 2, "sum": 1}


@pytest.mark.parametrize("compiled", [False, True])
def test_an_overflow_keeps_all_state_without_a_branch(compiled: bool) -> None:
    """The states are those of a device on which the step branches."""
    initial = {k: v.numpy().copy() for k, v in Mlp().state_dict().items()}
    states = []
    for device in (Device(), AsynchronousDevice()):
        model = Mlp()
        model.load_state_dict(initial)
        states.append(overflowing_steps(model, device, compiled))
        if compiled:
            guards = [each.root.guard for each in device.bound]
            assert all((g is None) == device.is_asynchronous for g in guards)
    first, second = states
    assert first.keys() == second.keys()
    for key, value in first.items():
        np.testing.assert_allclose(value, second[key], rtol=2e-5, err_msg=key)


def overflowing_steps(model: Any, device: Any, compiled: bool) -> dict[str, Any]:
    """All state after steps, the second and fourth of which overflow."""
    model.to(Autodiff(device))
    opt = optim.AdamW(model, lr=1e-2)
    schedule, ema = optim.step(opt, 1, 0.5), optim.EMA(model, 0.5)
    scaler = optim.GradScaler(model, init_scale=64.0, growth_interval=2)

    @train.step(
        *(model, opt, schedule),
        ema=ema,
        compiled=compiled,
        precision="fp16",
        scaler=scaler,
    )
    def step(x: Any) -> Any:
        return ops.mean(ops.cast(model(x), dtype=burn.float32) * x)

    scales = []
    for number, size in enumerate((1.0, 1e39, 1.0, 1e39, 1.0, 1.0)):
        with np.errstate(all="ignore"):
            x = (normal(3, 4, 8, seed=number) * size).astype(np.float32)
            step(burn.from_numpy(x, device))
        scales.append(scaler.loss_scale)
    assert not step.notes
    assert scales == [64.0, 32.0, 32.0, 16.0, 16.0, 32.0]
    state = {"model." + k: v for k, v in model.state_dict().items()}
    state |= {"optimizer." + k: v for k, v in opt.state_dict().items()}
    state |= {"average." + k: v for k, v in ema.state_dict().items()}
    state["rate"] = opt.groups[0].lr.value
    return {key: np.asarray(value.numpy()) for key, value in state.items()}


def test_updates_by_accumulated_gradients_are_a_plan_of_the_device() -> None:
    device, model = Device(), Mlp()
    model.to(Autodiff(device))

    @train.step(model, optim.AdamW(model, lr=1e-2), accumulate=2)
    def step(x: Any) -> Any:
        return ops.mean(model(x) ** 2)

    for number in range(6):
        step(burn.from_numpy(normal(3, 4, 8, seed=number), device))
    assert not step.notes
    assert len(device.bound) == 2
    assert device.bound[-1].runs == 3


def independent(x: Any, y: Any) -> Any:
    scaled = [(x + float(n)) * y for n in range(5)]
    return [ops.sum(each, 0) for each in scaled]


def each_depends_on_the_one_before(x: Any, y: Any) -> Any:
    results = [x * y]
    for _ in range(4):
        results.append(ops.cumsum(results[-1], 0) * y)
    return results


def of_several_shapes(x: Any, y: Any) -> Any:
    return [ops.cumsum(x[n:], 0) * y[n:] for n in range(5)]


def with_several_scalars(x: Any, y: Any) -> Any:
    factors = [ops.sum(x) * float(n % 2 + 1) for n in range(5)]
    return [ops.cumsum(y, 0) * factor for factor in factors]


def with_zeros_of_both_signs(x: Any, y: Any) -> Any:
    return [ops.cumsum(x[n:], 0) * (-0.0 if n < 4 else 0.0) for n in range(5)]


@pytest.mark.parametrize(
    ("function", "launches"),
    [
        (with_zeros_of_both_signs, 1),
        (independent, 0),  # the numbers differ
        (each_depends_on_the_one_before, 0),
        (of_several_shapes, 1),
        (with_several_scalars, 0),
    ],
)
def test_equal_chains_of_several_tensors(function: Any, launches: int) -> None:
    device = Device()
    tensors = [burn.from_numpy(normal(6, 4, seed=n), device) for n in (1, 2)]
    plan = burn.compile(function)
    for _ in range(3):
        for actual, expected in zip(plan(*tensors), function(*tensors), strict=True):
            np.testing.assert_allclose(actual.numpy(), expected.numpy(), rtol=1e-5)
            signs = np.signbit(actual.numpy()), np.signbit(expected.numpy())
            np.testing.assert_array_equal(*signs)
    assert counts(device)["elements_of_many"] == launches

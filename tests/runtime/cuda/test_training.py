"""Steps of training on CUDA devices as graphs: what eager steps give."""

from typing import Any

import numpy as np
import pytest

import burn
from burn import nn, ops, optim, train
from tests.runtime.onnx_node import normal

pytestmark = pytest.mark.cuda


class Network(nn.Module):
    """Images to three numbers, with a norm whose statistics training sets."""

    def __init__(self) -> None:
        # A bias before a norm has a gradient of rounding errors alone.
        self.conv = nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(8)
        self.head = nn.Linear(8, 3)

    def __call__(self, x: Any) -> Any:
        x = ops.relu(self.norm(self.conv(x)))
        return self.head(ops.mean(ops.max_pool(x, kernel_size=2, stride=2), (2, 3)))


@pytest.fixture
def device() -> Any:
    pytest.importorskip("cupy")
    return burn.Cuda(0)


def stepping(device: Any, net: Any, compiled: bool, **options: Any) -> Any:
    net.to(burn.Autodiff(device))
    opt = optim.AdamW(net, lr=0.01)

    @train.step(net, opt, compiled=compiled, **options)
    def step(x: Any) -> Any:
        return ops.mean((net(x) - 1.0) ** 2)

    return step


def pair(device: Any) -> tuple[Any, Any, Any, Any]:
    ours, other = Network(), Network()
    other.load_state_dict(ours.state_dict())
    steps = stepping(device, ours, True), stepping(device, other, False)
    return ours, other, *steps


def close(ours: Any, other: Any) -> None:
    theirs = other.state_dict()
    for name, value in ours.state_dict().items():
        np.testing.assert_allclose(
            value.numpy(), theirs[name].numpy(), atol=2e-4, err_msg=name
        )


def test_steps_are_graphs_with_the_losses_of_eager_steps(device: Any) -> None:
    ours, other, step, eager = pair(device)
    for call in range(6):
        x = burn.from_numpy(normal(4, 3, 8, 8, seed=call), device)
        np.testing.assert_allclose(step(x).numpy(), eager(x).numpy(), rtol=1e-3)
    close(ours, other)
    assert step.notes == []
    assert step._train.executables[0].kernels


def test_accumulating_steps_are_graphs(device: Any) -> None:
    ours, other = Network(), Network()
    other.load_state_dict(ours.state_dict())
    step = stepping(device, ours, True, accumulate=2)
    eager = stepping(device, other, False, accumulate=2)
    for call in range(12):
        x = burn.from_numpy(normal(4, 3, 8, 8, seed=call), device)
        np.testing.assert_allclose(step(x).numpy(), eager(x).numpy(), rtol=1e-3)
    close(ours, other)
    assert not any("no CUDA graph" in note for note in step.notes)


def test_what_is_set_between_steps_is_read_and_what_was_read_stays(device: Any) -> None:
    ours, other, step, eager = pair(device)
    x = burn.from_numpy(normal(4, 3, 8, 8), device)
    for call in range(6):
        step(x), eager(x)
        if call == 3:
            held = ours.head.weight.value.detach()
            before = held.numpy().copy()
            for net in (ours, other):
                net.head.bias.set(burn.from_numpy(np.full(3, 2, np.float32), device))
    close(ours, other)
    np.testing.assert_array_equal(held.numpy(), before)
    assert np.abs(ours.head.weight.numpy() - before).max() > 1e-4


def test_steps_in_turns_with_evaluation(device: Any) -> None:
    ours, _, step, _ = pair(device)
    x = burn.from_numpy(normal(4, 3, 8, 8), device)
    for _ in range(5):
        step(x)
        with nn.modes.inference():
            expected = ops.mean((ours(x) - 1.0) ** 2)
        np.testing.assert_allclose(
            step.evaluate(x).numpy(), expected.numpy(), rtol=1e-3
        )


@pytest.mark.parametrize("precision", ("bf16", "fp16"))
def test_mixed_precision_is_that_of_the_host(device: Any, precision: str) -> None:
    nets = [Network() for _ in range(3)]
    for net in nets[1:]:
        net.load_state_dict(nets[0].state_dict())
    places = ((device, True), (device, False), (burn.Cpu(), False))
    steps = [
        stepping(place, net, compiled, precision=precision)
        for (place, compiled), net in zip(places, nets, strict=True)
    ]
    for call in range(6):
        x = normal(4, 3, 8, 8, seed=call)
        here = [burn.from_numpy(x, place) for place, _ in places]
        losses = [step(x).numpy() for step, x in zip(steps, here, strict=True)]
        np.testing.assert_allclose(losses[0], losses[1], rtol=2e-2)
        np.testing.assert_allclose(losses[0], losses[2], rtol=2e-2)
    # A step in float16 asks the host whether its gradients are finite: two graphs.
    assert steps[0].notes == []
    assert steps[0]._train.executables[0].kernels
    for net in nets[:2]:
        assert all(box.dtype == np.float32 for _, box in net.parameters())


@pytest.mark.parametrize("compiled", (False, True))
def test_checkpointed_steps(device: Any, compiled: bool) -> None:
    ours, other = Network(), Network()
    other.load_state_dict(ours.state_dict())
    nn.checkpoint(ours, "conv")
    nn.checkpoint(ours, "norm")
    steps = [stepping(device, net, compiled) for net in (ours, other)]
    for call in range(5):
        x = burn.from_numpy(normal(4, 3, 8, 8, seed=call), device)
        losses = [step(x).numpy() for step in steps]
        np.testing.assert_allclose(losses[0], losses[1], rtol=1e-3)
    close(ours, other)


@pytest.mark.parametrize("channels", (8, 40, 64))
@pytest.mark.parametrize("affine", (False, True))
def test_batch_norms_of_channels_last_images(
    device: Any, channels: int, affine: bool
) -> None:
    cupy = device.cupy
    x, grad = (normal(3, channels, 9, 7, seed=seed) + 3 for seed in (0, 1))
    weight, bias = normal(channels, seed=2), normal(channels, seed=3)
    scales: tuple[Any, Any] = (weight, bias) if affine else (None, None)
    here: Any = ops.batch_norm_train.kernel(x, *scales)
    grad_kernel: Any = ops.batch_norm_grad.kernel
    back = grad_kernel(grad, x, *here[1:], scales[0])

    def there(array: Any) -> Any:
        if array is None:
            return None
        given = cupy.asarray(array)
        if given.ndim == 4:
            given = cupy.ascontiguousarray(given.transpose(0, 2, 3, 1))
            given = given.transpose(0, 3, 1, 2)
        return given

    train_kernel = ops.batch_norm_train.kernel_for(device)
    assert train_kernel is not ops.batch_norm_train.kernel
    out = train_kernel(there(x), *map(there, scales))
    grads = ops.batch_norm_grad.kernel_for(device)(
        there(grad), there(x), *out[1:], there(scales[0])
    )
    for ours, expected in zip((*out, *grads), (*here, *back), strict=True):
        assert ours.shape == expected.shape
        np.testing.assert_allclose(ours.get(), expected, rtol=1e-3, atol=1e-3)

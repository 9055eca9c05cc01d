"""Fusions for devices with kernels for layers: values, and what the plans become."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, nn, ops
from burn.box import Buffer, Parameter
from burn.plan.device_passes import device_segment
from burn.plan.executable import Plan
from burn.plan.passes.fusion.row_products import ROWS
from burn.plan.plan_ir import Step
from tests.runtime.onednn import assert_close, normal
from tests.runtime.plan.test_seam import OtherDevice, PlainCalls, net_on, stepping

TOLERANCE = {"float32": 1e-5, "float16": 5e-3}


class FusingDevice(OtherDevice):
    """A device that calls the primitives of fused plans."""

    def bind(self, plan: Plan) -> PlainCalls:
        self.bound.append(PlainCalls(device_segment(plan), self))
        return self.bound[-1]

    def counts(self) -> Counter[str]:
        """Return the count of each primitive in the last plan."""
        steps = self.bound[-1].root.steps
        return Counter(s.primitive.name for s in steps if isinstance(s, Step))


def compiled(function: Any, *arrays: Any, backend: Any = None) -> FusingDevice:
    """The device after the plan gave what the function gives."""
    device = backend or FusingDevice()
    plan = burn.compile(function)
    tensors = [burn.from_numpy(array, device) for array in arrays]
    expected = function(*tensors).numpy()
    for _ in range(2):
        actual = plan(*tensors).numpy()
    assert actual.dtype == expected.dtype
    scale = np.abs(expected.astype(np.float64)).max()
    tolerance = TOLERANCE[str(expected.dtype)] * scale
    np.testing.assert_allclose(actual, expected, atol=tolerance, rtol=0)
    assert not plan.notes
    return device


class Block(nn.Module):
    """A residual block: convolutions with norms, a sum and activations."""

    def __init__(self) -> None:
        self.first = nn.Conv2d(4, 6, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(6)
        self.second = nn.Conv2d(6, 4, 1)
        self.last = nn.BatchNorm2d(4)

    def __call__(self, x: Any) -> Any:
        y = ops.clip(self.norm(self.first(x)), 0.0, 6.0)
        return ops.relu(self.last(self.second(y)) + x)


class Encoder(nn.Module):
    """A layer of a transformer."""

    def __init__(self) -> None:
        self.query, self.key, self.value, self.out = (nn.Linear(8, 8) for _ in "qkvo")
        self.wide = nn.Linear(8, 16)
        self.narrow = nn.Linear(16, 8)
        self.norm = nn.LayerNorm(8)
        self.causal = False

    def __call__(self, x: Any) -> Any:
        parts = (ops.split_heads(f(x), 2) for f in (self.query, self.key, self.value))
        seen = ops.attention(*parts, causal=self.causal)
        x = self.norm(self.out(ops.merge_heads(seen)) + x)
        return self.narrow(ops.gelu(self.wide(x))) + x


def filled(module: Any, dtype: str, device: Any) -> Any:
    """``module`` on ``device`` with numbers of ``dtype`` in its boxes."""
    for _, layer in module.modules():
        for seed, (name, box) in enumerate(list(vars(layer).items())):
            if isinstance(box, Parameter | Buffer):
                array = normal(*box.shape, seed=seed + layer_seed(layer)) / 2
                array = np.abs(array) + 0.5 if name == "running_var" else array
                value = burn.from_numpy(array.astype(dtype))
                setattr(layer, name, type(box)(value))
    return module.to(device)


def layer_seed(layer: Any) -> int:
    """A number that differs between layers of different widths."""
    return sum(int(np.prod(box.shape)) for _, box in layer.parameters())


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("batch", (1, 8))
def test_residual_blocks(batch: int, dtype: str) -> None:
    device = FusingDevice()
    block = filled(Block(), dtype, device)
    x = normal(batch, 4, 5, 6, seed=9).astype(dtype)
    counts = compiled(block, x, backend=device).counts()
    assert counts["conv_then"] == 2
    assert not {"batch_norm", "add", "relu", "clip", "conv"} & set(counts)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("batch", (1, 8))
@pytest.mark.parametrize("causal", (False, True))
def test_encoders(batch: int, dtype: str, causal: bool) -> None:
    device = FusingDevice()
    encoder = filled(Encoder(), dtype, device)
    encoder.causal = causal
    x = normal(batch, 5, 8, seed=9).astype(dtype)
    counts = compiled(encoder, x, backend=device).counts()
    assert counts["scaled_attention"] == 1
    if batch * 5 <= ROWS:
        assert counts["row_linear"] == 4
    else:
        assert counts["linear"] == 1  # queries, keys and values
        assert counts["linear_then"] == 3
    assert not {"matmul", "masked_softmax", "gelu", "cast", "add"} & set(counts)
    steps = [s for s in device.bound[-1].root.steps if isinstance(s, Step)]
    (attention,) = [s for s in steps if s.primitive.name == "scaled_attention"]
    assert attention.static["causal"] is causal
    assert attention.args[3] is None


class Permuted(nn.Module):
    """A block of ConvNeXt: a permuted layer, scaled by channel, and a residual.

    ``axes`` is the permutation after the layer.
    """

    def __init__(self, axes: tuple[int, ...], features: int) -> None:
        self.axes, self.inverse = axes, tuple(map(axes.index, range(len(axes))))
        self.layer = nn.Linear(features, features)
        channels = [1] * len(axes)
        channels[axes.index(len(axes) - 1)] = features
        self.scale = nn.parameter(*channels)

    def __call__(self, x: Any) -> Any:
        rows = ops.permute(x, self.inverse)
        return x + ops.permute(self.layer(rows), self.axes) * self.scale


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("shape", ((2, 5, 3, 4), (3, 3, 3, 3), (1, 4, 1, 1)), ids=str)
@pytest.mark.parametrize("axes", ((0, 3, 1, 2), (0, -1, 2, 1), (3, 0, 2, 1)), ids=str)
def test_scales_and_residuals_of_permuted_layers(
    axes: tuple[int, ...], shape: tuple[int, ...], dtype: str
) -> None:
    order = tuple(axis % 4 for axis in axes)
    device = FusingDevice()
    block = filled(Permuted(order, shape[order.index(3)]), dtype, device)
    block.axes = axes
    x = normal(*shape, seed=9).astype(dtype)
    counts = compiled(block, x, backend=device).counts()
    assert counts["linear_then"] + counts["row_linear"] == 1
    assert not {"add", "linear"} & set(counts)


def test_permuted_layers_with_other_readers_and_operands() -> None:
    """Subtraction from a number, a broadcast operand, and two readers."""
    weight, x = normal(4, 6, seed=1), normal(2, 3, 5, 6)

    def differing(x: Any, weight: Any, other: Any) -> Any:
        rows = ops.permute(ops.linear(x, weight), (0, 3, 1, 2))
        more = ops.permute(ops.linear(x, weight * 2), (0, 3, 1, 2))
        return (2.0 - rows) / other - more[:, :, :1]

    def shared(x: Any, weight: Any, other: Any) -> Any:
        rows = ops.permute(ops.linear(x, weight), (0, 3, 1, 2))
        return rows * other + rows.sum()

    other = normal(4, 1, 5, seed=2)
    assert compiled(shared, x, weight, other).counts()["permute"] == 1  # as before
    other = np.abs(normal(4, 3, 5, seed=2)) + 1
    compiled(differing, normal(3, 3, 3, 6), normal(4, 6, seed=1), other[:, :, :3])


@pytest.mark.parametrize("is_masked", (False, True))
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_attention_of_heads_that_share_keys(dtype: str, is_masked: bool) -> None:
    shapes = ((2, 6, 3, 5), (2, 2, 4, 5), (2, 2, 4, 5))
    operands = [normal(*s, seed=n).astype(dtype) for n, s in enumerate(shapes)]
    mask = [normal(2, 1, 3, 4, seed=3) > -0.5] if is_masked else []
    counts = compiled(ops.attention, *operands, *mask).counts()
    assert counts["scaled_attention"] == 1
    assert not {"matmul", "softmax", "masked_softmax", "reshape"} & set(counts)


@pytest.mark.parametrize("kind", ("bool", "float", "hides a row"))
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_attention_with_a_mask(dtype: str, kind: str) -> None:
    operands = [normal(2, 3, 4, 5, seed=n).astype(dtype) for n in range(3)]
    mask = normal(2, 1, 4, 4, seed=3)
    if kind != "float":
        mask = mask > -0.5
        mask[0, 0, 1] = kind != "hides a row"
        mask[:, :, 3] = True
    device = compiled(ops.attention, *operands, mask)
    assert device.counts()["scaled_attention"] == 1


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("masks", range(4))
def test_attention_written_out(dtype: str, masks: int) -> None:
    """The query is scaled, products keep their dtype, and all masks are added."""

    def function(q: Any, k: Any, v: Any, *addends: Any) -> Any:
        scores = (q * 0.375) @ ops.transpose(k, -2, -1)
        for addend in addends:
            scores = addend + scores
        return ops.softmax(scores) @ v

    shapes = ((2, 3, 6, 5), (2, 3, 4, 5), (2, 3, 4, 5))
    masked = ((1, 3, 6, 4), (2, 1, 1, 4), (6, 4))[:masks]
    arrays = [normal(*s, seed=n).astype(dtype) for n, s in enumerate(shapes + masked)]
    device = compiled(function, *arrays)
    counts = device.counts()
    assert counts["scaled_attention"] == 1
    assert counts["add"] == max(masks - 1, 0)
    assert not {"matmul", "softmax", "multiply"} & set(counts)
    steps = [s for s in device.bound[-1].root.steps if isinstance(s, Step)]
    assert [s.static["scale"] for s in steps if "scale" in s.static] == [0.375]


class Squeezed(nn.Module):
    """Squeeze-and-excitation, whose inner channels are no multiple of a vector."""

    def __init__(self) -> None:
        self.down, self.up = nn.Conv2d(8, 6, 1), nn.Conv2d(6, 8, 1)

    def __call__(self, x: Any) -> Any:
        pooled = ops.mean(x, (2, 3), keepdims=True)
        gate = ops.sigmoid(self.up(ops.silu(self.down(pooled))))
        return x * gate + self.up(ops.relu(self.down(pooled))) + gate


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("batch", (1, ROWS, ROWS + 1))
def test_convolutions_of_single_pixels_are_products(batch: int, dtype: str) -> None:
    device = FusingDevice()
    x = normal(batch, 8, 5, 4, seed=9).astype(dtype)
    net = filled(Squeezed(), dtype, device)
    counts = compiled(net, x, backend=device).counts()
    is_product = batch <= ROWS
    assert counts["row_linear"] == 4 * is_product
    assert counts["conv"] + counts["conv_then"] == 4 * (not is_product)


def test_padded_pixels_are_convolved() -> None:
    weight = normal(3, 2, 1, 1, seed=1)

    def function(x: Any) -> Any:
        w = burn.from_numpy(weight, x.backend)
        return ops.conv(x, w, padding=1, stride=3)

    counts = compiled(function, normal(2, 2, 1, 1)).counts()
    assert counts["conv"] == 1


def test_attention_of_masks_of_two_kinds_stays() -> None:
    def function(q: Any, k: Any, v: Any, seen: Any, addend: Any) -> Any:
        hidden = ops.where(seen, q @ ops.transpose(k, -2, -1), -np.inf)
        return ops.softmax(hidden + addend) @ v

    operands = [normal(2, 3, 4, 4, seed=n) for n in range(3)]
    masks = (np.tri(4, dtype=bool), normal(2, 3, 4, 4, seed=4))
    counts = compiled(function, *operands, *masks).counts()
    assert not counts["scaled_attention"]


def test_attention_with_other_readers_stays() -> None:
    def function(q: Any, k: Any, v: Any) -> Any:
        weights = ops.softmax((q @ ops.transpose(k, -2, -1)) * 0.5)
        return weights @ v + ops.sum(weights)

    operands = [normal(2, 3, 4, 4, seed=n) for n in range(3)]
    assert not compiled(function, *operands).counts()["scaled_attention"]


@pytest.mark.parametrize("axis", (-1, 2))
def test_softmax_over_another_axis_is_no_attention(axis: int) -> None:
    def function(q: Any, k: Any, v: Any) -> Any:
        return ops.softmax(q @ ops.transpose(k, -2, -1), axis=axis) @ v

    operands = [normal(2, 3, 4, 4, seed=n) for n in range(3)]
    assert compiled(function, *operands).counts()["scaled_attention"] == (axis == -1)


def test_layers_of_rows_take_residuals_of_higher_rank() -> None:
    weight, bias = normal(6, 6), normal(6, seed=1)

    def function(x: Any) -> Any:
        w, b = (burn.from_numpy(a, x.backend) for a in (weight, bias))
        rows = ops.reshape(x, (-1, 6)) @ w + b
        return ops.reshape(rows, (2, 5, 6)) + ops.reshape(x, (2, 5, 6))

    counts = compiled(function, normal(2, 5, 2, 3, seed=2)).counts()
    assert counts["linear_then"] == 1
    assert not counts["add"]


def test_gradients_and_updates() -> None:
    device = FusingDevice()
    nets = [net_on(Autodiff(device)) for _ in range(2)]
    plan, eager = burn.compile(stepping(nets[0])), stepping(nets[1])
    for seed in range(4):
        x = burn.from_numpy(normal(8, 3, 8, 6, seed=seed), device)
        for actual, expected in zip(plan(x), eager(x), strict=True):
            assert_close(actual.numpy(), expected.numpy(), 1e-4)
    assert not plan.notes
    for (_, a), (_, b) in zip(*(net.parameters() for net in nets), strict=True):
        assert_close(a.value.detach().numpy(), b.value.detach().numpy(), 1e-4)

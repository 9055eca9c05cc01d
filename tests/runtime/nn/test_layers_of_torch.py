"""Layers without PyTorch's exact code beside those of PyTorch: values and gradients."""

from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, nn
from burn.attribute_hints import LAYERS

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

RNG = np.random.default_rng(0)
IMAGE, SIGNAL, VOLUME = (2, 4, 6, 9), (3, 4, 8), (1, 2, 6, 5, 7)
#: Layers with arguments by position, and the shapes of their inputs.
CASES: list[tuple[str, tuple[Any, ...], tuple[tuple[int, ...], ...]]] = [
    *((name, (), ((3, 1, 5),)) for name in ("Hardsigmoid", "Hardswish", "Hardtanh")),
    *((name, (), ((3, 1, 5),)) for name in ("Mish", "ReLU6", "SELU", "Softsign")),
    *((name, (), ((2, 3, 4),)) for name in ("LogSigmoid", "Tanhshrink", "CELU")),
    *((name, (0.3,), ((2, 3, 4),)) for name in ("Hardshrink", "Softshrink", "CELU")),
    ("Threshold", (0.2, -1.5), ((2, 3, 4),)),
    ("Hardtanh", (-0.5, 0.25), ((2, 3, 4),)),
    ("Softplus", (2.0,), ((2, 3, 4),)),
    *((name, (1,), ((2, 6, 4),)) for name in ("GLU", "LogSoftmax", "Softmin")),
    ("Softmax2d", (), (IMAGE,)),
    ("Softmax2d", (), (IMAGE[1:],)),
    ("Flatten", (), (IMAGE,)),
    ("Flatten", (0, 1), (IMAGE,)),
    ("Unflatten", (1, (2, -1)), (IMAGE,)),
    ("PixelShuffle", (2,), (IMAGE,)),
    ("PixelUnshuffle", (3,), (IMAGE,)),
    ("ChannelShuffle", (2,), (IMAGE,)),
    ("Unfold", ((2, 3), 1, (1, 0), 2), (IMAGE,)),
    ("Fold", ((4, 5), (2, 2)), ((2, 12, 12),)),
    ("ConstantPad1d", ((2, 1), 0.5), (SIGNAL,)),
    ("ZeroPad2d", ((1, 2, 0, 3),), (IMAGE,)),
    ("ZeroPad2d", ((-1, 2, 0, -2),), (IMAGE,)),
    ("ReflectionPad1d", (2,), (SIGNAL,)),
    ("ReflectionPad2d", ((1, 2, 3, 0),), (IMAGE,)),
    ("ReflectionPad3d", (1,), (VOLUME,)),
    ("ReplicationPad2d", ((1, 2, 3, 0),), (IMAGE,)),
    ("ReplicationPad2d", (3,), (IMAGE[1:],)),
    ("CircularPad2d", ((1, 2, 3, 0),), (IMAGE,)),
    ("CircularPad3d", (2,), (VOLUME,)),
    *(("Upsample", (None, 2.0, mode), (IMAGE,)) for mode in ("nearest", "bicubic")),
    *(("Upsample", ((4, 11), None, mode), (IMAGE,)) for mode in ("nearest-exact",)),
    *(("Upsample", (None, 1.7, mode, a), (IMAGE,)) for mode, a in [("bilinear", True)]),
    ("Upsample", ((9, 5), None, "nearest"), (IMAGE,)),
    ("Upsample", ((9, 5), None, "bilinear", False), (IMAGE,)),
    ("Upsample", ((9, 5), None, "bicubic", True), (IMAGE,)),
    ("Upsample", (None, (1.5, 2.5), "bilinear", False), (IMAGE,)),
    ("Upsample", (5, None, "linear", True), (SIGNAL,)),
    ("Upsample", (None, 2.0, "trilinear", False), (VOLUME,)),
    ("UpsamplingNearest2d", (None, 3.0), (IMAGE,)),
    ("UpsamplingBilinear2d", ((7, 1),), (IMAGE,)),
    ("AdaptiveMaxPool1d", (3,), (SIGNAL,)),
    ("AdaptiveMaxPool2d", ((4, 5),), (IMAGE,)),
    ("AdaptiveMaxPool3d", (3,), (VOLUME,)),
    ("LPPool1d", (2, 3), (SIGNAL,)),
    ("LPPool2d", (4, 2, 1), (IMAGE,)),
    ("LPPool3d", (2, 2), (VOLUME,)),
    ("Bilinear", (4, 3, 5), ((2, 6, 4), (2, 6, 3))),
    ("CosineSimilarity", (), ((2, 6, 4), (2, 6, 4))),
    ("PairwiseDistance", (), ((6, 4), (6, 4))),
    ("PairwiseDistance", (3.0, 1e-6, True), ((2, 6, 4), (2, 6, 4))),
]


@pytest.mark.parametrize(("name", "args", "shapes"), CASES, ids=str)
def test_layers_are_those_of_torch(name: str, args: Any, shapes: Any) -> None:
    theirs, ours = getattr(torch.nn, name)(*args), getattr(nn, name)(*args)
    ours.load_state_dict({k: v.numpy() for k, v in theirs.state_dict().items()})
    ours.to(Autodiff(Cpu()))
    arrays = [RNG.normal(size=shape).astype(np.float32) for shape in shapes]
    theirs_in = [torch.tensor(x, requires_grad=True) for x in arrays]
    expected = theirs(*theirs_in)
    factors = RNG.normal(size=tuple(expected.shape)).astype(np.float32)
    (expected * torch.tensor(factors)).sum().backward()
    boxes = [burn.Parameter(burn.tensor(x)) for x in arrays]
    for box in boxes:
        box.to(Autodiff(Cpu()))
    for function in (ours, burn.compile(ours)):
        for _ in range(2):
            actual = function(*map(burn.tensor, arrays)).numpy()
            np.testing.assert_allclose(actual, expected.detach(), rtol=1e-5, atol=2e-6)
    gradients = (ours(*(box.value for box in boxes)) * burn.tensor(factors)).sum()
    gradients = gradients.backward()
    pairs = [(box, x.grad) for box, x in zip(boxes, theirs_in, strict=True)]
    named = dict(theirs.named_parameters())
    pairs += [(box, named[key].grad) for key, box in ours.parameters()]
    for box, want in pairs:
        np.testing.assert_allclose(gradients[box].numpy(), want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding", [None, 2])
def test_bags_are_those_of_torch(mode: str, padding: int | None) -> None:
    theirs = torch.nn.EmbeddingBag(7, 3, mode=mode, padding_idx=padding)
    ours = nn.EmbeddingBag(7, 3, mode=mode, padding_idx=padding)  # type: ignore[arg-type]
    ours.load_state_dict({"weight": theirs.weight.detach().numpy()})
    ours.to(Autodiff(Cpu()))
    indices = RNG.integers(0, 7, (5, 4))
    indices[1] = 2
    indices[2, 1:3] = 2
    expected = theirs(torch.tensor(indices))
    (expected**2).sum().backward()
    actual = ours(burn.tensor(indices))
    np.testing.assert_allclose(actual.numpy(), expected.detach(), rtol=1e-5, atol=1e-6)
    gradient = (actual * actual).sum().backward()[ours.weight].numpy()
    np.testing.assert_allclose(gradient, theirs.weight.grad, rtol=1e-4, atol=1e-5)


def test_alpha_dropout_keeps_mean_and_variance() -> None:
    x = RNG.normal(size=(200, 500)).astype(np.float32)
    layer = nn.AlphaDropout(0.3, seed=1).to(Autodiff(Cpu()))
    y = layer(burn.tensor(x)).numpy()
    torch.manual_seed(0)
    dropped = torch.nn.AlphaDropout(0.3)(torch.tensor(x)).numpy()
    assert abs(y.mean()) < 0.02 and abs(y.std() - 1) < 0.02
    np.testing.assert_allclose(y.min(), dropped.min(), rtol=0.2)
    least = np.float32(y[y < np.sort(y.ravel())[100]].min())
    assert np.isfinite(least)


def test_every_name_of_torch_is_here_or_refused_with_ours() -> None:
    names = {
        name
        for name in dir(torch.nn)
        if isinstance(getattr(torch.nn, name), type)
        and issubclass(getattr(torch.nn, name), torch.nn.Module)
    }
    missing = {name for name in names if not hasattr(nn, name)}
    assert missing - LAYERS.keys() == {
        *("AdaptiveLogSoftmaxWithLoss", "Container", "LinearCrossEntropyLoss"),
        *("FractionalMaxPool2d", "FractionalMaxPool3d", "MultiLabelMarginLoss"),
        *("MultiLabelSoftMarginLoss", "MultiMarginLoss", "NLLLoss2d"),
        *("SoftMarginLoss", "TripletMarginWithDistanceLoss"),
    }
    assert not {name for name in LAYERS if hasattr(nn, name)}


@pytest.mark.parametrize("shape", [(2, 16, 48, 48), (9, 8, 64, 65)])
def test_batch_norm_in_training_is_as_exact_as_torch(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(1).random(shape, np.float32) + 1
    x = np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1)
    wide = x.astype(np.float64)
    mean, var = wide.mean((0, 2, 3)), wide.var((0, 2, 3), ddof=1)
    norm = nn.BatchNorm2d(shape[1], momentum=1.0).to(Autodiff(Cpu()))
    theirs = torch.nn.BatchNorm2d(shape[1], momentum=1.0)
    norm(burn.from_numpy(x)), theirs(torch.from_numpy(x))
    for name, right in (("running_mean", mean), ("running_var", var)):
        error = np.abs(getattr(norm, name).numpy() - right).max() / right.max()
        other = np.abs(getattr(theirs, name).numpy() - right).max() / right.max()
        assert error < max(4 * other, 3e-7)

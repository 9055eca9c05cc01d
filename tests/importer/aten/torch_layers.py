"""Common layers of PyTorch, with inputs whose first axis may vary.

Only the opt-in tests import PyTorch; everything here is created on demand.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Entry = tuple[str, Any, tuple[Any, ...]]
#: The extent of the first axis.
SIZE = 5
SHAPES = {1: (4, 12), 2: (4, 12, 10), 3: (4, 6, 8, 7)}


def drawn(*shape: int) -> Any:
    """Return a tensor of random numbers with a fixed seed."""
    import torch

    return torch.randn(*shape, generator=torch.Generator().manual_seed(len(shape)))


def layers() -> Iterator[Entry]:
    """Yield names, modules and inputs."""
    yield from activations()
    for count in (1, 2, 3):
        yield from convolutions(count)
        yield from pools(count)
        yield from norms(count)
        yield from resizes(count)
    yield from rest()
    yield from recurrent()
    yield from attention()
    yield from losses()


def activations() -> Iterator[Entry]:
    """Yield activations."""
    from torch import nn

    x = drawn(SIZE, 4, 7)
    plain = (
        "ReLU ReLU6 ELU SELU CELU GELU SiLU Mish Softplus Softsign Softshrink "
        "Hardshrink Hardtanh Hardswish Hardsigmoid Sigmoid LogSigmoid Tanh Tanhshrink "
        "LeakyReLU RReLU PReLU Identity Flatten"
    )
    for name in plain.split():
        yield name, getattr(nn, name)(), (x,)
    yield "GELU tanh", nn.GELU("tanh"), (x,)
    yield "Softplus beta", nn.Softplus(2, 3), (x,)
    yield "PReLU channels", nn.PReLU(4), (x,)
    yield "Threshold", nn.Threshold(0.1, 2.0), (x,)
    yield "GLU", nn.GLU(1), (x,)
    for name in ("Softmax", "LogSoftmax", "Softmin"):
        yield name, getattr(nn, name)(1), (x,)
    yield "Softmax2d", nn.Softmax2d(), (drawn(SIZE, 4, 3, 2),)
    yield "Unflatten", nn.Unflatten(1, (2, 2)), (x,)


def convolutions(count: int) -> Iterator[Entry]:
    """Yield convolutions and padding over some axes."""
    from torch import nn

    x = drawn(SIZE, *SHAPES[count])
    for kind in ("Conv", "ConvTranspose"):
        layer = getattr(nn, f"{kind}{count}d")
        yield layer.__name__, layer(4, 6, 3, 2, 1), (x,)
        yield f"{layer.__name__} groups", layer(4, 4, 3, groups=2, bias=False), (x,)
    conv = getattr(nn, f"Conv{count}d")
    for padding in ("same", "valid"):
        yield f"{conv.__name__} {padding}", conv(4, 4, 3, padding=padding), (x,)
    for mode in ("reflect", "circular", "replicate"):
        result = conv(4, 4, 3, padding=1, padding_mode=mode)
        yield f"{conv.__name__} {mode}", result, (x,)
    for kind in ("Reflection", "Replication", "Zero", "Circular"):
        yield f"{kind}Pad{count}d", getattr(nn, f"{kind}Pad{count}d")(1), (x,)
    yield f"ConstantPad{count}d", getattr(nn, f"ConstantPad{count}d")(1, 2.5), (x,)


def pools(count: int) -> Iterator[Entry]:
    """Yield pooling over some axes."""
    from torch import nn

    x = drawn(SIZE, *SHAPES[count])
    for kind in ("MaxPool", "AvgPool"):
        layer = getattr(nn, f"{kind}{count}d")
        yield layer.__name__, layer(3, 2, 1), (x,)
        yield f"{layer.__name__} ceil", layer(3, 2, 1, ceil_mode=True), (x,)
    indexed = getattr(nn, f"MaxPool{count}d")(2, 2, return_indices=True)
    yield f"MaxPool{count}d places", indexed, (x,)
    yield f"LPPool{count}d", getattr(nn, f"LPPool{count}d")(2, 2), (x,)
    for kind in ("AdaptiveAvgPool", "AdaptiveMaxPool"):
        layer = getattr(nn, f"{kind}{count}d")
        yield layer.__name__, layer(3), (x,)
        yield f"{layer.__name__} 1", layer(1), (x,)


def norms(count: int) -> Iterator[Entry]:
    """Yield normalization over some axes."""
    from torch import nn

    x = drawn(SIZE, *SHAPES[count])
    batch = getattr(nn, f"BatchNorm{count}d")
    yield batch.__name__, batch(4), (x,)
    yield f"{batch.__name__} plain", batch(4, affine=False), (x,)
    yield f"{batch.__name__} own", batch(4, track_running_stats=False), (x,)
    instance = getattr(nn, f"InstanceNorm{count}d")
    yield instance.__name__, instance(4), (x,)
    kept = instance(4, affine=True, track_running_stats=True)
    yield f"{instance.__name__} kept", kept, (x,)


def resizes(count: int) -> Iterator[Entry]:
    """Yield layers that resize some axes."""
    from torch import nn

    x = drawn(SIZE, *SHAPES[count])
    names = {1: "linear", 2: "bilinear", 3: "trilinear"}
    modes = [names[count], *(["bicubic"] if count == 2 else [])]
    for mode in ("nearest", "nearest-exact"):
        yield f"{mode} {count}d", nn.Upsample(scale_factor=2, mode=mode), (x,)
        yield f"{mode} {count}d sized", nn.Upsample(9, mode=mode), (x,)
    for mode in modes:
        for aligned in (False, True):
            options = {"mode": mode, "align_corners": aligned}
            yield f"{mode} {aligned}", nn.Upsample(scale_factor=2, **options), (x,)
            yield f"{mode} {aligned} sized", nn.Upsample(9, **options), (x,)


def rest() -> Iterator[Entry]:
    """Yield other layers."""
    import torch
    from torch import nn

    line, image = drawn(SIZE, 4, 12), drawn(SIZE, 4, 12, 10)
    words = torch.arange(SIZE * 6).reshape(SIZE, 6) % 9
    yield "GroupNorm", nn.GroupNorm(2, 4), (image,)
    yield "LayerNorm", nn.LayerNorm(12), (line,)
    yield "LayerNorm plain", nn.LayerNorm((4, 12), elementwise_affine=False), (line,)
    yield "RMSNorm", nn.RMSNorm(12), (line,)
    yield "LocalResponseNorm", nn.LocalResponseNorm(3), (image,)
    yield "Linear", nn.Linear(12, 5), (line,)
    yield "Linear plain", nn.Linear(12, 5, bias=False), (line,)
    yield "Bilinear", nn.Bilinear(12, 12, 5), (line, drawn(SIZE, 4, 12) + 1)
    yield "Embedding", nn.Embedding(9, 5, padding_idx=0), (words,)
    for mode in ("sum", "mean", "max"):
        yield f"EmbeddingBag {mode}", nn.EmbeddingBag(9, 5, mode=mode), (words,)
    yield "PixelShuffle", nn.PixelShuffle(2), (image,)
    yield "PixelUnshuffle", nn.PixelUnshuffle(2), (image,)
    yield "ChannelShuffle", nn.ChannelShuffle(2), (image,)
    yield "Fold", nn.Fold((5, 6), 2), (drawn(SIZE, 12, 20),)
    yield "Unfold", nn.Unfold(3, padding=1, stride=2), (image,)
    yield "CosineSimilarity", nn.CosineSimilarity(1), (line, line + 1)
    yield "PairwiseDistance", nn.PairwiseDistance(), (line, line + 1)
    for name in ("Dropout", "Dropout2d", "AlphaDropout", "FeatureAlphaDropout"):
        yield name, getattr(nn, name)(), (image,)
    yield "weight norm", nn.utils.parametrizations.weight_norm(nn.Linear(12, 5)), (
        line,
    )


def recurrent() -> Iterator[Entry]:
    """Yield recurrent layers and cells."""
    from torch import nn

    x = drawn(SIZE, 4, 12)
    for name in ("LSTM", "GRU", "RNN"):
        layer = getattr(nn, name)
        yield name, layer(12, 5, batch_first=True), (x,)
        yield f"{name} both", layer(12, 5, 2, bidirectional=True), (x,)
        yield f"{name}Cell", getattr(nn, f"{name}Cell")(12, 5), (x[:, 0],)
    yield "RNN relu", nn.RNN(12, 5, nonlinearity="relu"), (x,)


def attention() -> Iterator[Entry]:
    """Yield attention and transformers."""
    from torch import nn

    x = drawn(SIZE, 4, 12)
    yield "MultiheadAttention", nn.MultiheadAttention(12, 3, batch_first=True), (
        x,
        x,
        x,
    )
    encoder = nn.TransformerEncoderLayer(12, 3, 20, batch_first=True)
    yield "TransformerEncoderLayer", encoder, (x,)
    yield "TransformerEncoder", nn.TransformerEncoder(
        nn.TransformerEncoderLayer(12, 3, 20, batch_first=True, norm_first=True), 2
    ), (x,)
    decoder = nn.TransformerDecoderLayer(12, 3, 20, batch_first=True)
    yield "TransformerDecoderLayer", decoder, (x, x + 1)
    yield "Transformer", nn.Transformer(12, 3, 1, 1, 20, batch_first=True), (x, x + 1)


def losses() -> Iterator[Entry]:
    """Yield losses."""
    import torch
    from torch import nn

    x, y = drawn(SIZE, 4, 12), drawn(SIZE, 4, 12).flip(0)
    classes = torch.arange(SIZE * 12).reshape(SIZE, 12) % 4
    names = (
        "L1Loss MSELoss SmoothL1Loss HuberLoss SoftMarginLoss KLDivLoss "
        "HingeEmbeddingLoss PoissonNLLLoss"
    )
    for name in names.split():
        for reduction in ("mean", "none", "sum"):
            yield f"{name} {reduction}", getattr(nn, name)(reduction=reduction), (x, y)
    chance = y.sigmoid()
    yield "BCELoss", nn.BCELoss(), (x.sigmoid(), chance)
    yield "BCEWithLogitsLoss", nn.BCEWithLogitsLoss(), (x, chance)
    yield "CrossEntropyLoss", nn.CrossEntropyLoss(), (x, classes)
    smooth = nn.CrossEntropyLoss(label_smoothing=0.1)
    yield "CrossEntropyLoss smooth", smooth, (x, classes)
    weighted = nn.CrossEntropyLoss(weight=torch.tensor([0.5, 1.0, 2.0, 0.1]))
    yield "CrossEntropyLoss weight", weighted, (x, classes)
    yield "CrossEntropyLoss shares", nn.CrossEntropyLoss(), (x, chance)
    yield "NLLLoss", nn.NLLLoss(), (x, classes)
    yield "MarginRankingLoss", nn.MarginRankingLoss(), (x, y, y.sign())
    a, b, c = x[:, 0], y[:, 0], y[:, 1]
    signs = b[:, 0].sign()
    yield "CosineEmbeddingLoss", nn.CosineEmbeddingLoss(), (a, b, signs)
    yield "MultiLabelSoftMarginLoss", nn.MultiLabelSoftMarginLoss(), (a, b.sigmoid())
    yield "TripletMarginLoss", nn.TripletMarginLoss(), (a, b, c)
    distance = nn.TripletMarginWithDistanceLoss()
    yield "TripletMarginWithDistanceLoss", distance, (a, b, c)

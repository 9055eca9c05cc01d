"""Networks for images as torchvision publishes them, independent of the recipes.

Each is a function of a :class:`Net`, which creates the weights under the published keys
and computes. Everything that a recipe must infer is a number here.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

Value = Any


class Net(Protocol):
    """Layers by key, and functions; weights are created when a layer is called."""

    def conv(
        self,
        key: str,
        x: Value,
        size: tuple[int, int],
        kernel: int,
        *,
        stride: int = 1,
        padding: int = 0,
        groups: int = 1,
        bias: bool = False,
    ) -> Value: ...

    def norm(self, key: str, x: Value, size: int, eps: float = 1e-5) -> Value: ...

    def layer_norm(self, key: str, x: Value, size: int, eps: float) -> Value: ...

    def linear(self, key: str, x: Value, size: tuple[int, int]) -> Value: ...

    def tensor(self, key: str, *shape: int) -> Value: ...

    def attention(self, key: str, x: Value, size: int, heads: int) -> Value: ...

    def call(self, name: str, *operands: Value) -> Value:
        """Apply ``relu``, ``relu6``, ``silu``, ``sigmoid``, ``gelu``, ``add``..."""
        ...

    def pool(self, kind: str, x: Value, kernel: int, stride: int, pad: int) -> Value:
        """Apply ``max`` or ``average`` pooling."""
        ...

    def adaptive(self, x: Value, size: int) -> Value: ...

    def permute(self, x: Value, *axes: int) -> Value: ...

    def flatten(self, x: Value, axis: int) -> Value: ...

    def concat(self, values: Sequence[Value], axis: int) -> Value: ...

    def first(self, x: Value) -> Value:
        """Return the first element of axis 1."""
        ...

    def before(self, first: Value, x: Value) -> Value:
        """Concatenate ``first`` ``[1, 1, size]``, repeated per sample, and ``x``."""
        ...


Reference = Callable[[Net, Value], Value]


def _bottleneck(
    net: Net, at: str, x: Value, given: int, out: int, step: int, base: int, groups: int
) -> Value:
    inner = out // 4 * base
    size = (inner, inner)
    y = net.conv(f"{at}.conv1", x, (given, inner), 1)
    y = net.call("relu", net.norm(f"{at}.bn1", y, inner))
    y = net.conv(f"{at}.conv2", y, size, 3, stride=step, padding=1, groups=groups)
    y = net.call("relu", net.norm(f"{at}.bn2", y, inner))
    y = net.conv(f"{at}.conv3", y, (inner, out), 1)
    return net.norm(f"{at}.bn3", y, out)


def _basic_block(net: Net, at: str, x: Value, given: int, out: int, step: int) -> Value:
    y = net.conv(f"{at}.conv1", x, (given, out), 3, stride=step, padding=1)
    y = net.call("relu", net.norm(f"{at}.bn1", y, out))
    y = net.conv(f"{at}.conv2", y, (out, out), 3, padding=1)
    return net.norm(f"{at}.bn2", y, out)


def resnet(
    depths: Sequence[int], *, deep: bool = False, groups: int = 1, base: int = 1
) -> Reference:
    """Return a ResNet of 8 to 64 channels; ``base`` times as wide inside of blocks."""

    def block(net: Net, at: str, x: Value, given: int, out: int, step: int) -> Value:
        if deep:
            y = _bottleneck(net, at, x, given, out, step, base, groups)
        else:
            y = _basic_block(net, at, x, given, out, step)
        if step != 1 or given != out:
            x = net.conv(f"{at}.downsample.0", x, (given, out), 1, stride=step)
            x = net.norm(f"{at}.downsample.1", x, out)
        return net.call("relu", net.call("add", y, x))

    def run(net: Net, x: Value) -> Value:
        x = net.conv("conv1", x, (3, 8), 7, stride=2, padding=3)
        x = net.pool("max", net.call("relu", net.norm("bn1", x, 8)), 3, 2, 1)
        given = 8
        for stage, depth in enumerate(depths):
            for number in range(depth):
                step = 2 if stage and not number else 1
                at, out = f"layer{stage + 1}.{number}", 8 << stage + 2 * deep
                x, given = block(net, at, x, given, out, step), out
        return net.linear("fc", net.flatten(net.adaptive(x, 1), 1), (given, 5))

    return run


def vgg(plan: str, *, normed: bool) -> Reference:
    """Return a VGG; ``plan`` has a digit for eights of channels, and M for a pool."""

    def run(net: Net, x: Value) -> Value:
        index, given = 0, 3
        for mark in plan:
            if mark == "M":
                x, index = net.pool("max", x, 2, 2, 0), index + 1
                continue
            out, at = 8 * int(mark), f"features.{index}"
            x = net.conv(at, x, (given, out), 3, padding=1, bias=True)
            if normed:
                x, index = net.norm(f"features.{index + 1}", x, out), index + 1
            x, index, given = net.call("relu", x), index + 2, out
        x = net.flatten(net.adaptive(x, 7), 1)
        x = net.call("relu", net.linear("classifier.0", x, (given * 49, 12)))
        x = net.call("relu", net.linear("classifier.3", x, (12, 10)))
        return net.linear("classifier.6", x, (10, 5))

    return run


def mobilenet_v2(net: Net, x: Value) -> Value:
    """MobileNetV2 a quarter as wide."""

    def normed(
        at: str, x: Value, given: int, out: int, kernel: int, **more: Any
    ) -> Any:
        x = net.conv(f"{at}.0", x, (given, out), kernel, padding=kernel // 2, **more)
        return net.call("relu6", net.norm(f"{at}.1", x, out))

    x = normed("features.0", x, 3, 8, 3, stride=2)
    given, number = 8, 0
    for wide, out, count, first in (
        *((1, 4, 1, 1), (6, 6, 2, 2), (6, 8, 3, 2), (6, 16, 4, 2)),
        *((6, 24, 3, 1), (6, 40, 3, 2), (6, 80, 1, 1)),
    ):
        for step in (first, *(1,) * (count - 1)):
            number += 1
            at, inner = f"features.{number}.conv", given * wide
            y, index = x, 0
            if wide != 1:
                y, index = normed(f"{at}.0", y, given, inner, 1), 1
            y = normed(f"{at}.{index}", y, inner, inner, 3, stride=step, groups=inner)
            y = net.conv(f"{at}.{index + 1}", y, (inner, out), 1)
            y = net.norm(f"{at}.{index + 2}", y, out)
            x = net.call("add", x, y) if step == 1 and given == out else y
            given = out
    x = normed("features.18", x, given, 96, 1)
    return net.linear("classifier.1", net.flatten(net.adaptive(x, 1), 1), (96, 5))


def densenet(dot: str = "") -> Reference:
    """Return a DenseNet; ``dot`` is in the keys of older checkpoints."""

    def run(net: Net, x: Value) -> Value:
        x = net.conv("features.conv0", x, (3, 8), 7, stride=2, padding=3)
        x = net.call("relu", net.norm("features.norm0", x, 8))
        x, given = net.pool("max", x, 3, 2, 1), 8
        for block, count in enumerate((2, 3), 1):
            for number in range(1, count + 1):
                at = f"features.denseblock{block}.denselayer{number}"
                y = net.call("relu", net.norm(f"{at}.norm{dot}1", x, given))
                y = net.conv(f"{at}.conv{dot}1", y, (given, 12), 1)
                y = net.call("relu", net.norm(f"{at}.norm{dot}2", y, 12))
                y = net.conv(f"{at}.conv{dot}2", y, (12, 4), 3, padding=1)
                x, given = net.concat([x, y], 1), given + 4
            if block == 1:
                at = "features.transition1"
                x = net.call("relu", net.norm(f"{at}.norm", x, given))
                x = net.conv(f"{at}.conv", x, (given, given // 2), 1)
                x, given = net.pool("average", x, 2, 2, 0), given // 2
        x = net.call("relu", net.norm("features.norm5", x, given))
        return net.linear("classifier", net.flatten(net.adaptive(x, 1), 1), (given, 5))

    return run


def swished(
    net: Net,
    at: str,
    x: Value,
    size: tuple[int, int],
    kernel: int,
    eps: float,
    *,
    act: bool = True,
    **more: Any,
) -> Value:
    """Return a convolution, batch norm and SiLU of EfficientNet."""
    x = net.conv(f"{at}.0", x, size, kernel, padding=kernel // 2, **more)
    x = net.norm(f"{at}.1", x, size[1], eps)
    return net.call("silu", x) if act else x


def fused(
    net: Net, at: str, x: Value, given: int, stage: Any, step: int, eps: float
) -> Value:
    """Return a block of the first stages of EfficientNetV2."""
    _, kernel, _, wide, out, _ = stage
    if wide == 1:
        return swished(net, f"{at}.0", x, (given, out), kernel, eps, stride=step)
    inner = given * wide
    y = swished(net, f"{at}.0", x, (given, inner), kernel, eps, stride=step)
    return swished(net, f"{at}.1", y, (inner, out), 1, eps, act=False)


def inverted(
    net: Net, at: str, x: Value, given: int, stage: Any, step: int, eps: float
) -> Value:
    """Return a block with squeeze-and-excitation."""
    _, kernel, _, wide, out, _ = stage
    inner, index, y = given * wide, 0, x
    if wide != 1:
        y, index = swished(net, f"{at}.0", y, (given, inner), 1, eps), 1
    deep = {"stride": step, "groups": inner}
    y = swished(net, f"{at}.{index}", y, (inner, inner), kernel, eps, **deep)
    few, se = max(1, given // 4), f"{at}.{index + 1}"
    z = net.conv(f"{se}.fc1", net.adaptive(y, 1), (inner, few), 1, bias=True)
    z = net.conv(f"{se}.fc2", net.call("silu", z), (few, inner), 1, bias=True)
    y = net.call("mul", net.call("sigmoid", z), y)
    return swished(net, f"{at}.{index + 2}", y, (inner, out), 1, eps, act=False)


def efficientnet(
    stages: Sequence[tuple[str, int, int, int, int, int]], eps: float
) -> Reference:
    """Return an EfficientNet of stages: kind, kernel, stride, width, channels, count.

    The kind is ``mb``, or ``fused`` in the second version.
    """

    def run(net: Net, x: Value) -> Value:
        x, given = swished(net, "features.0", x, (3, 8), 3, eps, stride=2), 8
        for number, stage in enumerate(stages, 1):
            kind, _, first, _, out, count = stage
            block = fused if kind == "fused" else inverted
            for index in range(count):
                step = 1 if index else first
                at = f"features.{number}.{index}.block"
                y = block(net, at, x, given, stage, step, eps)
                x = net.call("add", x, y) if step == 1 and given == out else y
                given = out
        x = swished(net, f"features.{len(stages) + 1}", x, (given, 24), 1, eps)
        return net.linear("classifier.1", net.flatten(net.adaptive(x, 1), 1), (24, 5))

    return run


def convnext(net: Net, x: Value) -> Value:
    """ConvNeXt of 8 to 32 channels."""

    def norm(at: str, x: Value, size: int) -> Value:
        y = net.layer_norm(at, net.permute(x, 0, 2, 3, 1), size, 1e-6)
        return net.permute(y, 0, 3, 1, 2)

    x = net.conv("features.0.0", x, (3, 8), 4, stride=4, bias=True)
    x = norm("features.0.1", x, 8)
    for stage, (size, count) in enumerate(((8, 1), (16, 2), (32, 1))):
        if stage:
            at = f"features.{2 * stage}"
            x = norm(f"{at}.0", x, size // 2)
            x = net.conv(f"{at}.1", x, (size // 2, size), 2, stride=2, bias=True)
        for number in range(count):
            at = f"features.{2 * stage + 1}.{number}"
            y = net.conv(
                f"{at}.block.0", x, (size, size), 7, padding=3, groups=size, bias=True
            )
            y = net.permute(y, 0, 2, 3, 1)
            y = net.layer_norm(f"{at}.block.2", y, size, 1e-6)
            y = net.call("gelu", net.linear(f"{at}.block.3", y, (size, 4 * size)))
            y = net.permute(
                net.linear(f"{at}.block.5", y, (4 * size, size)), 0, 3, 1, 2
            )
            y = net.call("mul", net.tensor(f"{at}.layer_scale", size, 1, 1), y)
            x = net.call("add", y, x)
    x = net.flatten(norm("classifier.0", net.adaptive(x, 1), 32), 1)
    return net.linear("classifier.2", x, (32, 5))


def vit(mlp: tuple[str, str], size: int = 16, heads: int = 1) -> Reference:
    """Return a vision transformer for images of 12 x 12; ``mlp`` are two keys."""

    def run(net: Net, x: Value) -> Value:
        x = net.conv("conv_proj", x, (3, size), 4, stride=4, bias=True)
        x = net.permute(net.flatten(x, 2), 0, 2, 1)
        x = net.before(net.tensor("class_token", 1, 1, size), x)
        x = net.call("add", x, net.tensor("encoder.pos_embedding", 1, 10, size))
        for number in range(2):
            at = f"encoder.layers.encoder_layer_{number}"
            y = net.layer_norm(f"{at}.ln_1", x, size, 1e-6)
            x = net.call(
                "add", net.attention(f"{at}.self_attention", y, size, heads), x
            )
            y = net.layer_norm(f"{at}.ln_2", x, size, 1e-6)
            y = net.linear(f"{at}.mlp.{mlp[0]}", y, (size, 24))
            y = net.linear(f"{at}.mlp.{mlp[1]}", net.call("gelu", y), (24, size))
            x = net.call("add", x, y)
        x = net.first(net.layer_norm("encoder.ln", x, size, 1e-6))
        return net.linear("heads.head", x, (size, 5))

    return run


V1 = (
    *(("mb", 3, 1, 1, 8, 1), ("mb", 3, 2, 6, 12, 2), ("mb", 5, 2, 6, 12, 1)),
    *(("mb", 3, 2, 6, 16, 2), ("mb", 5, 1, 6, 16, 1), ("mb", 5, 2, 6, 20, 1)),
    ("mb", 3, 1, 6, 24, 1),
)
V1_DEEP = (("mb", 3, 1, 1, 8, 3), *V1[1:])
V2 = (
    *(("fused", 3, 1, 1, 8, 2), ("fused", 3, 2, 4, 12, 2), ("fused", 3, 2, 4, 16, 1)),
    *(("mb", 3, 2, 4, 20, 2), ("mb", 3, 1, 6, 20, 1), ("mb", 3, 2, 6, 24, 1)),
)

#: Every twin, with the image sizes that it is tested on.
REFERENCES: dict[str, tuple[Reference, tuple[tuple[int, int], ...]]] = {
    "resnet basic": (resnet((2, 2, 1, 1)), ((64, 64), (50, 70))),
    "resnet deep": (resnet((1, 2, 1, 1), deep=True), ((64, 64), (50, 70))),
    "resnext": (
        resnet((1, 1, 1, 1), deep=True, groups=4, base=2),
        ((64, 64), (50, 70)),
    ),
    "wide resnet": (resnet((1, 1, 2, 1), deep=True, base=2), ((64, 64), (33, 47))),
    "vgg": (vgg("1M2M33M44M", normed=False), ((64, 64), (112, 64))),
    "vgg with norms": (vgg("11M22M3M", normed=True), ((56, 56), (64, 48))),
    "mobilenet": (mobilenet_v2, ((64, 64), (50, 70))),
    "densenet": (densenet(), ((64, 64), (48, 80))),
    "densenet of old": (densenet("."), ((64, 64), (48, 80))),
    "efficientnet": (efficientnet(V1, 1e-5), ((64, 64), (50, 70))),
    "efficientnet b5": (efficientnet(V1_DEEP, 1e-3), ((64, 64), (50, 70))),
    "efficientnet v2": (efficientnet(V2, 1e-3), ((64, 64), (50, 70))),
    "convnext": (convnext, ((64, 64), (50, 70))),
    "vit": (vit(("0", "3")), ((12, 12),)),
    "vit of old": (vit(("linear_1", "linear_2"), 128, 2), ((12, 12),)),
}

#: The number of attention heads that the width of a twin does not determine.
HEADS = {"vit": 1, "vit of old": 2}


def write_configuration(folder: Path, name: str) -> None:
    """Write the ``config.json`` of a twin into ``folder``, if it needs one."""
    if name in HEADS:
        config = {"num_attention_heads": HEADS[name]}
        (folder / "config.json").write_text(json.dumps(config))

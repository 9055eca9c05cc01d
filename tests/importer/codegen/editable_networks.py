"""Image classifiers as exporters write them, for any of several sizes."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import onnx

from tests.golden.build.case import Build, Shape, model

WIDTH, HEADS, PATCH = 16, 4, 8


@dataclass(frozen=True)
class Sizes:
    """The sizes that a test varies; images are square."""

    classes: int = 5
    layers: int = 4
    image: int = 32

    @property
    def grid(self) -> int:
        """The number of patches per side."""
        return self.image // PATCH


class Network(Build):
    """A graph whose nodes have the scopes of the modules that PyTorch would have."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(7)
        self.sizes = sizes

    def node(
        self, kind: str, inputs: list[str], path: str, **attributes: object
    ) -> str:
        """Return the result of a node in the scope ``path``."""
        scope = "/" + re.sub(r"\.(?!\d)", "/", path) if path else ""
        name = f"{scope}/{kind}_{len(self.nodes)}"
        return self.op(kind, inputs, f"{name}_output_0", name=name, **attributes)

    def shape(self, x: str, path: str, *dims: int) -> str:
        """Return ``x`` reshaped; a 0 keeps the dimension."""
        name = f"shape_{len(self.nodes)}"
        return self.node("Reshape", [x, self.stored(name, dims)], path)

    def conv(
        self, x: str, path: str, size: tuple[int, int, int], **attributes: object
    ) -> str:
        """Return a convolution of ``size``: inputs of a group, outputs, kernel."""
        given, width, kernel = size
        weight = self.weight(f"{path}.weight", width, given, kernel, kernel, scale=0.2)
        inputs = [x, weight, self.weight(f"{path}.bias", width)]
        kernels = [kernel, kernel]
        return self.node("Conv", inputs, path, kernel_shape=kernels, **attributes)

    def linear(self, x: str, path: str, given: int, width: int) -> str:
        """Return a linear layer of an operand of rank 3 or more."""
        weight = self.weight(f"{path}.weight", given, width, scale=0.2)
        product = self.node("MatMul", [x, weight], path)
        return self.node("Add", [product, self.weight(f"{path}.bias", width)], path)

    def norm(self, x: str, path: str) -> str:
        """Return a layer norm of the last axis."""
        weights = [self.positive(f"{path}.weight", WIDTH)]
        weights.append(self.weight(f"{path}.bias", WIDTH))
        return self.node("LayerNormalization", [x, *weights], path, axis=-1)

    def turned(self, x: str, path: str, *perm: int) -> str:
        """Return ``x`` with permuted axes."""
        return self.node("Transpose", [x], path, perm=list(perm))

    def mlp(self, x: str, path: str) -> str:
        """Return two linear layers with an activation between them."""
        hidden = self.node("Relu", [self.linear(x, f"{path}.fc1", WIDTH, 24)], path)
        return self.linear(hidden, f"{path}.fc2", 24, WIDTH)

    def attention(self, x: str, path: str, length: int) -> str:
        """Return attention over the second axis, of ``length`` positions."""
        query, key, value = (
            self.turned(
                self.shape(
                    self.linear(x, f"{path}.{part}", WIDTH, WIDTH),
                    path,
                    *(0, length, HEADS, WIDTH // HEADS),
                ),
                path,
                *((0, 2, 3, 1) if part == "key" else (0, 2, 1, 3)),
            )
            for part in ("query", "key", "value")
        )
        scores = self.node("MatMul", [query, key], path)
        half = self.stored(f"scale_{len(self.nodes)}", (WIDTH // HEADS) ** -0.5)
        scores = self.node("Mul", [scores, half], path)
        scores = self.node("Softmax", [scores], path, axis=-1)
        x = self.turned(self.node("MatMul", [scores, value], path), path, 0, 2, 1, 3)
        x = self.shape(x, path, 0, length, WIDTH)
        return self.linear(x, f"{path}.output", WIDTH, WIDTH)

    def pooled(self, x: str) -> str:
        """Return the means of the images."""
        return self.node("Flatten", [self.node("GlobalAveragePool", [x], "pool")], "")

    def finish(self, x: str, given: int = WIDTH) -> onnx.ModelProto:
        """Return the model, which ends with a classification layer."""
        sizes = self.sizes
        weight = self.weight("head.weight", sizes.classes, given, scale=0.2)
        head = [x, weight, self.weight("head.bias", sizes.classes)]
        self.op("Gemm", head, "logits", transB=1, name="/head/Gemm")
        inputs: dict[str, Shape] = {"image": ["batch", 3, sizes.image, sizes.image]}
        return model(self.graph("net", inputs, {"logits": ["batch", sizes.classes]}))

    def patches(self, path: str) -> str:
        """Return the image as patches: [batch, patches, width]."""
        size = (3, WIDTH, PATCH)
        x = self.conv("image", f"{path}.projection", size, strides=[PATCH, PATCH])
        x = self.shape(x, path, 0, WIDTH, self.sizes.grid**2)
        return self.turned(x, path, 0, 2, 1)

    def token(self, x: str, path: str) -> str:
        """Return ``x`` with a class token in front."""
        batch = self.node("Shape", [x], path, start=0, end=1)
        shape = self.node(
            "Concat", [batch, self.stored("token_shape", [1, WIDTH])], path, axis=0
        )
        token = self.weight(f"{path}.cls_token", 1, 1, WIDTH)
        token = self.node("Expand", [token, shape], path)
        return self.node("Concat", [token, x], path, axis=1)


def resnet(sizes: Sizes) -> onnx.ModelProto:
    """Return residual blocks of two convolutions with batch norms."""
    b = Network(sizes)

    def conv(x: str, path: str, given: int, stride: int = 1) -> str:
        size, strides = (given, WIDTH, 3), [stride, stride]
        x = b.conv(x, f"{path}.conv", size, pads=[1, 1, 1, 1], strides=strides)
        norm = [b.positive(f"{path}.norm.weight", WIDTH)]
        norm += [b.weight(f"{path}.norm.{n}", WIDTH) for n in ("bias", "running_mean")]
        norm.append(b.positive(f"{path}.norm.running_var", WIDTH))
        return b.node("BatchNormalization", [x, *norm], f"{path}.norm")

    x = b.node("Relu", [conv("image", "stem", 3, 2)], "stem")
    for path in (f"layers.{i}" for i in range(sizes.layers)):
        y = b.node("Relu", [conv(x, f"{path}.first", WIDTH)], path)
        y = b.node("Add", [conv(y, f"{path}.second", WIDTH), x], path)
        x = b.node("Relu", [y], path)
    return b.finish(b.pooled(x))


def vit(sizes: Sizes) -> onnx.ModelProto:
    """Return a vision transformer with a class token and learned positions."""
    b = Network(sizes)
    length = sizes.grid**2 + 1
    x = b.token(b.patches("embeddings"), "embeddings")
    positions = b.weight("embeddings.position_embeddings", 1, length, WIDTH)
    x = b.node("Add", [x, positions], "embeddings")
    for path in (f"layers.{i}" for i in range(sizes.layers)):
        y = b.attention(b.norm(x, f"{path}.norm1"), f"{path}.attention", length)
        x = b.node("Add", [x, y], path)
        y = b.mlp(b.norm(x, f"{path}.norm2"), f"{path}.mlp")
        x = b.node("Add", [x, y], path)
    first = b.stored("first", 0)
    return b.finish(b.node("Gather", [b.norm(x, "norm"), first], "", axis=1))


def mixer(sizes: Sizes) -> onnx.ModelProto:
    """Return an MLP-Mixer: layers that mix patches, then channels."""
    b = Network(sizes)
    count = sizes.grid**2
    x = b.patches("stem")
    for path in (f"layers.{i}" for i in range(sizes.layers)):
        y = b.turned(b.norm(x, f"{path}.norm1"), path, 0, 2, 1)
        y = b.node("Relu", [b.linear(y, f"{path}.tokens.fc1", count, 20)], path)
        y = b.linear(y, f"{path}.tokens.fc2", 20, count)
        x = b.node("Add", [x, b.turned(y, path, 0, 2, 1)], path)
        y = b.mlp(b.norm(x, f"{path}.norm2"), f"{path}.mlp")
        x = b.node("Add", [x, y], path)
    return b.finish(b.node("ReduceMean", [x, b.stored("axes", [1])], "", keepdims=0))


def vgg(sizes: Sizes) -> onnx.ModelProto:
    """Return a chain of convolutions, and a linear layer on all pixels."""
    b = Network(sizes)
    x = b.node("Relu", [b.conv("image", "stem", (3, WIDTH, 3))], "")
    for path in (f"layers.{i}" for i in range(sizes.layers)):
        x = b.conv(x, f"{path}.conv", (WIDTH, WIDTH, 3), pads=[1, 1, 1, 1])
        x = b.node("Relu", [x], path)
    x = b.node("MaxPool", [x], "pool", kernel_shape=[6, 6], strides=[6, 6])
    pixels = ((sizes.image - 2) // 6) ** 2
    return b.finish(b.shape(x, "", 0, WIDTH * pixels), WIDTH * pixels)


def convnext(sizes: Sizes) -> onnx.ModelProto:
    """Return depthwise convolutions with scaled linear layers over channels."""
    b = Network(sizes)
    x = b.conv("image", "stem", (3, WIDTH, 4), strides=[4, 4])
    for path in (f"layers.{i}" for i in range(sizes.layers)):
        size, pads = (1, WIDTH, 7), [3, 3, 3, 3]
        y = b.conv(x, f"{path}.dwconv", size, pads=pads, group=WIDTH)
        y = b.norm(b.turned(y, path, 0, 2, 3, 1), f"{path}.norm")
        y = b.node("Mul", [b.mlp(y, path), b.weight(f"{path}.gamma", WIDTH)], path)
        x = b.node("Add", [x, b.turned(y, path, 0, 3, 1, 2)], path)
    return b.finish(b.norm(b.pooled(x), "norm"))


def pixel_attention(sizes: Sizes) -> onnx.ModelProto:
    """Return convolutions, each followed by attention over all pixels."""
    b = Network(sizes)
    grid = sizes.image // 4
    x = b.conv("image", "stem", (3, WIDTH, 4), strides=[4, 4])
    for path in (f"layers.{i}" for i in range(sizes.layers)):
        x = b.node("Relu", [b.conv(x, f"{path}.conv", (WIDTH, WIDTH, 1))], path)
        y = b.turned(b.shape(x, path, 0, WIDTH, grid * grid), path, 0, 2, 1)
        y = b.attention(b.norm(y, f"{path}.norm"), f"{path}.attention", grid * grid)
        y = b.shape(b.turned(y, path, 0, 2, 1), path, 0, WIDTH, grid, grid)
        x = b.node("Add", [x, y], path)
    return b.finish(b.pooled(x))


def anchors(sizes: Sizes) -> onnx.ModelProto:
    """Return convolutions, and a head for two anchors at every pixel."""
    b = Network(sizes)
    grid = sizes.image // 4
    x = b.conv("image", "stem", (3, WIDTH, 4), strides=[4, 4])
    for path in (f"layers.{i}" for i in range(sizes.layers)):
        x = b.node("Relu", [b.conv(x, f"{path}.conv", (WIDTH, WIDTH, 1))], path)
    x = b.turned(b.conv(x, "predictor", (WIDTH, 2 * 6, 1)), "", 0, 2, 3, 1)
    x = b.node("Relu", [b.shape(x, "", 0, 2 * grid**2, 6)], "")
    return b.finish(b.node("ReduceMean", [x, b.stored("axes", [1])], "", keepdims=0), 6)


def pyramid(sizes: Sizes) -> onnx.ModelProto:
    """Return convolutions, and heads for the pixels of two resolutions."""
    b = Network(sizes)
    grid = sizes.image // 4
    x = b.conv("image", "stem", (3, WIDTH, 4), strides=[4, 4])
    for path in (f"layers.{i}" for i in range(sizes.layers)):
        x = b.node("Relu", [b.conv(x, f"{path}.conv", (WIDTH, WIDTH, 1))], path)
    boxes = []
    for number, side in enumerate((grid, grid // 2)):
        y = b.conv(x, f"heads.{number}", (WIDTH, 3 * 4, 1))
        y = b.turned(y, "", 0, 2, 3, 1)
        boxes.append(b.shape(y, "", 0, 3 * side**2, 4))
        x = b.conv(x, "down", (WIDTH, WIDTH, 2), strides=[2, 2]) if not number else x
    x = b.node("Relu", [b.node("Concat", boxes, "", axis=1)], "")
    return b.finish(b.node("ReduceMean", [x, b.stored("axes", [1])], "", keepdims=0), 4)


NETWORKS: Mapping[str, Callable[[Sizes], onnx.ModelProto]] = {
    "resnet": resnet,
    "vit": vit,
    "mixer": mixer,
    "vgg": vgg,
    "convnext": convnext,
    "pixel_attention": pixel_attention,
    "anchors": anchors,
    "pyramid": pyramid,
}

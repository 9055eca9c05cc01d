"""EfficientNet and EfficientNetV2 with the keys of torchvision."""

from burn_import.frontends.recipes.config import Config
from burn_import.frontends.recipes.graph_writer import LOGITS, RecipeWriter
from burn_import.frontends.recipes.registry import recipe
from burn_import.frontends.recipes.vision.common import depthwise, image, pool
from burn_ir import UnsupportedModel
from burn_ir.raw import RawModel

#: The strides of the stages; the second version has six or seven stages.
STRIDES = (1, 2, 2, 2, 1, 2, 1)
#: The epsilon of batch norms, which differs from B5 on (recognized by the blocks of the
#: first stage) and in the second version.
DEEP, LARGE_EPS, EPS = 3, 1e-3, 1e-5


@recipe(
    "efficientnet",
    "EfficientNet",
    "features.0.0.weight",
    "features.1.0.block.0.0.weight",
    "features.6.0.block.2.fc1.weight",
    "classifier.1.weight",
    is_configured=False,
)
def efficientnet(w: RecipeWriter, config: Config) -> RawModel:
    """Return the graph of torchvision's ``EfficientNet``: class scores.

    Raises:
        UnsupportedModel: it has another number of stages than six or seven.
    """
    stages = w.count("features") - 2
    if stages not in (6, 7):
        raise UnsupportedModel(f"expected six or seven stages, got {stages}")
    fused = not w.has("features.1.0.block.1.fc1.weight")
    large = fused or w.count("features.1") >= DEEP
    eps = LARGE_EPS if large else EPS
    strides = ", ".join(map(str, STRIDES[:stages]))
    w.note(
        "Weights do not tell strides: the first convolution's is 2, those of the "
        f"stages are {strides}. Activations are SiLU, and batch norms have the epsilon "
        f"{eps:g} of {'version 2' if fused else 'B5 to B7' if large else 'B0 to B4'}."
    )
    x = conv_norm(w, "features.0", image(w, "features.0.0.weight"), eps, 2)
    for stage in range(1, stages + 1):
        for number in range(w.count(f"features.{stage}")):
            name = f"features.{stage}.{number}"
            squeezed = any(w.has(f"{name}.block.{n}.fc1.weight") for n in (1, 2))
            with w.module(name, "MBConv" if squeezed else "FusedMBConv"):
                x = block(w, x, eps, STRIDES[stage - 1] if number == 0 else 1)
    x = conv_norm(w, f"features.{stages + 1}", x, eps)
    return w.model(w.linear("classifier.1", pool(w, x), LOGITS))


def block(w: RecipeWriter, x: str, eps: float, stride: int) -> str:
    """Apply the steps of a block, with a residual if shapes are equal."""
    y, count = x, w.count("block")
    squeezed = [n for n in range(count) if w.has(f"block.{n}.fc1.weight")]
    deep = squeezed[0] - 1 if squeezed else 0  # the convolution with the stride
    for number in range(count):
        name = f"block.{number}"
        if number in squeezed:
            with w.module(name, "SqueezeExcitation"):
                y = squeeze(w, y)
            continue
        step = stride if number == deep else 1
        narrow = number == count - 1 and count > 1
        alone = bool(squeezed) and number == deep
        y = conv_norm(w, name, y, eps, step, act=not narrow, alone=alone)
    first = w.shape("block.0.0.weight")
    input_channels = first[0] if squeezed and deep == 0 else first[1]
    same = stride == 1 and input_channels == w.shape(f"block.{count - 1}.0.weight")[0]
    return w.add(x, y) if same else y


def squeeze(w: RecipeWriter, x: str) -> str:
    """Apply squeeze-and-excitation: scale channels by a function of their means."""
    y = w.op("GlobalAveragePool", x)
    y = w.activation("silu", w.conv("fc1", y))
    return w.op("Mul", w.op("Sigmoid", w.conv("fc2", y)), x)


def conv_norm(
    w: RecipeWriter,
    name: str,
    x: str,
    eps: float,
    stride: int = 1,
    *,
    act: bool = True,
    alone: bool = False,
) -> str:
    """Apply a convolution (depthwise if ``alone``), batch norm and SiLU."""
    with w.module(name, "ConvNormActivation"):
        x = depthwise(w, "0", x, stride) if alone else w.conv("0", x, stride)
        x = w.batch_norm("1", x, eps)
        return w.activation("silu", x) if act else x

"""VGG with the keys of torchvision, with and without batch norms."""

from itertools import pairwise
from math import isqrt

from burn_import.frontends.recipes.config import Config
from burn_import.frontends.recipes.graph_writer import LOGITS, RecipeWriter
from burn_import.frontends.recipes.registry import recipe
from burn_import.frontends.recipes.vision.common import image, max_pool, relu
from burn_ir import InvalidModel
from burn_ir.raw import RawModel

#: Index distance from a layer to the next convolution: a ReLU, or also a pool.
RELU, POOL = 2, 3


@recipe(
    "vgg",
    "VGG",
    "features.0.weight",
    "features.0.bias",
    "classifier.0.weight",
    "classifier.3.weight",
    "classifier.6.weight",
    is_configured=False,
)
def vgg(w: RecipeWriter, config: Config) -> RawModel:
    """Return the graph of torchvision's ``VGG``: class scores.

    Raises:
        InvalidModel: a layer is no 3x3 convolution, or the indices of layers are not
            those of convolution, optional batch norm, ReLU and optional pool.
    """
    w.note(
        "Weights hold no pools and activations: there is a ReLU behind each layer but "
        "the last, and a 2x2 max pool where a number is left out.",
        "The mean of even windows makes 7x7 elements, or as many as the classifier "
        "reads, of any image.",
    )
    x = image(w, "features.0.weight")
    places = convolutions(w)
    for (number, norm), (following, _) in pairwise([*places, (0, 0)]):
        with w.module("features"):
            x = w.conv(str(number), x)
            if norm > number:
                x = w.batch_norm(str(norm), x)
        x = relu(w, x)
        if following != norm + RELU:
            x = max_pool(w, x, 2, 2)
    channels = w.shape(f"features.{places[-1][0]}.weight")[0]
    side = isqrt(w.shape("classifier.0.weight")[1] // channels)
    x = w.op("AdaptiveAvgPool", x, output_size=(side, side))
    x = w.op("Flatten", x, axis=1)
    for number in (0, 3):
        x = relu(w, w.linear(f"classifier.{number}", x))
    return w.model(w.linear("classifier.6", x, LOGITS))


def convolutions(w: RecipeWriter) -> list[tuple[int, int]]:
    """Return (index of a convolution, index of its batch norm or its own) pairs.

    Raises:
        InvalidModel: an index is not that of a convolution or a batch norm.
    """
    convs: list[tuple[int, int]] = []
    for number in range(w.count("features")):
        key = f"features.{number}.weight"
        if not w.has(key) or w.has(f"features.{number}.running_mean"):
            continue
        shape = w.shape(key)
        if shape[2:] != (3, 3):
            raise InvalidModel(f"{key}: expected a 3x3 kernel, got {list(shape)}")
        if convs and number - convs[-1][1] not in (RELU, POOL):
            raise InvalidModel(f"{key}: expected ReLU and at most a pool before it")
        normed = w.has(f"features.{number + 1}.running_mean")
        convs.append((number, number + normed))
    return convs

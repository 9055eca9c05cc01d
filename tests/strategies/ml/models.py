"""Examples of linear models, support vector machines and scores."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.strategies.registry import (
    Array,
    Draw,
    Example,
    case,
    floats,
    generator,
    integers,
)

ML = "ai.onnx.ml"
_TRANSFORMS = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"]


def features(draw: Draw, width: int) -> Array:
    """Samples by features, of any dtype that these operators take."""
    shape = (draw(st.integers(1, 5)), width)
    dtype = draw(st.sampled_from(["f4", "f4", "f4", "f8", "i4", "i8"]))
    if dtype.startswith("i"):
        return integers(draw, shape, -3, 3, dtype)
    return floats(draw, shape, dtype)


def sized(attrs: dict[str, Any], x: Array, **more: Any) -> Example:
    """The example of samples ``x``, whose features the weights fix."""
    return Example(attrs, [x], symbols={0: ("rows", x.shape[1])}, **more)


def listed(draw: Draw, count: int) -> tuple[float, ...]:
    """Numbers as the value of an attribute."""
    return tuple(float(v) for v in floats(draw, (count,)))


def labels(draw: Draw, count: int) -> dict[str, Any]:
    if draw(st.booleans()):
        return {"classlabels_strings": ("ham", "egg", "rye", "jam")[:count]}
    shuffled = draw(st.permutations([0, 1, 5, -3]))[:count]
    chosen = draw(st.sampled_from([(0, 1, 2, 3)[:count], tuple(shuffled)]))
    return {"classlabels_ints": chosen}


@case("LinearRegressor", domain=ML)
def linear_regressor(draw: Draw, version: int) -> Example:
    targets, width = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    attrs: dict[str, Any] = {
        "targets": targets,
        "coefficients": listed(draw, targets * width),
        "post_transform": draw(st.sampled_from(_TRANSFORMS)),
    }
    if draw(st.booleans()):
        attrs["intercepts"] = listed(draw, targets)
    shape = (draw(st.integers(1, 5)), width)
    return sized(attrs, floats(draw, shape), atol=1e-5)


@case("LinearClassifier", domain=ML)
def linear_classifier(draw: Draw, version: int) -> Example:
    classes, width = draw(st.integers(2, 4)), draw(st.integers(1, 4))
    scores = 1 if classes == 2 and draw(st.booleans()) else classes
    attrs: dict[str, Any] = {
        "coefficients": listed(draw, scores * width),
        "intercepts": listed(draw, scores),
        "post_transform": draw(st.sampled_from(_TRANSFORMS)),
    }
    attrs |= labels(draw, classes)
    return sized(attrs, features(draw, width), outputs=2, atol=1e-5)


@case("Scaler", domain=ML)
def scaler(draw: Draw, version: int) -> Example:
    width = draw(st.integers(1, 4))
    count = draw(st.sampled_from([1, width]))
    attrs = {name: listed(draw, count) for name in ("offset", "scale")}
    return sized(attrs, features(draw, width), atol=1e-5)


@case("Normalizer", domain=ML)
def normalizer(draw: Draw, version: int) -> Example:
    x = features(draw, draw(st.integers(1, 4)))
    norm = draw(st.sampled_from(["MAX", "L1", "L2"]))
    if norm != "L2":
        x = abs(x)
    smooth = x.dtype.kind == "f" and bool((abs(x) > 1e-2).all()) and norm == "L2"
    return Example({"norm": norm}, [x], smooth=smooth, atol=1e-5)


def kernel(draw: Draw, attrs: dict[str, Any], supports: int, width: int) -> None:
    """Add the attributes of a kernel."""
    attrs["kernel_type"] = draw(st.sampled_from(["LINEAR", "POLY", "RBF", "SIGMOID"]))
    attrs["kernel_params"] = (0.25, 0.5, 2.0)
    attrs["support_vectors"] = listed(draw, supports * width)


@case("SVMRegressor", domain=ML)
def svm_regressor(draw: Draw, version: int) -> Example:
    supports, width = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    attrs: dict[str, Any] = {"rho": listed(draw, 1)}
    if draw(st.booleans()):
        kernel(draw, attrs, supports, width)
        attrs |= {"n_supports": supports, "coefficients": listed(draw, supports)}
    else:
        attrs |= {"coefficients": listed(draw, width)}
        attrs["kernel_params"] = (0.0, 0.0, 0.0)
    attrs["one_class"] = draw(st.integers(0, 1))
    x = floats(draw, (draw(st.integers(1, 5)), width))
    return sized(attrs, x, smooth=not attrs["one_class"], rtol=1e-4, atol=1e-4)


@case("SVMClassifier", domain=ML)
def svm_classifier(draw: Draw, version: int) -> Example:
    classes, width = draw(st.integers(2, 4)), draw(st.integers(1, 4))
    counts = tuple(draw(st.integers(1, 3)) for _ in range(classes))
    pairs = classes * (classes - 1) // 2
    attrs: dict[str, Any] = {"vectors_per_class": counts, "rho": listed(draw, pairs)}
    kernel(draw, attrs, sum(counts), width)
    attrs["coefficients"] = listed(draw, (classes - 1) * sum(counts))
    attrs["post_transform"] = draw(st.sampled_from(["NONE", "LOGISTIC", "SOFTMAX"]))
    probable = draw(st.booleans())
    if probable:
        attrs["prob_a"] = tuple(-abs(a) for a in listed(draw, pairs))
        attrs["prob_b"] = listed(draw, pairs)
    attrs |= labels(draw, classes)
    x = features(draw, width)
    return sized(attrs, x, outputs=2, smooth=not probable, rtol=1e-3, atol=1e-3)


@case("PostTransform", domain="burn")
def post_transform(draw: Draw, version: int) -> Example:
    name = draw(st.sampled_from(["SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"]))
    x = generator(draw).uniform(0.1, 0.4, (4, 3)).astype(np.float32)
    return Example({"transform": name}, [x])


@case("Classify", domain="burn")
def classify(draw: Draw, version: int) -> Example:
    pair = draw(st.sampled_from(["", "complement", "negative"]))
    attrs: dict[str, Any] = {"pair": pair}
    attrs["transform"] = draw(st.sampled_from(_TRANSFORMS))
    classes = 1 if pair else 3
    inputs: list[Array | None] = [floats(draw, (5, classes))]
    if pair:
        attrs["limit"] = 0.5
    else:
        inputs.append(np.array([4, -2, 7]))
        if draw(st.booleans()):
            inputs.append(integers(draw, (5, 3), 0, 9))
    return Example(attrs, inputs, 2, resizable=False)


@case("SvmKernel", domain="burn")
def svm_kernel(draw: Draw, version: int) -> Example:
    attrs = {"kernel": draw(st.sampled_from(["linear", "poly", "rbf", "sigmoid"]))}
    attrs |= {"gamma": 0.25, "coef0": 0.5, "degree": 2.0}
    return Example(attrs, [floats(draw, (4, 3)), floats(draw, (5, 3))], resizable=False)


@case("Votes", domain="burn")
def votes(draw: Draw, version: int) -> Example:
    return Example({"classes": 4}, [floats(draw, (5, 6))], resizable=False)


@case("PairwiseProbabilities", domain="burn")
def pairwise_probabilities(draw: Draw, version: int) -> Example:
    inputs = [floats(draw, (5, 3)), floats(draw, (3,)), floats(draw, (3,))]
    return Example({"classes": 3}, inputs, smooth=False, resizable=False)


@case("Decide", domain="burn")
def decide(draw: Draw, version: int) -> Example:
    return Example({}, [floats(draw, (5, 1))], smooth=False)

"""Examples of the norms, activations and fused products of ``com.microsoft``."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.strategies.nn.norm import attributes
from tests.strategies.registry import (
    Array,
    Draw,
    Example,
    case,
    extents,
    floats,
    integers,
)

DOMAIN = "com.microsoft"
Inputs = list[Array | None]


@case("Gelu", domain=DOMAIN)
def gelu(draw: Draw, version: int) -> Example:
    return Example({}, [floats(draw, extents(draw))])


@case("QuickGelu", domain=DOMAIN)
def quick_gelu(draw: Draw, version: int) -> Example:
    attrs = attributes(draw, alpha=draw(st.sampled_from([1.0, 0.6, 1.702])))
    return Example(attrs, [floats(draw, extents(draw))])


@case("FastGelu", "BiasGelu", domain=DOMAIN)
def biased(draw: Draw, version: int) -> Example:
    shape = extents(draw)
    return Example({}, [floats(draw, shape), floats(draw, shape[-1:])])


@case("BiasAdd", domain=DOMAIN)
def bias_add(draw: Draw, version: int) -> Example:
    shape = extents(draw, 3, 3)
    x, bias, skip = floats(draw, shape), floats(draw, shape[2:]), floats(draw, shape)
    return Example({}, [x, bias, skip], expected=[x + bias + skip])


@case("BiasSplitGelu", domain=DOMAIN)
def bias_split_gelu(draw: Draw, version: int) -> Example:
    from math import erf

    shape = (*extents(draw, 2, 2), 2 * draw(st.integers(1, 4)))
    x, bias = floats(draw, shape), floats(draw, shape[2:])
    value, gate = np.split(x + bias, 2, -1)
    share = 0.5 + 0.5 * np.vectorize(erf)(gate / np.sqrt(2))
    out = (value * gate * share).astype(np.float32)
    names = {0: ("batch", "length", shape[2]), 1: shape[2:]}
    return Example({}, [x, bias], expected=[out], symbols=names)


@case("SimplifiedLayerNormalization")
def simplified(draw: Draw, version: int) -> Example:
    shape = extents(draw, least=2)
    attrs = attributes(draw, epsilon=0.03)
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    if axis != -1 or draw(st.booleans()):
        attrs["axis"] = axis
    outputs = draw(st.integers(1, 2))
    inputs = [floats(draw, shape), floats(draw, shape[axis:])]
    return Example(attrs, inputs, outputs, smooth=outputs == 1, rtol=1e-4, atol=1e-5)


@case("SkipLayerNormalization", "SkipSimplifiedLayerNormalization", domain=DOMAIN)
def skip(draw: Draw, version: int) -> Example:
    shape = extents(draw, 3, 3, least=2)
    attrs = attributes(draw, epsilon=0.03)
    inputs: Inputs = [floats(draw, shape), floats(draw, shape)]
    inputs += [floats(draw, shape[2:]) for _ in range(draw(st.integers(1, 2)))]
    return Example(attrs, inputs, rtol=1e-4, atol=1e-5)


@case("EmbedLayerNormalization", domain=DOMAIN)
def embed(draw: Draw, version: int) -> Example:
    batch, length, features = extents(draw, 3, 3, least=2)
    attrs = attributes(draw, epsilon=0.03)
    with_segments = draw(st.booleans())
    segments = integers(draw, (batch, length), 0, 1, np.int32)
    inputs: Inputs = [
        integers(draw, (batch, length), 0, 6, np.int32),
        segments if with_segments else None,
        floats(draw, (7, features)),
        floats(draw, (8, features)),
        floats(draw, (2, features)) if with_segments else None,
        floats(draw, (features,)),
        floats(draw, (features,)),
    ]
    masked = draw(st.booleans())
    mask = integers(draw, (batch, length), 0, 1, np.int32) if masked else None
    inputs.append(mask)
    if draw(st.booleans()):
        rows = draw(st.sampled_from([1, batch]))
        inputs.append(integers(draw, (rows, length), 0, 7, np.int32))
    names = {i: x.shape for i, x in enumerate(inputs) if x is not None}
    outputs = draw(st.integers(2, 3))
    return Example(attrs, inputs, outputs, symbols=names, rtol=1e-4, atol=1e-5)


def turned(x: Array, transposed: int, moved: int) -> Array:
    """``x`` as it is given to a product that transposes it first."""
    if transposed:
        x = np.swapaxes(x, -1, -2)
    if moved:
        x = np.moveaxis(x, -2, 0)
    return np.ascontiguousarray(x)


@case("FusedMatMul", "TransposeMatMul", domain=DOMAIN)
def matmul(draw: Draw, version: int) -> Example:
    batch, rows, inner, columns = extents(draw, 4, 4)
    attrs = attributes(draw, alpha=0.7, transA=1, transB=1)
    x = turned(floats(draw, (batch, rows, inner)), attrs.get("transA", 0), 0)
    y = turned(floats(draw, (batch, inner, columns)), attrs.get("transB", 0), 0)
    return Example(attrs, [x, y], rtol=1e-4, atol=1e-5)


@case("FusedGemm", domain=DOMAIN)
def gemm(draw: Draw, version: int) -> Example:
    rows, inner, columns = extents(draw, 3, 3)
    attrs = attributes(draw, alpha=0.7, beta=0.3, transA=1, transB=1)
    x = turned(floats(draw, (rows, inner)), attrs.get("transA", 0), 0)
    y = turned(floats(draw, (inner, columns)), attrs.get("transB", 0), 0)
    attrs["activation"] = draw(st.sampled_from(["Tanh", "Sigmoid", "LeakyRelu"]))
    smooth = attrs["activation"] != "LeakyRelu"
    if not smooth:
        attrs["activation_alpha"] = 0.3
    z = floats(draw, draw(st.sampled_from([(columns,), (rows, columns)])))
    return Example(attrs, [x, y, z], smooth=smooth, rtol=1e-4, atol=1e-5)


@case("FusedConv", domain=DOMAIN)
def conv(draw: Draw, version: int) -> Example:
    groups = draw(st.sampled_from([1, 2]))
    batch, inner, outer = extents(draw, 3, 3, most=3)
    kernel = extents(draw, 2, 2, most=3)
    size = tuple(k + draw(st.integers(1, 3)) for k in kernel)
    attrs: dict[str, Any] = {"kernel_shape": kernel, "group": groups}
    attrs |= attributes(draw, pads=(1, 0, 1, 2), strides=(2, 1))
    name, parameters = draw(
        st.sampled_from(
            [("Tanh", ()), ("LeakyRelu", (0.3,)), ("Clip", (-0.5, 0.6)), ("Relu", ())]
        )
    )
    attrs |= {"activation": name}
    if parameters:
        attrs["activation_params"] = parameters
    x = floats(draw, (batch, inner * groups, *size))
    weight = floats(draw, (outer * groups, inner, *kernel))
    inputs: Inputs = [x, weight, floats(draw, (outer * groups,))]
    names = {0: ("batch", *x.shape[1:]), 1: weight.shape, 2: (outer * groups,)}
    return Example(
        attrs, inputs, symbols=names, smooth=name == "Tanh", rtol=1e-4, atol=1e-5
    )


@case("ExpandDims", domain=DOMAIN)
def expand_dims(draw: Draw, version: int) -> Example:
    shape = extents(draw)
    axis = draw(st.integers(-len(shape) - 1, len(shape)))
    return Example({}, [floats(draw, shape), np.array(axis, np.int32)])


@case("GatherND", domain=DOMAIN)
def gather_nd(draw: Draw, version: int) -> Example:
    shape = extents(draw, 3, 4, least=2)
    depth = draw(st.integers(1, len(shape)))
    indices = integers(draw, (2, 3, depth), 0, min(shape) - 1)
    return Example({}, [floats(draw, shape), indices], discrete=frozenset({1}))


@case("Pad", domain=DOMAIN)
def pad(draw: Draw, version: int) -> Example:
    shape = extents(draw, least=3)
    attrs = attributes(draw, mode=draw(st.sampled_from(["reflect", "edge"])))
    pads = integers(draw, (2 * len(shape),), 0, 2)
    return Example(attrs, [floats(draw, shape), pads])


@case("Trilu", domain=DOMAIN)
def trilu(draw: Draw, version: int) -> Example:
    attrs = attributes(draw, upper=0)
    k = integers(draw, (), -2, 2)
    return Example(attrs, [floats(draw, extents(draw)), k])


@case("Unique", domain=DOMAIN)
def unique(draw: Draw, version: int) -> Example:
    x = integers(draw, extents(draw, 1, 1, most=9), -2, 2, np.float32)
    return Example({}, [x], 3, discrete=frozenset({0}))


@case("Inverse", domain=DOMAIN)
def inverse(draw: Draw, version: int) -> Example:
    batch, size = extents(draw, 2, 2, most=4)
    x = floats(draw, (batch, size, size)) + 4 * np.eye(size, dtype=np.float32)
    names = {0: ("batch", size, size)}
    return Example({}, [x], symbols=names, rtol=1e-4, atol=1e-5)


@case("CDist", domain=DOMAIN)
def distances(draw: Draw, version: int) -> Example:
    m, n, k = extents(draw, 3, 3, most=5)
    metric = draw(st.sampled_from(["euclidean", "sqeuclidean"]))
    a, b = floats(draw, (m, k)), floats(draw, (n, k))
    # Roots of sums near 0 are steep, and onnxruntime multiplies matrices.
    b += 8 * np.arange(1, n + 1, dtype=np.float32)[:, None]
    names: Any = {0: ("m", k), 1: ("n", k)}
    return Example({"metric": metric}, [a, b], symbols=names, rtol=1e-4, atol=1e-4)


@case("Rfft", domain=DOMAIN)
def rfft(draw: Draw, version: int) -> Example:
    x = floats(draw, (*extents(draw, 2, 2), 2 * draw(st.integers(1, 4))))
    out = np.fft.rfft(x)
    expected = np.stack([out.real, out.imag], -1).astype(np.float32)
    names = {0: ("batch", "rows", x.shape[2])}
    return Example({"signal_ndim": 1}, [x], expected=[expected], symbols=names)


@case("Irfft", domain=DOMAIN)
def irfft(draw: Draw, version: int) -> Example:
    x = floats(draw, (*extents(draw, 2, 2), draw(st.integers(2, 5)), 2))
    out = np.fft.irfft(x[..., 0] + 1j * x[..., 1]).astype(np.float32)
    names = {0: ("batch", "rows", "half", 2)}
    return Example({"signal_ndim": 1}, [x], expected=[out], symbols=names)


@case("UnfoldTensor", domain=DOMAIN)
def unfold_tensor(draw: Draw, version: int) -> Example:
    dim = draw(st.integers(-3, 2))
    attrs = attributes(draw, step=draw(st.integers(1, 3)), dim=dim)
    x = floats(draw, extents(draw, least=3))
    return Example({"size": draw(st.integers(1, 3)), **attrs}, [x])

"""Examples of convolutions."""

from typing import Any

from hypothesis import strategies as st

from tests.strategies.registry import Draw, Example, case, floats


def _common(draw: Draw) -> tuple[dict[str, Any], int, int, tuple[int, ...]]:
    """Attributes, batch, channels within a group and the kernel."""
    rank = draw(st.integers(1, 3))
    several = st.lists(st.integers(1, 3), min_size=rank, max_size=rank)
    kernel = tuple(draw(several))
    attrs: dict[str, Any] = {"group": draw(st.sampled_from([1, 1, 2, 3]))}
    for name in ("strides", "dilations"):
        if draw(st.booleans()):
            attrs[name] = tuple(draw(several))
    if draw(st.booleans()):
        attrs["kernel_shape"] = kernel
    return attrs, draw(st.integers(1, 2)), draw(st.integers(1, 2)), kernel


def _size(draw: Draw, attrs: dict[str, Any], kernel: tuple[int, ...]) -> list[int]:
    dilations = attrs.get("dilations", (1,) * len(kernel))
    return [
        (k - 1) * d + 1 + draw(st.integers(0, 4))
        for k, d in zip(kernel, dilations, strict=True)
    ]


@case("Conv")
def conv(draw: Draw, version: int) -> Example:
    attrs, batch, inner, kernel = _common(draw)
    auto = draw(st.sampled_from(["", "", "SAME_UPPER", "SAME_LOWER", "VALID"]))
    if auto:
        attrs["auto_pad"] = auto
    elif draw(st.booleans()):
        attrs["pads"] = tuple(draw(st.integers(0, 2)) for _ in kernel * 2)
    if auto.startswith("SAME"):
        attrs.pop("dilations", None)
    group = attrs["group"]
    outer = group * draw(st.integers(1, 2))
    size = _size(draw, attrs, kernel)
    x = floats(draw, (batch, inner * group, *size))
    weight = floats(draw, (outer, inner, *kernel))
    bias = floats(draw, (outer,)) if draw(st.booleans()) else None
    return _example(attrs, x, weight, bias)


def _example(attrs: dict[str, Any], x: Any, weight: Any, bias: Any) -> Example:
    operands = [x, weight] if bias is None else [x, weight, bias]
    names: dict[int, tuple[str | int, ...]] = {
        0: ("batch", x.shape[1], *(f"size{i}" for i in range(x.ndim - 2))),
        1: weight.shape,
        2: () if bias is None else bias.shape,
    }
    return Example(attrs, operands, symbols=names, rtol=1e-4, atol=1e-5)


@case("ConvTranspose")
def conv_transpose(draw: Draw, version: int) -> Example:
    attrs, batch, inner, kernel = _common(draw)
    group = attrs["group"]
    rank = len(kernel)
    strides = attrs.get("strides", (1,) * rank)
    dilations = attrs.get("dilations", (1,) * rank)
    size = [draw(st.integers(2, 4)) for _ in kernel]
    natural = [
        (n - 1) * s + (k - 1) * d + 1
        for n, s, k, d in zip(size, strides, kernel, dilations, strict=True)
    ]
    kind = draw(st.sampled_from(["plain", "pads", "shape", "auto"]))
    if kind == "auto" and any(
        full < n * s for full, n, s in zip(natural, size, strides, strict=True)
    ):
        kind = "plain"  # onnxruntime leaves such a result smaller than it should be
    if kind == "pads":
        attrs["pads"] = tuple(draw(st.integers(0, n // 3)) for n in natural * 2)
        if draw(st.booleans()):
            attrs["output_padding"] = tuple(s - 1 for s in strides)
    if kind == "shape":
        attrs["output_shape"] = tuple(
            draw(st.integers(n, full)) if full >= n else full
            for n, full in zip(size, natural, strict=True)
        )
    if kind in ("shape", "auto"):
        attrs["auto_pad"] = draw(st.sampled_from(["SAME_UPPER", "SAME_LOWER"]))
    x = floats(draw, (batch, inner * group, *size))
    weight = floats(draw, (inner * group, draw(st.integers(1, 2)), *kernel))
    bias = floats(draw, (weight.shape[1] * group,)) if draw(st.booleans()) else None
    return _example(attrs, x, weight, bias)

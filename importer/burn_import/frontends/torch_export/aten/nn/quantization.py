"""Fake quantization, for quantization-aware training."""

from burn_import.frontends.torch_export.builder import Builder, Value
from burn_import.frontends.torch_export.registry import rule
from burn_ir import UnsupportedModel


@rule("aten.fake_quantize_per_tensor_affine.default")
def fake_quantize(
    g: Builder,
    self: Value,
    scale: float | Value,
    zero_point: int | Value,
    quant_min: int,
    quant_max: int,
) -> Value:
    options = {"low": int(quant_min), "high": int(quant_max)}
    terms = g.floats(scale, zero_point)
    return g.op("FakeQuantize", self, *terms, domain="burn", **options)


@rule("aten.fake_quantize_per_tensor_affine.tensor_qparams")
def fake_quantize_by_tensors(
    g: Builder,
    self: Value,
    scale: Value,
    zero_point: Value,
    quant_min: int,
    quant_max: int,
) -> Value:
    if not self.rank and (scale.rank or zero_point.rank):
        raise UnsupportedModel("expected a scale without axes for such a tensor")
    return fake_quantize(g, self, scale, zero_point, quant_min, quant_max)


@rule("aten.fake_quantize_per_tensor_affine_cachemask.default")
def fake_quantize_and_mask(
    g: Builder,
    self: Value,
    scale: float,
    zero_point: int,
    quant_min: int,
    quant_max: int,
) -> tuple[Value, None]:
    return fake_quantize(g, self, scale, zero_point, quant_min, quant_max), None


@rule("aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default")
def fake_quantize_by_tensors_and_mask(
    g: Builder,
    self: Value,
    scale: Value,
    zero_point: Value,
    fake_quant_enabled: Value,
    quant_min: int,
    quant_max: int,
) -> tuple[Value, None]:
    """Quantize; ``fake_quant_enabled`` is always 1 in exports."""
    limits = (quant_min, quant_max)
    return fake_quantize_by_tensors(g, self, scale, zero_point, *limits), None


@rule("aten.fake_quantize_per_channel_affine.default")
def fake_quantize_channels(
    g: Builder,
    self: Value,
    scale: Value,
    zero_point: Value,
    axis: int,
    quant_min: int,
    quant_max: int,
) -> Value:
    """Apply :func:`fake_quantize` with a scale for each index of an axis."""
    shape = [-1, *(1 for _ in range(self.rank - self.axis(axis) - 1))]
    wide, shift = (g.op("Reshape", g.cast(x), shape) for x in (scale, zero_point))
    return fake_quantize(g, self, wide, shift, quant_min, quant_max)


@rule("aten.fake_quantize_per_channel_affine_cachemask.default")
def fake_quantize_channels_and_mask(
    g: Builder,
    self: Value,
    scale: Value,
    zero_point: Value,
    axis: int,
    quant_min: int,
    quant_max: int,
) -> tuple[Value, None]:
    limits = (quant_min, quant_max)
    return fake_quantize_channels(g, self, scale, zero_point, axis, *limits), None

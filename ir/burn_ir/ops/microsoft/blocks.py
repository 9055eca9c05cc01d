"""onnxruntime's layers with block-quantized weights."""

from __future__ import annotations

from typing import Any

from burn import dtypes, ops
from burn_ir.errors import InvalidOperand
from burn_ir.op import Layer, Op, Type, Value, operator
from burn_ir.ops.matmul import check_inner
from burn_ir.ops.microsoft.quantize import DOMAIN
from burn_ir.ops.options import non_default
from burn_ir.ops.quantize import expect_dtype

FLOATS = (dtypes.float32, dtypes.float16, dtypes.bfloat16, dtypes.float64)


def check_bits(bits: int) -> None:
    """Check that elements of this width fill whole bytes.

    Raises:
        InvalidOperand: they do not.
    """
    if bits not in (2, 4, 8):
        raise InvalidOperand(f"expected bits of 2, 4 or 8, got {bits}")


@operator
class MatMulNBits(Op, onnx="MatMulNBits", domain=DOMAIN, versions=(1,)):
    K: int
    N: int
    block_size: int
    accuracy_level: int = 0
    bits: int = 4
    weight_prepacked: int = 0

    def __post_init__(self) -> None:
        check_bits(self.bits)
        if self.weight_prepacked:
            raise InvalidOperand(
                f"expected weight_prepacked of 0, the layout that is the same on every "
                f"device, got {self.weight_prepacked}"
            )

    def infer(
        self,
        x: Type,
        weight: Type,
        scale: Type,
        zero_point: Type | None = None,
        group: Type | None = None,
        bias: Type | None = None,
    ) -> Type:
        expect_dtype(x, FLOATS, "numbers")
        expect_dtype(weight, (dtypes.uint8,), "packed numbers")
        blocks = -(-self.K // self.block_size)
        octets = self.block_size * self.bits // 8
        shape = (self.N, blocks, octets)
        dims = weight.shape or (None,)
        if all(isinstance(d, int) for d in dims) and dims != shape:
            raise InvalidOperand(f"expected weights {shape}, got {weight.name}")
        if x.shape is None:
            return x.forget()
        if not x.shape:
            raise InvalidOperand(f"expected rank 1 or more, got {x.name}")
        check_inner(x, weight, x.shape[-1], self.K)
        return x.with_shape((*x.shape[:-1], self.N))

    def lower(self, *operands: Value) -> Value:
        x, weight, scale, zero_point, group, bias = (*operands, *(None,) * 6)[:6]
        terms = {"zero_point": zero_point, "group": group, "bias": bias}
        while terms and next(reversed(terms.values())) is None:
            terms.popitem()
        options = non_default(bits=(self.bits, 4))
        return ops.matmul_nbits(x, weight, scale, *terms.values(), **options)

    def layer(self, x: Type, *operands: Type | None) -> Layer | None:
        weight, scale, zero_point, group, bias = (*operands, *(None,) * 4)[:5]
        present = [t for t in (weight, scale, zero_point, bias) if t is not None]
        if group is not None or any(t.known is None for t in present):
            return None
        matrices = [t for t in (scale, zero_point) if t is not None]
        if any(t.rank != 2 or t.dims[0] != self.N for t in matrices):
            return None
        packing = _packing(zero_point, scale)
        if zero_point is not None and packing is None:
            return None
        weights = {"weight": 1, "scale": 2} | ({"zero_point": 3} if packing else {})
        tables = {"weight"} | ({"zero_point"} if packing == "packed" else set())
        options = non_default(
            bias=(bias is not None, True),
            bits=(self.bits, 4),
            block_size=(self.block_size, 32),
            zero_point=(packing, None),
        )
        if bias is not None:
            weights["bias"] = 5
        sizes = self.K, self.N
        return Layer(
            "QuantizedLinear", sizes, options, weights, tables=frozenset(tables)
        )


def _packing(zero_point: Type | None, scale: Type | None) -> str | None:
    """Return how zero points are stored, as ``nn.QuantizedLinear`` calls it."""
    if zero_point is None or scale is None:
        return None
    if zero_point.dtype == dtypes.uint8:
        return "packed"
    return "float" if zero_point.dtype == scale.dtype else None


@operator
class GatherBlockQuantized(
    Op, onnx="GatherBlockQuantized", domain=DOMAIN, versions=(1,)
):
    bits: int = 4
    block_size: int = 128
    gather_axis: int = 0
    quantize_axis: int = 1

    def __post_init__(self) -> None:
        check_bits(self.bits)

    def infer(
        self, x: Type, index: Type, scale: Type, zero_point: Type | None = None
    ) -> Type:
        expect_dtype(scale, FLOATS, "a scale")
        if zero_point is not None:
            expect_dtype(zero_point, (x.dtype,), "a zero point")
        if x.shape is None or index.shape is None:
            return Type(scale.dtype, None)
        dims = list(x.shape)
        (axis,), (blocks,) = x.axes(self.gather_axis), x.axes(self.quantize_axis)
        if x.dtype == dtypes.uint8:
            if blocks != x.rank - 1:
                raise InvalidOperand(
                    f"expected packed numbers to be quantized along the last axis, got "
                    f"quantize_axis {self.quantize_axis} of {x.name}"
                )
            dims[-1] = dims[-1] * (8 // self.bits)
        return Type(scale.dtype, (*dims[:axis], *index.shape, *dims[axis + 1 :]))

    def lower(
        self, x: Value, index: Value, scale: Value, zero_point: Value = None
    ) -> Value:
        options = non_default(
            axis=(self.gather_axis, 0),
            quantized_axis=(self.quantize_axis, 1),
            block_size=(self.block_size, 128),
            bits=(self.bits if x.dtype == dtypes.uint8 else None, None),
        )
        terms = () if zero_point is None else (zero_point,)
        return ops.take_quantized(x, index, scale, *terms, **options)


@operator
class MatMulBnb4(Op, onnx="MatMulBnb4", domain=DOMAIN, versions=(1,)):
    """A product with a matrix that bitsandbytes quantized to 4 bits."""

    K: int
    N: int
    block_size: int
    quant_type: int
    training_mode: int = 0
    transB: int = 1  # noqa: N815

    def __post_init__(self) -> None:
        if self.quant_type not in (0, 1):
            raise InvalidOperand(f"expected quant_type 0 or 1, got {self.quant_type}")

    def infer(self, x: Type, weight: Type, scale: Type) -> Type:
        expect_dtype(x, FLOATS, "numbers")
        expect_dtype(weight, (dtypes.uint8,), "packed numbers")
        expect_dtype(scale, (x.dtype,), "a scale")
        if x.shape is None:
            return x.forget()
        if not x.shape:
            raise InvalidOperand(f"expected rank 1 or more, got {x.name}")
        inner, outer = (self.K, self.N) if self.transB else (self.N, self.K)
        check_inner(x, weight, x.shape[-1], inner)
        return x.with_shape((*x.shape[:-1], outer))

    def lower(self, x: Value, weight: Value, scale: Value) -> Value:
        kind = "nf4" if self.quant_type else "fp4"
        options: dict[str, Any] = {"block_size": self.block_size, "kind": kind}
        real = ops.dequantize_bnb4(weight, scale, shape=(self.N, self.K), **options)
        return ops.linear(x, real) if self.transB else ops.matmul(x, real)

"""Matrix products."""

from __future__ import annotations

from typing import Literal

from burn import dtypes, ops
from burn.ops.matmul import explicit
from burn_ir.dim import Dim
from burn_ir.errors import InvalidOperand
from burn_ir.op import Layer, Op, Type, Value, operator
from burn_ir.ops.elementwise import same_dtype
from burn_ir.ops.support import are_unequal_numbers
from burn_ir.types import broadcast
from burn_ir.upgrade import Draft


def check_inner(x: Type, y: Type, a: Dim, b: Dim) -> None:
    """Check that two contracted dimensions are not different numbers.

    Raises:
        InvalidOperand: they are.
    """
    if are_unequal_numbers(a, b):
        raise InvalidOperand(
            f"expected equal inner extents, got {a} of {x.name} and {b} of {y.name}"
        )


@operator
class MatMul(Op, onnx="MatMul", versions=(1, 9, 13)):
    def infer(self, x: Type, y: Type) -> Type:
        dtype = same_dtype(x, y)
        if x.shape is None or y.shape is None:
            return Type(dtype, None)
        if not x.shape or not y.shape:
            raise InvalidOperand(
                f"expected operands of rank 1 or more, got {x.name} and {y.name}"
            )
        check_inner(x, y, x.shape[-1], y.shape[max(-2, -len(y.shape))])
        batch = broadcast(Type(dtype, x.shape[:-2]), Type(dtype, y.shape[:-2]))
        assert batch is not None
        return Type(dtype, batch + x.shape[-2:-1] + y.shape[1:][-1:])

    def lower(self, x: Value, y: Value) -> Value:
        return x @ y


@operator
class Gemm(Op, onnx="Gemm", versions=(1, 6, 7, 9, 11, 13)):
    alpha: float = 1.0
    beta: float = 1.0
    transA: Literal[0, 1] = 0  # noqa: N815  ONNX's name
    transB: Literal[0, 1] = 0  # noqa: N815

    def infer(self, x: Type, y: Type, z: Type | None = None) -> Type:
        dtype = same_dtype(*(t for t in (x, y, z) if t is not None))
        if x.shape is None or y.shape is None:
            return Type(dtype, None)
        if x.rank != 2 or y.rank != 2:
            raise InvalidOperand(f"expected two matrices, got {x.name} and {y.name}")
        rows, inner = reversed(x.shape) if self.transA else x.shape
        other, columns = reversed(y.shape) if self.transB else y.shape
        check_inner(x, y, inner, other)
        result = Type(dtype, (rows, columns))
        if z is not None and z.shape is not None:
            shape = broadcast(result, z)
            if shape is None or len(shape) != 2:
                raise InvalidOperand(
                    f"expected a term that broadcasts to {result.name}, got {z.name}"
                )
        return result

    def lower(self, x: Value, y: Value, z: Value = None) -> Value:
        if self._is_linear and (z is None or len(z.shape) == 1):
            bias = () if z is None else (z,)
            if z is None or z.shape == y.shape[:1]:
                return ops.linear(x, y, *bias)
        product = (x.mT if self.transA else x) @ (y.mT if self.transB else y)
        total = _scaled(product, self.alpha)
        if z is not None:
            total = total + _scaled(z, self.beta)
        if dtypes.is_integer(x.dtype) and (self.alpha != 1 or self.beta != 1):
            return total.cast(x.dtype)  # a factor made the result floating
        return total

    @property
    def _is_linear(self) -> bool:
        return self.transB == 1 and not self.transA and self.alpha == self.beta == 1

    def layer(self, x: Type, y: Type, z: Type | None = None) -> Layer | None:
        if not self._is_linear or y.known is None:
            return None
        outer, inner = y.known.shape
        if z is None:
            options = {"bias": False}
            return Layer("Linear", (inner, outer), options, {"weight": 1})
        if z.known is None or z.known.shape != (outer,):
            return None
        return Layer("Linear", (inner, outer), {}, {"weight": 1, "bias": 2})


def _scaled(x: Value, factor: float) -> Value:
    return x if factor == 1 else x * factor


@Gemm.upgrade(1, 6)
def broadcasts_always(draft: Draft) -> Draft:
    """Upgrade: before 7, the third operand was broadcast only on request."""
    return draft.with_attrs("broadcast")


@operator
class Einsum(Op, onnx="Einsum", versions=(12, 28)):
    equation: str

    def infer(self, *xs: Type) -> Type:
        dtype = same_dtype(*xs)
        if any(x.shape is None for x in xs):
            return Type(dtype, None)
        try:
            terms, result = explicit(self.equation, [x.rank for x in xs])
        except ValueError as error:
            raise InvalidOperand(f"{error} for {self.equation!r}") from None
        extents: dict[str, Dim] = {}
        for x, labels in zip(xs, terms, strict=True):
            if len(labels) != x.rank:
                raise InvalidOperand(f"expected {labels!r} to name axes, got {x.name}")
            for label, extent in zip(labels, x.dims, strict=True):
                previous = Type(dtype, (extents.get(label, 1),))
                joined = broadcast(previous, Type(dtype, (extent,)))
                assert joined is not None
                extents[label] = joined[0]
        return Type(dtype, tuple(extents[label] for label in result))

    def lower(self, *xs: Value) -> Value:
        return ops.einsum(self.equation, list(xs))

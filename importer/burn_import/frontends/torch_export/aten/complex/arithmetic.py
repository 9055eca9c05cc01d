"""Arithmetic of complex numbers, by real and imaginary parts."""

import math
from collections.abc import Callable
from typing import Any

from burn_import.frontends.torch_export.aten.linalg.matmul import einsum as real_einsum
from burn_import.frontends.torch_export.aten.linalg.vector_norms import vector_norm
from burn_import.frontends.torch_export.aten.math.creation import filled_tensor
from burn_import.frontends.torch_export.aten.math.logic import is_nonzero
from burn_import.frontends.torch_export.aten.math.special_functions import atan2
from burn_import.frontends.torch_export.builder import BOOL, Builder, Operand, Value
from burn_import.frontends.torch_export.complex_as_real import (
    as_pairs,
    axes_of,
    column,
    count,
    is_complex,
    join_pairs,
    part_dtype,
    parts,
    reals,
    to_pairs,
)
from burn_import.frontends.torch_export.registry import COMPLEX, rule
from burn_ir import UnsupportedModel


@rule("aten.view_as_real.default", views=True, table=COMPLEX)
@rule("aten.view_as_real_copy.default", table=COMPLEX)
@rule("aten.view_as_complex.default", views=True, table=COMPLEX)
@rule("aten.view_as_complex_copy.default", table=COMPLEX)
def same_pairs(g: Builder, self: Value) -> Value:
    """Return the operand: complex numbers are pairs already."""
    return to_pairs(self)


@rule("aten.complex.default", table=COMPLEX)
def complex_(g: Builder, real: Value, imag: Value) -> Value:
    if real.dims == imag.dims:
        return join_pairs(g, real, imag)
    of = reals(g)
    a = of.op("Expand", real, of.op("Shape", imag))
    return join_pairs(g, a, of.op("Expand", imag, of.op("Shape", a)))


@rule("aten.polar.default", table=COMPLEX)
def polar(g: Builder, abs: Value, angle: Value) -> Value:
    of = reals(g)
    sides = [of.op("Mul", abs, of.op(way, angle)) for way in ("Cos", "Sin")]
    return join_pairs(g, *sides)


@rule("aten.real.default", views=True, table=COMPLEX)
def real(g: Builder, self: Value) -> Value:
    return g.cast(parts(g, self)[0])


@rule("aten.imag.default", views=True, table=COMPLEX)
def imag(g: Builder, self: Value) -> Value:
    return g.cast(parts(g, self)[1])


@rule("aten._conj.default", "aten.conj.default", views=True, table=COMPLEX)
@rule("aten.conj_physical.default", "aten._conj_copy.default", table=COMPLEX)
@rule("aten._conj_physical.default", table=COMPLEX)
def conj(g: Builder, self: Value) -> Value:
    of = reals(g)
    return of.op("Mul", to_pairs(self), of.constant([1, -1], of.dtype))


@rule("aten.mH.default", "aten.adjoint.default", "aten.matrix_H.default", table=COMPLEX)
def adjoint(g: Builder, self: Value) -> Value:
    order = [*range(self.rank - 2), self.rank - 1, self.rank - 2, self.rank]
    return reals(g).op("Transpose", conj(g, self), perm=tuple(order))


@rule("aten.abs.default", "aten.absolute.default", table=COMPLEX)
def absolute(g: Builder, self: Value) -> Value:
    return reals(g).op("ReduceL2", to_pairs(self), [-1], keepdims=0)


@rule("aten.angle.default", table=COMPLEX)
def angle(g: Builder, self: Value) -> Value:
    x, y = (reals(g).cast(part) for part in parts(g, self))
    return atan2(reals(g), y, x)


@rule("aten.add.Tensor", "aten.add.Scalar", table=COMPLEX)
def add(g: Builder, self: Operand, other: Operand, alpha: Operand = 1) -> Value:
    return reals(g).op("Add", as_pairs(g, self), scaled(g, other, alpha))


@rule("aten.sub.Tensor", "aten.sub.Scalar", table=COMPLEX)
@rule("aten.subtract.Tensor", "aten.subtract.Scalar", table=COMPLEX)
def sub(g: Builder, self: Operand, other: Operand, alpha: Operand = 1) -> Value:
    return reals(g).op("Sub", as_pairs(g, self), scaled(g, other, alpha))


@rule("aten.rsub.Tensor", "aten.rsub.Scalar", table=COMPLEX)
def rsub(g: Builder, self: Operand, other: Operand, alpha: Operand = 1) -> Value:
    return sub(g, other, self, alpha)


def scaled(g: Builder, x: Operand, factor: Operand) -> Value:
    """Return an operand as pairs, multiplied by a number."""
    if not isinstance(factor, Value) and factor == 1:
        return as_pairs(g, x)
    return mul(g, x if is_complex(x) else _complex_value(g, x), factor)


def _complex_value(g: Builder, x: Operand) -> Value:
    """Return a real operand as a complex one."""
    pairs = as_pairs(g, x)
    dims = None if pairs.dims is None else pairs.dims[:-1]
    return Value(pairs.name, g.dtype, dims)


@rule("aten.mul.Tensor", "aten.mul.Scalar", table=COMPLEX)
@rule("aten.multiply.Tensor", "aten.multiply.Scalar", table=COMPLEX)
def mul(g: Builder, self: Operand, other: Operand) -> Value:
    of = reals(g)
    return products(g, lambda a, b: of.op("Mul", of.cast(a), of.cast(b)), self, other)


def products(
    g: Builder, times: Callable[[Any, Any], Value], self: Operand, other: Operand
) -> Value:
    """Return a complex product; ``times`` multiplies real and imaginary parts."""
    of, (a, b), (c, d) = reals(g), parts(g, self), parts(g, other)
    if b is None:
        return join_pairs(g, times(a, c), times(a, d))
    if d is None:
        return join_pairs(g, times(a, c), times(b, c))
    first = of.op("Sub", times(a, c), times(b, d))
    return join_pairs(g, first, of.op("Add", times(a, d), times(b, c)))


@rule("aten.div.Tensor", "aten.div.Scalar", table=COMPLEX)
@rule("aten.true_divide.Tensor", "aten.divide.Tensor", table=COMPLEX)
def div(g: Builder, self: Operand, other: Operand) -> Value:
    """Return the quotient; a complex divisor becomes its conjugate over its square."""
    of, (c, d) = reals(g), parts(g, other)
    if d is None:
        return of.op("Div", as_pairs(g, self), column(g, c))
    c, d = of.cast(c), of.cast(d)
    size = of.op("Add", of.op("Mul", c, c), of.op("Mul", d, d))
    a, b = parts(g, self)
    a = of.cast(a)
    if b is None:
        first, second = of.op("Mul", a, c), of.op("Neg", of.op("Mul", a, d))
    else:
        b = of.cast(b)
        first = of.op("Add", of.op("Mul", a, c), of.op("Mul", b, d))
        second = of.op("Sub", of.op("Mul", b, c), of.op("Mul", a, d))
    return join_pairs(g, of.op("Div", first, size), of.op("Div", second, size))


@rule("aten.reciprocal.default", table=COMPLEX)
def reciprocal(g: Builder, self: Value) -> Value:
    return div(g, 1.0, self)


@rule("aten.neg.default", "aten.negative.default", table=COMPLEX)
def neg(g: Builder, self: Value) -> Value:
    return reals(g).op("Neg", to_pairs(self))


@rule("aten.sgn.default", table=COMPLEX)
def sgn(g: Builder, self: Value) -> Value:
    """Return ``x / abs(x)``; 0 at 0."""
    of = reals(g)
    size = of.op("ReduceL2", to_pairs(self), [-1])
    zero = g.at(BOOL).op("Equal", size, 0)
    return of.op("Div", to_pairs(self), of.op("Where", zero, of.cast(1), size))


@rule("aten.exp.default", table=COMPLEX)
def exp(g: Builder, self: Value) -> Value:
    x, y = (reals(g).cast(part) for part in parts(g, self))
    return polar(g, reals(g).op("Exp", x), y)


@rule("aten.log.default", table=COMPLEX)
def log(g: Builder, self: Value) -> Value:
    return join_pairs(g, reals(g).op("Log", absolute(g, self)), angle(g, self))


@rule("aten.square.default", table=COMPLEX)
def square(g: Builder, self: Value) -> Value:
    return mul(g, self, self)


@rule("aten.pow.Tensor_Scalar", "aten.pow.Tensor_Tensor", table=COMPLEX)
@rule("aten.pow.Scalar", table=COMPLEX)
def power(g: Builder, self: Operand, exponent: Operand) -> Value:
    """Return the power: squares as products, others in polar form."""
    base = (
        self
        if isinstance(self, Value) and is_complex(self)
        else _complex_value(g, self)
    )
    if not isinstance(exponent, Value) and exponent == 2:
        return mul(g, base, base)
    of, (real, imag) = reals(g), parts(g, exponent)
    size, phase = absolute(g, base), angle(g, base)
    power_size = of.op("Pow", size, of.cast(real))
    power_phase = of.op("Mul", phase, of.cast(real))
    if imag is not None:
        imag = of.cast(imag)
        decay = of.op("Exp", of.op("Neg", of.op("Mul", phase, imag)))
        power_size = of.op("Mul", power_size, decay)
        is_zero = g.at(BOOL).op("Equal", size, 0)
        log_size = of.op("Log", of.op("Where", is_zero, of.cast(1), size))
        power_phase = of.op("Add", power_phase, of.op("Mul", imag, log_size))
    return polar(g, power_size, power_phase)


@rule("aten.sqrt.default", table=COMPLEX)
def sqrt(g: Builder, self: Value) -> Value:
    return power(g, self, 0.5)


@rule("aten.matmul.default", "aten.mm.default", "aten.bmm.default", table=COMPLEX)
@rule("aten.dot.default", "aten.mv.default", table=COMPLEX)
@rule("aten.linalg_matmul.default", table=COMPLEX)
def matmul(
    g: Builder,
    self: Value,
    other: Value | None = None,
    mat2: Value | None = None,
    tensor: Value | None = None,
    vec: Value | None = None,
) -> Value:
    of, right = reals(g), other or mat2 or tensor or vec
    return products(g, lambda a, b: of.op("MatMul", *of.floats(a, b)), self, right)


@rule("aten.vdot.default", table=COMPLEX)
def vdot(g: Builder, self: Value, other: Value) -> Value:
    conjugate = Value(conj(g, self).name, g.dtype, self.dims)
    return matmul(g, conjugate, other)


@rule("aten.einsum.default", table=COMPLEX)
def einsum(g: Builder, equation: str, tensors: Any, path: Any = None) -> Value:
    if len(tensors) != _TWO:
        raise UnsupportedModel(f"expected {_TWO} operands, got {len(tensors)}")
    of = reals(g)
    return products(g, lambda a, b: real_einsum(of, equation, [a, b]), *tensors)


_TWO = 2


@rule("aten.where.self", "aten.where.ScalarSelf", table=COMPLEX)
@rule("aten.where.ScalarOther", table=COMPLEX)
def where(g: Builder, condition: Value, self: Operand, other: Operand) -> Value:
    mask = g.at(BOOL).op("Unsqueeze", is_nonzero(g, condition), [-1])
    return reals(g).op("Where", mask, as_pairs(g, self), as_pairs(g, other))


@rule("aten.masked_fill.Scalar", "aten.masked_fill.Tensor", table=COMPLEX)
def masked_fill(g: Builder, self: Value, mask: Value, value: Operand) -> Value:
    return where(g, mask, value, self)


@rule("aten.eq.Tensor", "aten.eq.Scalar", table=COMPLEX)
def eq(g: Builder, self: Operand, other: Operand) -> Value:
    like = self if is_complex(self) else other
    assert isinstance(like, Value)
    of = g.at(part_dtype(like.dtype))
    same = g.at(BOOL).op("Equal", as_pairs(of, self), as_pairs(of, other))
    return g.at(BOOL).op("All", same, domain="burn", axes=(-1,))


@rule("aten.ne.Tensor", "aten.ne.Scalar", table=COMPLEX)
def ne(g: Builder, self: Operand, other: Operand) -> Value:
    return g.op("Not", eq(g, self, other))


@rule("aten.linalg_vector_norm.default", table=COMPLEX)
def norm(
    g: Builder,
    self: Value,
    ord: Any = 2,
    dim: Any = None,
    keepdim: bool = False,
    dtype: Any = None,
) -> Value:
    size = Value(absolute(g, self).name, g.dtype, self.dims)
    return vector_norm(g, size, float(ord), dim, keepdim)


@rule("aten.to.dtype", "aten.to.dtype_layout", "aten.to.device", table=COMPLEX)
@rule("aten.to.other", "aten._to_copy.default", "aten.type_as.default", table=COMPLEX)
@rule("prims.convert_element_type.default", table=COMPLEX)
def to(g: Builder, self: Value, dtype: Any = None, other: Any = None) -> Value:
    """Return real numbers as complex ones, or the real part of complex ones."""
    return as_pairs(g, self) if is_complex(g.results[0]) else real(g, self)


@rule("aten.copy.default", table=COMPLEX)
def copy(g: Builder, self: Value, src: Operand) -> Value:
    pairs = as_pairs(g, src)
    if isinstance(src, Value) and src.dims == self.dims:
        return pairs
    return reals(g).op("Expand", pairs, reals(g).op("Shape", to_pairs(self)))


@rule("aten.full.default", table=COMPLEX)
def full(g: Builder, size: Any, fill_value: Operand, dtype: Any = None) -> Value:
    return reals(g).op("Expand", as_pairs(g, fill_value), [*size, 2])


@rule("aten.scalar_tensor.default", "prims.scalar_tensor.default", table=COMPLEX)
def scalar_tensor(g: Builder, s: Operand, dtype: Any = None) -> Value:
    return as_pairs(g, s)


@rule("aten.ones.default", table=COMPLEX)
def ones(g: Builder, size: Any, dtype: Any = None) -> Value:
    return full(g, size, 1)


@rule("aten.full_like.default", table=COMPLEX)
def full_like(g: Builder, self: Value, fill_value: Operand, dtype: Any = None) -> Value:
    sizes = [g.extent(self, axis) for axis in range(self.rank)]
    if not is_complex(g.results[0]):
        return filled_tensor(g, sizes, fill_value)
    return full(g, sizes, fill_value)


@rule("aten.ones_like.default", table=COMPLEX)
def ones_like(g: Builder, self: Value, dtype: Any = None) -> Value:
    return full_like(g, self, 1)


@rule("aten.sym_numel.default", "aten.numel.default", table=COMPLEX)
def numel(g: Builder, self: Value) -> int | Value:
    return count(g, [g.extent(self, axis) for axis in axes_of(self, None)])


@rule("aten.angle.default")
def of_real(g: Builder, self: Value) -> Value:
    """Return the angle of real numbers: pi below 0."""
    x = g.cast(self)
    angle = g.op("Where", g.at(BOOL).op("Less", x, 0), g.cast(math.pi), x)
    return g.op("Where", g.at(BOOL).op("GreaterOrEqual", x, 0), g.cast(0), angle)

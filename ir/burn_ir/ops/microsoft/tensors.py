"""Operators of ``com.microsoft`` that ONNX adopted later, and some of linear algebra.

Where only the domain differs, the declaration is that of ONNX.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from burn import ops
from burn.dtypes import int64, is_integer
from burn_ir.dim import unnamed
from burn_ir.errors import InvalidOperand
from burn_ir.op import Op, Type, Value, operator
from burn_ir.ops.creation import Range, integers_between
from burn_ir.ops.elementwise import same_dtype
from burn_ir.ops.functions import expect_float
from burn_ir.ops.grid import GridSample
from burn_ir.ops.indexing import GatherND
from burn_ir.ops.linalg import Det
from burn_ir.ops.matmul import MatMul
from burn_ir.ops.microsoft.activation import DOMAIN
from burn_ir.ops.options import non_default
from burn_ir.ops.ordering import Trilu
from burn_ir.ops.padding import Pad
from burn_ir.ops.support import ints_of, known_ints, present_operands, unnamed_dims


@operator
class ExpandDims(Op, onnx="ExpandDims", domain=DOMAIN, versions=(1,)):
    def infer(self, x: Type, axis: Type) -> Type:
        if not is_integer(axis.dtype):
            raise InvalidOperand(f"expected an integer axis, got {axis.name}")
        numbers = known_ints(axis)
        if numbers is None:
            return x.with_shape(unnamed_dims(x.rank + 1))
        (position,) = Type(x.dtype, (1,) * (x.rank + 1)).axes(numbers)
        return x.with_shape((*x.dims[:position], 1, *x.dims[position:]))

    def lower(self, x: Value, axis: Value) -> Value:
        numbers = ints_of(axis)
        return x.unsqueeze(axis if numbers is None else numbers[0])


@operator
class EarlyRange(Op, onnx="Range", domain=DOMAIN, versions=(1,)):
    """The predecessor of ONNX's Range, whose step may be left out."""

    def infer(self, start: Type, limit: Type, delta: Type | None = None) -> Type:
        if delta is None:
            delta = Type(start.dtype, (), np.ones((), start.dtype))
        return Range().infer(start, limit, delta)

    def lower(self, start: Value, limit: Value, delta: Value = None) -> Value:
        if is_integer(start.dtype):
            return integers_between(start, limit, delta)
        return ops.arange(*present_operands(start, limit, delta))


@operator
class EarlyGatherND(GatherND, onnx="GatherND", domain=DOMAIN, versions=(1,)):
    """The predecessor of ONNX's GatherND."""


@operator
class EarlyGridSample(Op, onnx="GridSample", domain=DOMAIN, versions=(1,)):
    """The predecessor of ONNX's GridSample, of images alone."""

    align_corners: Literal[0, 1] = 0
    mode: Literal["bilinear", "nearest", "bicubic"] = "bilinear"
    padding_mode: str = "zeros"

    def _later(self) -> GridSample:
        mode = {"bilinear": "linear", "bicubic": "cubic"}.get(self.mode, self.mode)
        return GridSample(self.align_corners, mode, self.padding_mode)

    def infer(self, x: Type, grid: Type) -> Type:
        if x.shape is not None and x.rank != 4:
            raise InvalidOperand(f"expected images of rank 4, got {x.name}")
        return self._later().infer(x, grid)

    def lower(self, x: Value, grid: Value) -> Value:
        return self._later().lower(x, grid)


@operator
class EarlyPad(Pad, onnx="Pad", domain=DOMAIN, versions=(1,)):
    """The predecessor of ONNX's Pad with pads as an operand."""


@operator
class EarlyTrilu(Trilu, onnx="Trilu", domain=DOMAIN, versions=(1,)):
    """The predecessor of ONNX's Trilu."""


@operator
class EarlyUnique(Op, onnx="Unique", domain=DOMAIN, versions=(1,)):
    """Unique elements in order of first occurrence, indices and counts."""

    results: int = 1

    def infer(self, x: Type) -> tuple[Type, ...]:
        if x.shape is not None and x.rank != 1:
            raise InvalidOperand(f"expected a vector, got {x.name}")
        count = unnamed()
        every = x.shape if x.shape is not None else unnamed_dims(1)
        return x.with_shape((count,)), Type(int64, every), Type(int64, (count,))

    def lower(self, x: Value) -> tuple[Value, ...]:
        values, _, indices, counts = ops.unique(x, sorted=False)
        return (values, indices, counts)[: self.results]


@operator
class Inverse(Op, onnx="Inverse", domain=DOMAIN, versions=(1,)):
    def infer(self, x: Type) -> Type:
        Det().infer(x)
        return x.forget()

    def lower(self, x: Value) -> Value:
        return ops.inverse(x)


@operator
class CDist(Op, onnx="CDist", domain=DOMAIN, versions=(1,)):
    """The distances [m, n] of the rows of ``a`` [m, k] and ``b`` [n, k]."""

    metric: Literal["euclidean", "sqeuclidean"] = "sqeuclidean"

    def infer(self, a: Type, b: Type) -> Type:
        expect_float(a)
        dtype = same_dtype(a, b)
        rows = []
        for x in (a, b):
            if x.shape is not None and x.rank != 2:
                raise InvalidOperand(f"expected a matrix, got {x.name}")
            rows.append(unnamed() if x.shape is None else x.dims[0])
        if a.shape is not None and b.shape is not None:
            MatMul().infer(a, b.with_shape(b.dims[::-1]))
        return Type(dtype, tuple(rows))

    def lower(self, a: Value, b: Value) -> Value:
        difference = a.unsqueeze(1) - b
        if self.metric == "euclidean":
            return ops.reduce_l2(difference, axis=2)
        return (difference * difference).sum(axis=2)


@operator
class Rfft(Op, onnx="Rfft", domain=DOMAIN, versions=(1,)):
    """The non-negative frequencies of real signals: [..., length] to [..., half, 2]."""

    signal_ndim: Literal[1]
    normalized: Literal[0] = 0
    onesided: Literal[1] = 1

    def infer(self, x: Type) -> Type:
        expect_float(x)
        if x.shape is None:
            return x.forget()
        return x.with_shape((*x.shape[:-1], x.dims[-1] // 2 + 1, 2))

    def lower(self, x: Value) -> Value:
        return ops.dft(x.unsqueeze(-1), onesided=True)


@operator
class Irfft(Op, onnx="Irfft", domain=DOMAIN, versions=(1,)):
    """The real signals, of even length, of a spectrum from :class:`Rfft`."""

    signal_ndim: Literal[1]
    normalized: Literal[0] = 0
    onesided: Literal[1] = 1

    def infer(self, x: Type) -> Type:
        expect_float(x)
        if x.shape is None:
            return x.forget()
        if x.rank < 2 or x.dims[-1] != 2:
            raise InvalidOperand(f"expected complex numbers [..., 2], got {x.name}")
        return x.with_shape((*x.shape[:-2], 2 * (x.dims[-2] - 1)))

    def lower(self, x: Value) -> Value:
        return ops.dft(x, inverse=True, onesided=True).squeeze(-1)


@operator
class UnfoldTensor(Op, onnx="UnfoldTensor", domain=DOMAIN, versions=(1,)):
    """All slices of ``size`` elements along ``dim``, on a new last axis."""

    size: int
    dim: int = -1
    step: int = 1

    def __post_init__(self) -> None:
        if self.size < 1 or self.step < 1:
            raise InvalidOperand(
                f"expected size and step of 1 or more, got {self.size} and {self.step}"
            )

    def infer(self, x: Type) -> Type:
        if x.shape is None:
            return x.forget()
        (axis,) = x.axes(self.dim)
        extent = x.dims[axis]
        if isinstance(extent, int) and extent < self.size:
            raise InvalidOperand(
                f"expected {self.size} or more elements on axis {axis}, got {x.name}"
            )
        count = (extent - self.size) // self.step + 1
        return x.with_shape((*x.dims[:axis], count, *x.dims[axis + 1 :], self.size))

    def lower(self, x: Value) -> Value:
        options = non_default(axis=(self.dim, -1), step=(self.step, 1))
        return ops.unfold_axis(x, size=self.size, **options)

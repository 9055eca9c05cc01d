"""The float operators for which operators on quantized tensors stand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

import numpy as np

from burn import dtypes
from burn_import.passes.layers.rounding_ties import (
    are_ties_rare,
    dequantized,
    is_order_irrelevant,
    totals,
)
from burn_import.provenance.trainable import is_listed_parameter
from burn_import.rewriting.arrays import derive, integers
from burn_import.rewriting.dataflow import Dataflow
from burn_ir.graph import Node
from burn_ir.op import Op
from burn_ir.ops.activation import LeakyRelu, Sigmoid, Softmax
from burn_ir.ops.elementwise import Add, Mul
from burn_ir.ops.logic import Where
from burn_ir.ops.matmul import Gemm, MatMul
from burn_ir.ops.microsoft.integer import MicrosoftQLinearConv
from burn_ir.ops.pool import AveragePool, GlobalAveragePool
from burn_ir.ops.quantize import QLinearConv
from burn_ir.ops.reduction import ReduceMean
from burn_ir.ops.shape import Concat
from burn_ir.types import Array

#: Dtypes of the quantized operands.
OCTETS = (dtypes.int8, dtypes.uint8)
#: Means of larger windows, each part of which is examined for ties, stay.
LARGEST_WINDOW = 64


@dataclass(frozen=True)
class Quantized:
    """A quantized operand: its name, scale and zero point, and their axis."""

    name: str
    scale: str
    zero_point: str | None
    axis: int = 1


@dataclass(frozen=True)
class FloatOperator:
    """An operator, its operands, and the scale and zero point of its result.

    The result stays a float if ``scale`` is None.
    """

    op: Op
    operands: tuple[Quantized | str | None, ...]
    scale: str | None
    zero_point: str | None


Inputs: TypeAlias = Sequence[str | None]
Expansion: TypeAlias = Callable[["_Reader", Node, Inputs], FloatOperator | None]


def float_operator(flow: Dataflow, node: Node) -> FloatOperator | None:
    """Return the float operator of a node on quantized tensors; None if it stays."""
    expand = EXPANSIONS.get(node.op.onnx)
    if expand is None:
        return None
    return expand(_Reader(flow), node, (*node.inputs, *(None,) * 9))


@dataclass(frozen=True)
class _Reader:
    """Operands of quantized operators in a graph."""

    flow: Dataflow

    def number(self, name: str | None) -> bool:
        """Return whether ``name`` is a stored scale: a normal positive number."""
        array = self.flow.stored(name)
        if array is None or array.size != 1 or array.dtype != dtypes.float32:
            return False
        if is_listed_parameter(self.flow.graph, str(name)):
            return False
        return bool(np.finfo(np.float32).tiny <= float(array.reshape(())) < np.inf)

    def tensor(self, operands: Inputs) -> Quantized | None:
        """Return a tensor with one stored scale and zero point, or None."""
        name, scale, zero_point = operands
        t = self.flow.graph.type(name)
        if name is None or t is None or t.dtype not in OCTETS:
            return None
        if scale is None or not self.number(scale):
            return None
        return Quantized(name, scale, zero_point) if self.shift(zero_point) else None

    def shift(self, name: str | None) -> bool:
        """Return whether ``name`` is a stored zero point, or omitted."""
        array = self.flow.stored(name)
        return name is None or array is not None and array.size == 1

    def weight(self, operands: Inputs, axis: int) -> Quantized | None:
        """Return a stored weight with one scale, or one for each index of ``axis``."""
        name, scale, zero_point = operands
        array, scales = self.flow.stored(name), self.flow.stored(scale)
        if array is None or scales is None or scales.size == 1:
            return self.tensor(operands)
        zeros = self.flow.stored(zero_point)
        if array.dtype not in OCTETS or scales.shape != array.shape[axis : axis + 1]:
            return None
        if scales.dtype != dtypes.float32 or is_listed_parameter(
            self.flow.graph, str(scale)
        ):
            return None
        if zeros is not None and zeros.size == 1:
            zeros = np.broadcast_to(zeros.reshape(()), scales.shape)
            zero_point = derive(self.flow.graph, str(zero_point), zeros, ".each")
        if zeros is None or zeros.shape != scales.shape:
            return None
        return Quantized(str(name), str(scale), zero_point, axis)

    def bias(
        self, name: str | None, factors: Sequence[Quantized], alpha: float = 1.0
    ) -> Quantized | None:
        """Return a bias in units of the product of all scales and ``alpha``.

        None if it is not stored, or no vector although the scales differ.
        """
        array = self.flow.stored(name)
        if array is None:
            return None
        first, second = (self.flow.graph.constants[q.scale] for q in factors)
        unit = first.reshape(()) * (second if second.size > 1 else second.reshape(()))
        unit = np.asarray(unit * np.float32(alpha), np.float32)
        if unit.ndim and array.shape != unit.shape:
            return None
        scale = derive(self.flow.graph, factors[1].scale, unit, ".bias")
        return Quantized(str(name), scale, None, axis=0)

    def result(
        self, op: Op, operands: Sequence[Quantized | str | None], numbers: Inputs
    ) -> FloatOperator | None:
        """Return ``op`` if scale and zero point of its result are stored numbers."""
        scale, zero_point = numbers
        if scale is None or not self.number(scale) or not self.shift(zero_point):
            return None
        return FloatOperator(op, tuple(operands), scale, zero_point)

    def total(
        self,
        op: Op,
        operands: Sequence[Quantized | str | None],
        numbers: Inputs,
        counts: Sequence[float] = (1,),
    ) -> FloatOperator | None:
        """Return ``op`` if ties are rare among sums of integers over ``counts``."""
        new, constants = self.result(op, operands, numbers), self.flow.graph.constants
        if new is None or new.scale is None:
            return None
        quantized = [q for q in operands if isinstance(q, Quantized)]
        scales = [constants[q.scale] for q in quantized[:2]]
        unit = constants[new.scale]
        rare = all(are_ties_rare(totals(scales, unit, count)) for count in counts)
        return new if rare else None

    def values(self, operand: Quantized) -> Array:
        """Return the numbers that elements of ``operand`` can have."""
        constants, t = self.flow.graph.constants, self.flow.graph.type(operand.name)
        assert t is not None
        zero_point = self.flow.stored(operand.zero_point)
        array, scale = self.flow.stored(operand.name), constants[operand.scale]
        return dequantized(array, t.dtype, scale, zero_point)


def _binary(op: Op, combine: Callable[[Array, Array], Array]) -> Expansion:
    """Return the expansion of an operator on two tensors.

    onnxruntime rounds after a zero point is added.
    """

    def expand(reader: _Reader, node: Node, inputs: Inputs) -> FloatOperator | None:
        x, y = reader.tensor(inputs[:3]), reader.tensor(inputs[3:6])
        new = reader.result(op, (x, y), inputs[6:8])
        if x is None or y is None or new is None or new.scale is None:
            return None
        results = combine(reader.values(x)[:, None], reader.values(y))
        scale = reader.flow.graph.constants[new.scale]
        zero_point = reader.flow.stored(new.zero_point)
        return new if is_order_irrelevant(results, scale, zero_point) else None

    return expand


def _unary(op: Callable[[Mapping[str, Any]], Op | None]) -> Expansion:
    """Return the expansion of an elementwise operator of the attributes ``op``."""

    def expand(reader: _Reader, node: Node, inputs: Inputs) -> FloatOperator | None:
        x, new = reader.tensor(inputs[:3]), op(node.op.attrs())
        if x is None or new is None:
            return None
        return reader.result(new, (x,), inputs[3:5])

    return expand


def _softmax(reader: _Reader, node: Node, inputs: Inputs) -> FloatOperator | None:
    x, attrs = reader.tensor(inputs[:3]), node.op.attrs()
    rank, axis = len(reader.flow.extents(inputs[0])), attrs["axis"]
    # Before opset 13 it is computed over all axes from the given one on.
    if x is None or attrs["opset"] < 13 and axis not in (-1, rank - 1):
        return None
    return reader.result(Softmax(axis=axis), (x,), inputs[3:5])


def _pool(reader: _Reader, node: Node, inputs: Inputs) -> FloatOperator | None:
    attrs = node.op.attrs()
    x, channels_last = reader.tensor(inputs[:3]), attrs.pop("channels_last")
    # onnxruntime divides by all of a window that is partly beyond the padding.
    counts_beyond = attrs.get("ceil_mode") and attrs.get("count_include_pad")
    if x is None or channels_last or counts_beyond:
        return None
    if "kernel_shape" not in attrs:
        count = _count(reader.flow.extents(inputs[0])[2:])
        pool = GlobalAveragePool()
        return reader.total(pool, (x,), inputs[3:5], [count]) if count else None
    # Windows at the border may have fewer elements.
    largest = prod(attrs["kernel_shape"])
    counts = range(1, largest + 1)
    if largest > LARGEST_WINDOW:
        return None
    return reader.total(AveragePool(**attrs), (x,), inputs[3:5], counts)


def _mean(reader: _Reader, node: Node, inputs: Inputs) -> FloatOperator | None:
    attrs, x = node.op.attrs(), reader.tensor(inputs[:3])
    shape = reader.flow.extents(inputs[0])
    count = _count([shape[axis] for axis in attrs["axes"]] if shape else ())
    if x is None or not count:
        return None
    axes = integers(reader.flow.graph, list(attrs["axes"]))
    op = ReduceMean(keepdims=attrs["keepdims"])
    return reader.total(op, (x, axes), inputs[3:5], [count])


def _count(extents: Sequence[Any]) -> int:
    """Return the number of elements; 0 if it is not known."""
    if not extents or not all(isinstance(extent, int) for extent in extents):
        return 0
    return prod(extents)


def _where(reader: _Reader, node: Node, inputs: Inputs) -> FloatOperator | None:
    x, y = reader.tensor(inputs[1:4]), reader.tensor(inputs[4:7])
    if x is None or y is None:
        return None
    return reader.result(Where(), (inputs[0], x, y), inputs[7:9])


def _concat(reader: _Reader, node: Node, _: Inputs) -> FloatOperator | None:
    names = node.inputs[2:]
    parts = [reader.tensor(names[i : i + 3]) for i in range(0, len(names), 3)]
    if None in parts:
        return None
    return reader.result(Concat(**node.op.attrs()), parts, node.inputs[:2])


def _matmul(reader: _Reader, node: Node, inputs: Inputs) -> FloatOperator | None:
    rank = len(reader.flow.extents(inputs[3]))
    x, y = reader.tensor(inputs[:3]), reader.weight(inputs[3:6], axis=1)
    if x is None or y is None or rank != 2 and y != reader.tensor(inputs[3:6]):
        return None
    return reader.total(MatMul(), (x, y), inputs[6:8])


def _gemm(reader: _Reader, node: Node, inputs: Inputs) -> FloatOperator | None:
    attrs = node.op.attrs()
    x = reader.tensor(inputs[:3])
    weight = reader.weight(inputs[3:6], axis=0 if attrs["transB"] else 1)
    if x is None or weight is None or not attrs["alpha"]:
        return None
    bias = reader.bias(inputs[6], (x, weight), attrs["alpha"])
    if bias is None and inputs[6] is not None:
        return None
    operands = (x, weight, bias)
    op = Gemm(**attrs)
    if inputs[7] is None:
        return FloatOperator(op, operands, None, None)
    return reader.total(op, operands, inputs[7:9], [1 / attrs["alpha"]])


def _conv(reader: _Reader, node: Node, inputs: Inputs) -> FloatOperator | None:
    op = node.op
    if isinstance(op, MicrosoftQLinearConv):
        attrs = op.attrs()
        if attrs.pop("channels_last"):
            return None
        op = QLinearConv(**attrs)
    x, weight = reader.tensor(inputs[:3]), reader.weight(inputs[3:6], axis=0)
    if not isinstance(op, QLinearConv) or x is None or weight is None:
        return None
    bias = reader.bias(inputs[8], (x, weight))
    if bias is None and inputs[8] is not None:
        return None
    return reader.total(op.conv(), (x, weight, bias), inputs[6:8])


#: How each operator is expanded.
EXPANSIONS: Mapping[str, Expansion] = {
    "QLinearAdd": _binary(Add(), np.add),
    "QLinearMul": _binary(Mul(), np.multiply),
    "QLinearSigmoid": _unary(lambda attrs: Sigmoid()),
    "QLinearLeakyRelu": _unary(lambda attrs: LeakyRelu(**attrs)),
    "QLinearSoftmax": _softmax,
    "QLinearAveragePool": _pool,
    "QLinearGlobalAveragePool": _pool,
    "QLinearReduceMean": _mean,
    "QLinearWhere": _where,
    "QLinearConcat": _concat,
    "QLinearMatMul": _matmul,
    "QGemm": _gemm,
    "QLinearConv": _conv,
}

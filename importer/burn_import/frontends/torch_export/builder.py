"""Builder with which rules write nodes: typed values, operators, constants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from burn.dtypes import DType
from burn_import.frontends.torch_export.memory_layout import LazyLayout
from burn_ir import InvalidModel
from burn_ir.derivatives import GRADIENT
from burn_ir.dim import Dim
from burn_ir.graph_builder import GraphBuilder, Origin
from burn_ir.ops.support import ELEMENT_NUMBERS
from burn_ir.raw import RawNode
from burn_ir.types import Array

#: Operator sets of the nodes.
OPSETS = {"": 28, "burn": 1, "com.microsoft": 1, GRADIENT[0]: 1}
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


@dataclass(frozen=True, eq=False)
class Value:
    """A value of the program: its name among the nodes, and its type if known.

    Computed Python numbers (``SymInt``) are tensors of rank 0 here.
    """

    name: str
    dtype: DType
    dims: tuple[Dim, ...] | None = None
    is_number: bool = False
    #: The memory layout of its elements, if the program records it.
    layout: LazyLayout | None = None

    @property
    def rank(self) -> int:
        """The number of axes, which every tensor of a program has."""
        assert self.dims is not None
        return len(self.dims)

    def axis(self, dim: int) -> int:
        """Return ``dim`` as a non-negative axis."""
        return dim % max(self.rank, 1)


Operand: TypeAlias = Value | int | float | bool | None


@dataclass(frozen=True)
class Packed:
    """Packed sequences: the padded ones [time, batch, features] and lengths [batch]."""

    padded: Value
    lengths: Value


@dataclass
class Nodes(GraphBuilder):
    """The nodes of one graph under construction."""

    #: The padded sequences of packed data, by name.
    packed: dict[str, Packed] = field(default_factory=dict)
    #: Whether dropout that the program does not apply is written too.
    restores_dropout: bool = False
    #: Ratios of dropout between recurrent layers that is not written.
    left_out_dropout: set[float] = field(default_factory=set)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on layers that are not written."""
        ratios = ", ".join(map(str, sorted(self.left_out_dropout)))
        if not ratios:
            return ()
        return (
            f"Dropout between LSTMs with proj_size (p={ratios}) is left out: it is not "
            "supported.",
        )

    def inner(self) -> Nodes:
        """Return a builder of a body: no nodes, the same names and constants."""
        return replace(self, nodes=[])


@dataclass
class Builder:
    """Writer of the nodes that replace one call of the program."""

    out: Nodes
    #: The name of the call, and the dtypes and extents of its results.
    name: str
    results: Sequence[Value]
    scope: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()

    @property
    def dtype(self) -> DType:
        """The dtype of the first result."""
        return self.results[0].dtype

    def at(self, dtype: DType) -> Builder:
        """Return a builder for an intermediate result of ``dtype``."""
        return replace(self, results=[Value(self.name, dtype)])

    def op(self, op_type: str, *operands: Any, domain: str = "", **attrs: Any) -> Value:
        """Add an operator and return its result; the last one gets the call's name."""
        return self.many(op_type, 1, *operands, domain=domain, **attrs)[0]

    def many(
        self, op_type: str, count: int, *operands: Any, domain: str = "", **attrs: Any
    ) -> tuple[Value, ...]:
        """Add an operator with ``count`` results and return them."""
        beside = next((x.dtype for x in operands if isinstance(x, Value)), self.dtype)
        names = tuple(
            None if x is None else self.value(x, beside).name for x in operands
        )
        origin = Origin(self.name, self.scope, self.classes)
        candidates = (self.name,) * count
        outputs = self.out.node(op_type, names, candidates, attrs, origin, domain)
        return tuple(Value(output, self.dtype) for output in outputs)

    def value(self, x: Any, dtype: DType | None = None) -> Value:
        """Return ``x``, or a constant for a number (by default of the result's dtype).

        Lists become int64: axes or extents.
        """
        if isinstance(x, Value):
            return x
        if isinstance(x, list | tuple):
            return self.ints(x)
        return self.constant(x, dtype or self.dtype)

    def constant(self, x: Any, dtype: DType | str = "int64") -> Value:
        """Return a constant of a number, or of a list of numbers."""
        target = np.dtype(dtype) if isinstance(dtype, str) else dtype
        with np.errstate(all="ignore"):  # out of range is infinity, as in PyTorch
            array = np.asarray(x).astype(target)
        output = self.out.literal(f"{self.name}_operand", array, self.name)
        return Value(output, array.dtype, array.shape)

    def cast(self, x: Operand, dtype: DType | None = None) -> Value:
        """Return ``x`` in ``dtype``, that of the result by default."""
        target = dtype or self.dtype
        if not isinstance(x, Value):
            return self.constant(x, target)
        if x.dtype == target:
            return x
        converted = self.at(target).op("Cast", x, to=ELEMENT_NUMBERS[target])
        return replace(converted, dims=x.dims)

    def ints(self, values: Sequence[int | Value] | int | Value) -> Value:
        """Return an int64 vector of numbers, some of which may be computed."""
        if not isinstance(values, Sequence):
            values = [values]
        if not any(isinstance(x, Value) for x in values):
            return self.constant(list(values))
        whole = self.at(INT64)
        parts = [whole.op("Unsqueeze", whole.cast(x), [0]) for x in values]
        return whole.op("Concat", *parts, axis=0) if len(parts) > 1 else parts[0]

    def extent(self, x: Value, axis: int) -> int | Value:
        """Return the extent of an axis: a number if fixed, else a computed one."""
        size = x.dims[axis] if x.dims is not None else None
        if isinstance(size, int):
            return size
        whole, start = self.at(INT64), x.axis(axis)
        shape = whole.op("Shape", x, start=start, end=start + 1)
        return replace(whole.op("Squeeze", shape, [0]), dims=(), is_number=True)

    def floats(self, *operands: Operand) -> list[Value]:
        """Return the operands in the dtype of the result."""
        return [self.cast(x) for x in operands]

    def common(self, *operands: Operand) -> list[Value]:
        """Return the operands in the dtype that they promote to."""
        dtype = promoted_dtype(operands)
        return [self.cast(x, dtype) for x in operands]


INT32 = np.dtype("int32")
INT64 = np.dtype("int64")
FLOAT32 = np.dtype("float32")
FLOAT64 = np.dtype("float64")
BOOL = np.dtype("bool")
COMPLEX64 = np.dtype("complex64")
COMPLEX128 = np.dtype("complex128")


def literal_node(name: str, array: Array) -> RawNode:
    """Return the node of a tensor that no module owns: numbers in the code."""
    return RawNode("Constant", "", {"value": array}, (), (name,), name)


def promoted_dtype(operands: Sequence[Operand]) -> DType:
    """Return the dtype that operands promote to, by PyTorch's rules.

    Tensors with axes take precedence over those without, and these over numbers, unless
    the latter are of a higher kind (bool, integer, floating, complex).
    https://docs.pytorch.org/docs/stable/tensor_attributes.html#type-promotion-doc
    """
    classes: list[list[DType]] = [[], [], []]
    for x in operands:
        if isinstance(x, Value):
            rank_class = 2 if x.is_number else 0 if x.dims is None or x.dims else 1
            classes[rank_class].append(x.dtype)
        elif x is not None:
            classes[2].append(_NUMBERS[type(x)])
    result: DType | None = None
    for dtypes in classes:
        for dtype in dtypes[:1]:
            best = dtype
            for other in dtypes[1:]:
                best = _larger(best, other)
            if result is None or kind_of(best) > kind_of(result):
                best = best if dtypes is not classes[2] else _number(best, result)
                result = _as_wide(best, result)
    assert result is not None
    return result


_NUMBERS: Mapping[type, DType] = {
    bool: BOOL,
    int: INT64,
    float: FLOAT32,
    complex: COMPLEX64,
}


def _number(number: DType, beside: DType | None) -> DType:
    """Return the dtype of a Python number beside tensors of a lower kind."""
    if kind_of(number) == kind_of(FLOAT32):
        return FLOAT32
    return COMPLEX64 if number.kind == "c" else number


def _as_wide(dtype: DType, beside: DType | None) -> DType:
    """Return a complex dtype in the width of the floating dtype beside it."""
    if dtype.kind != "c" or beside is None or kind_of(beside) < kind_of(FLOAT32):
        return dtype
    return COMPLEX128 if beside == FLOAT64 else COMPLEX64


def kind_of(dtype: DType) -> int:
    """Return 0 for bool, 1 for integers, 2 for floating, 3 for complex numbers."""
    if dtype == BOOL:
        return 0
    return {"i": 1, "u": 1, "c": 3}.get(dtype.kind, 2)


def check_integers(operator: str, x: Value) -> None:
    """Check that an operand has an integer dtype.

    TorchScript inputs without a recorded dtype get one by such errors.

    Raises:
        InvalidModel: its dtype is another.
    """
    if kind_of(x.dtype) >= kind_of(FLOAT32):
        raise InvalidModel(f"{operator}: expected integers, got {x.dtype}")


def _larger(a: DType, b: DType) -> DType:
    if "c" in (a.kind, b.kind) and FLOAT64 in (a, b):
        return COMPLEX128
    if a == b or kind_of(a) > kind_of(b):
        return a
    if kind_of(b) > kind_of(a):
        return b
    halves = {np.dtype("float16"), BFLOAT16}
    if {a, b} == halves:
        return FLOAT32
    if kind_of(a) == kind_of(FLOAT32):
        return a if a.itemsize > b.itemsize else b
    return np.promote_types(a, b)

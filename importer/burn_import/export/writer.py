"""Construction of ONNX nodes: names, constants, dimensions, and typed values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx
from onnx import helper

from burn import dtypes
from burn.dtypes import DType
from burn.tensor import Tensor
from burn_import.export.errors import ExportError, Source
from burn_ir.dim import Atom, Dim, Extremum, Poly

#: Maximum elements of constants that are deduplicated.
_SMALL = 64
INT64 = dtypes.int64


@dataclass(frozen=True)
class Operand:
    """An operand or result of a node; a ``constant`` is named on first use."""

    name: str
    shape: tuple[Dim, ...]
    dtype: DType
    constant: np.ndarray[Any, Any] | None = None

    @property
    def rank(self) -> int:
        return len(self.shape)


def element_type(dtype: DType) -> int:
    """Return ONNX's ``TensorProto.DataType`` of a dtype."""
    if dtype == dtypes.string:
        return int(onnx.TensorProto.STRING)
    return int(helper.np_dtype_to_tensor_dtype(dtype))


class GraphWriter:
    """Builder of the nodes and initializers of a graph in ``opset``."""

    def __init__(self, opset: int) -> None:
        self.opset = opset
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: dict[str, np.ndarray[Any, Any]] = {}
        self.source = Source()
        self.primitive = ""
        #: The result types of the current call.
        self.out: tuple[tuple[tuple[Dim, ...], DType], ...] = ()
        #: A vector with each named dimension, as the graph computes it.
        self.extents: dict[str, tuple[Operand, int]] = {}
        self._names: set[str] = set()
        self._counts: dict[str, int] = {}
        self._constants: dict[tuple[Any, ...], Operand] = {}
        self._dims: dict[Dim, Operand] = {}

    def unique(self, name: str) -> str:
        """Reserve and return ``name``, numbered if it is in use."""
        candidate = name
        while candidate in self._names:
            self._counts[name] = self._counts.get(name, 0) + 1
            candidate = f"{name}_{self._counts[name]}"
        self._names.add(candidate)
        return candidate

    def refuse(self, reason: str) -> ExportError:
        """Return the error that the current call cannot be exported."""
        return ExportError(f"{self.source}: ops.{self.primitive} {reason}")

    def require(self, opset: int, operator: str) -> None:
        """Check that ``operator`` is in the opset.

        Raises:
            ExportError: it is not.
        """
        if self.opset < opset:
            raise self.refuse(
                f"needs {operator}, which opset {self.opset} does not have; "
                f"pass opset={opset} or more"
            )

    def node(self, *inputs: Any, dtype: DType | None = None, **attrs: Any) -> Operand:
        """Append a node of the first argument's operator; return its only result.

        The other inputs are values, None, or integers (an int64 vector).
        ``dtype`` is that of the result, by default that of the first input.
        """
        operator, *operands = inputs
        return self.node_of(operator, operands, 1, dtype=dtype, **attrs)[0]

    def node_of(
        self,
        op: str,
        inputs: Sequence[Any],
        count: int,
        *,
        dtype: DType | None = None,
        domain: str = "",
        **attrs: Any,
    ) -> list[Operand]:
        """Append a node with ``count`` results, and return them."""
        operands = [self._operand(item) for item in inputs]
        while operands and not operands[-1]:
            operands.pop()
        prefix = "/" + self.source.path.replace(".", "/") if self.source.path else ""
        name = self.unique(f"{prefix}/{op}")
        results = [self.unique(f"{name}_output_{i}") for i in range(count)]
        present = {key: value for key, value in attrs.items() if value is not None}
        self.nodes.append(
            helper.make_node(op, operands, results, name=name, domain=domain, **present)
        )
        kind = dtype or next(v.dtype for v in inputs if isinstance(v, Operand))
        return [Operand(result, (), kind) for result in results]

    def identity(self, value: Operand, name: str) -> None:
        """Append an Identity node that gives ``value`` the name of an output."""
        operands, label = [self._operand(value)], self.unique(f"/{name}")
        self.nodes.append(helper.make_node("Identity", operands, [name], name=label))

    def _operand(self, item: Any) -> str:
        if item is None:
            return ""
        value = item if isinstance(item, Operand) else self.integers(item)
        if not value.name and value.constant is not None:
            value = self.constant(value.constant)
        return value.name

    def constant(self, array: Any, name: str = "") -> Operand:
        """Return an initializer; small ones with equal contents are shared."""
        array = np.asarray(array)
        key = (array.dtype.str, str(array.dtype), array.shape, array.tobytes())
        if not name and array.size <= _SMALL and array.dtype != object:
            existing = self._constants.get(key)
            if existing is not None:
                return existing
        unique = self.unique(name or "constant")
        self.initializers[unique] = array
        value = Operand(unique, array.shape, array.dtype, array)
        if not name and array.size <= _SMALL and array.dtype != object:
            self._constants[key] = value
        return value

    def scalar(self, number: Any, dtype: DType) -> Operand:
        """Return ``number`` (or a value or dimension) as a tensor of ``dtype``."""
        if isinstance(number, Operand):
            return self.cast(number, dtype)
        if isinstance(number, Tensor):
            number = number.numpy()
        if isinstance(number, Poly):
            vector = self.integers([number])
            return self.cast(self.node("Squeeze", vector, [0]), dtype)
        array = np.asarray(number).astype(dtype)
        return Operand("", array.shape, dtype, array)

    def cast(self, value: Operand, dtype: DType) -> Operand:
        """Return ``value`` cast to ``dtype``."""
        if value.dtype == dtype:
            return value
        if value.constant is not None:
            array = value.constant.astype(dtype)
            return Operand("", array.shape, dtype, array)
        result = self.node("Cast", value, dtype=dtype, to=element_type(dtype))
        return replace(result, shape=value.shape)

    def integers(self, values: Any) -> Operand:
        """Return integers, dimensions or int64 values as one int64 vector."""
        if isinstance(values, Operand):
            vector = self.cast(values, INT64)
            return vector if vector.rank == 1 else self.node("Reshape", vector, [-1])
        items = list(values) if isinstance(values, list | tuple) else [values]
        if isinstance(values, np.ndarray):
            items = [int(v) for v in np.ravel(values)]
        if all(isinstance(item, int) for item in items):
            array = np.asarray(items, np.int64)
            return Operand("", array.shape, INT64, array)
        parts = [
            self.integers(item) if isinstance(item, Operand) else self._extent(item)
            for item in items
        ]
        return parts[0] if len(parts) == 1 else self.node("Concat", *parts, axis=0)

    def _extent(self, dim: Dim) -> Operand:
        """Return an int64 vector with one dimension."""
        if isinstance(dim, int):
            return self.constant(np.asarray([dim], np.int64))
        if dim not in self._dims:
            source, self.source = self.source, Source()
            self._dims[dim] = self._computed(dim)
            self.source = source
        return self._dims[dim]

    def _computed(self, dim: Poly) -> Operand:
        """Return the value of a formula, as a vector of one element."""
        total: Operand | None = None
        for product, coefficient in dim.terms:
            term: Operand | None = None
            for atom in product:
                factor = self._atom(atom)
                term = factor if term is None else self.node("Mul", term, factor)
            if term is None:
                term = self.constant(np.asarray([coefficient], np.int64))
            elif coefficient != 1:
                term = self.node("Mul", term, self._extent(coefficient))
            total = term if total is None else self.node("Add", total, term)
        assert total is not None
        return total

    def _atom(self, atom: Atom) -> Operand:
        if not isinstance(atom, str):
            operands = [self._extent(operand) for operand in atom.operands]
            name = atom.name.title() if isinstance(atom, Extremum) else "Div"
            return self.node(name, *operands)
        if atom not in self.extents:
            raise self.refuse(f"depends on a dimension that no input has ({atom})")
        tensor, axis = self.extents[atom]
        return self.node("Shape", tensor, dtype=INT64, start=axis, end=axis + 1)


def static_integers(writer: GraphWriter, values: Any) -> tuple[int, ...]:
    """Return integers for an attribute.

    Raises:
        ExportError: they are computed, or depend on a dimension.
    """
    if isinstance(values, Operand) and values.constant is not None:
        return tuple(int(v) for v in np.ravel(values.constant))
    if isinstance(values, np.ndarray):
        return tuple(int(v) for v in np.ravel(values))
    items = values if isinstance(values, list | tuple) else [values]
    if any(not isinstance(item, int | np.integer) for item in items):
        raise writer.refuse("needs constant integers, got computed ones")
    return tuple(int(item) for item in items)

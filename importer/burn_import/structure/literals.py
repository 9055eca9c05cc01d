"""Replacement of stored arrays that are program constants by literals or calls.

Exporters store the results of ``torch.ones``, ``torch.arange`` and ``torch.tril`` with
the parameters. Short arrays become a literal. Longer ones become the call that computes
them, if they are uniform, an arithmetic sequence or a triangle; others stay buffers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from burn.dtypes import bool_, is_float, is_integer
from burn_import.passes.shapes.implicit_broadcast import ELEMENTWISE, is_covered
from burn_import.provenance.trainable import contents, is_sinusoid, is_trained
from burn_import.provenance.weight_owners import is_authored, is_key, original
from burn_import.rewriting.arrays import integers, literal
from burn_import.rewriting.graphs import apply_with_bodies, value_names, with_nodes
from burn_import.structure.folded_expressions import infer_derived, layer_constants
from burn_import.tracing.scalar_operands import INLINE_LIMIT
from burn_ir.graph import Graph, Node
from burn_ir.names import free_name
from burn_ir.op import Op
from burn_ir.ops.cast import Cast
from burn_ir.ops.creation import ConstantOfShape, Range
from burn_ir.ops.ordering import Trilu
from burn_ir.ops.shape import Expand, Identity, Reshape
from burn_ir.ops.support import ELEMENT_NUMBERS
from burn_ir.types import Array

#: Several floats with more digits than this are stored.
MOST_DIGITS = 4
#: Equal numbers that are emitted as a list.
_MOST_EQUAL = 4
#: An operator, and its operands after the result of the previous step.
_Step = tuple[Op, tuple[str, ...]]


def with_literals(graph: Graph) -> Graph:
    """Return ``graph`` with nodes that compute regular arrays.

    Short arrays are recorded in ``graph.constants.inlined``.
    """
    result = apply_with_bodies(_with_literals, graph)
    return result if result is graph else infer_derived(result)


def _with_literals(graph: Graph) -> Graph:
    run = _Literals(graph, value_names(graph))
    for node in graph.nodes:
        run.add(node)
    return with_nodes(graph, run.nodes)


@dataclass
class _Literals:
    """One traversal of a graph; ``nodes`` is the new node list."""

    graph: Graph
    names: set[str]
    nodes: list[Node] = field(default_factory=list)
    #: The inserted values, by array and scope of the reader.
    values: dict[tuple[str, tuple[str, ...]], str] = field(default_factory=dict)

    def add(self, node: Node) -> None:
        """Append ``node``, after the nodes that compute its operands."""
        if isinstance(node.op, Expand) and node.inputs[0] and node.inputs[1]:
            node = self.filled(node, node.inputs[0], node.inputs[1])
        weights = set(layer_constants(self.graph, node))
        inputs = tuple(
            name if name is None or name in weights else self.operand(name, at, node)
            for at, name in enumerate(node.inputs)
        )
        same = inputs == node.inputs
        self.nodes.append(node if same else replace(node, inputs=inputs))

    def filled(self, node: Node, number: str, shape: str) -> Node:
        """Return the ``ConstantOfShape`` for a number of the program that is expanded.

        Others are returned as they are.
        """
        array = self.graph.constants.get(number)
        if array is None or array.shape or not self.is_program(number):
            return node
        return node.with_op(ConstantOfShape(array.reshape(1)), (shape,))

    def operand(self, name: str, position: int, reader: Node) -> str:
        """Return the name of an operand: a number's if equal ones are broadcast.

        Zeros that are selected become a number too; others are states before a loop.
        """
        is_elementwise = reader.op.onnx in ELEMENTWISE and not reader.op.domain
        is_elementwise &= self.is_program(name)
        array = self.graph.constants.get(name)
        if is_elementwise and array is not None and array.ndim and array.size:
            number = _without_repetitions(array).reshape(-1)
            rest = [n for at, n in enumerate(reader.inputs) if at != position]
            types = [self.graph.types.get(n or "") for n in rest]
            shapes = [one.shape for one in types if one is not None and one.shape]
            is_state = reader.op.onnx != "Where" and not number.any()
            if number.size == 1 and not is_state and is_covered(array.shape, shapes):
                scalar = number.reshape(())
                name = literal(self.graph, f"{array.dtype}({scalar})", scalar)
                self.graph.constants.inlined.add(name)
                return name
        return self.value(name, reader)

    def is_program(self, name: str) -> bool:
        """Return whether an operand is a constant of the program."""
        is_known = name not in self.names and is_number_of_program(self.graph, name)
        return is_known and name not in self.graph.constants.measured

    def value(self, name: str, reader: Node) -> str:
        """Return the name of an operand: a new one if nodes compute the array."""
        key = (name, reader.scope)
        if key in self.values:
            return self.values[key]
        if not self.is_program(name):
            return name
        array = self.graph.constants[name]
        if is_written_out(array):
            self.graph.constants.inlined.add(name)
            return name
        result = ""
        for op, operands in _steps(self.graph, array):
            inputs = (result, *operands) if result else operands
            result = self.fresh(name)
            self.nodes.append(
                Node(op, inputs, (result,), "", reader.scope, reader.classes)
            )
        self.values[key] = result or name
        return result or name

    def fresh(self, name: str) -> str:
        """Return an unused name for the value that replaces ``name``."""
        name = free_name(f"{name}.made", self.names, self.graph.constants)
        self.names.add(name)
        self.graph.constants.made.add(name)
        return name


def is_number_of_program(graph: Graph, name: str) -> bool:
    """Return whether a stored array has no key and is no parameter."""
    constants = graph.constants
    if name not in constants or name in graph.states:
        return False
    array = constants[name]
    if not (is_float(array.dtype) or is_integer(array.dtype) or array.dtype == bool_):
        return False
    first = original(graph, name)
    is_computed = first in constants.literals and graph.producer.startswith("pytorch")
    if is_authored(graph, name) or (not is_computed and is_key(graph.producer, first)):
        return False
    if is_float(array.dtype) and (contents(array) == "inv_freq" or is_sinusoid(array)):
        return False
    return not is_trained(graph, name)


def is_written_out(array: Array) -> bool:
    """Return whether an array is emitted as a literal.

    Several floats with many digits are not an author's literals, but folded weights
    or calibrated scales. Equal numbers read better as one number and a shape.
    """
    if array.size > INLINE_LIMIT or _is_long_fill(array):
        return False
    if array.size == 1 or not is_float(array.dtype):
        return True
    return all(_is_short(number) for number in array.reshape(-1))


def _is_long_fill(array: Array) -> bool:
    """Return whether an array of equal numbers is long, or has several axes."""
    if array.size < 3 or not (array == array.reshape(-1)[0]).all():
        return False
    return array.size > _MOST_EQUAL or array.ndim > 1


def _is_short(number: Any) -> bool:
    """Return whether a float has few decimal or few binary digits."""
    mantissa = str(abs(number)).partition("e")[0]
    digits = mantissa.replace(".", "").strip("0")
    binary = float(np.frexp(float(number))[0]) * 2**MOST_DIGITS
    return len(digits) <= MOST_DIGITS or binary.is_integer()


def _steps(graph: Graph, array: Array) -> Iterator[_Step]:
    """Yield the operators that compute ``array``; none if it is irregular."""
    base = _without_repetitions(array)
    if base.size == 1:
        yield _uniform(graph, base.reshape(-1), array.shape)
        return
    steps = list(_pattern(graph, base))
    yield from steps
    if steps and base.shape != array.shape:
        yield Expand(), (integers(graph, list(array.shape)),)


def _without_repetitions(array: Array) -> Array:
    """Return ``array`` with axes of equal entries reduced to size 1."""
    for axis in range(array.ndim):
        first = array.take([0], axis)
        if array.shape[axis] > 1 and (array == first).all():
            array = first
    return array


def _pattern(graph: Graph, array: Array) -> Iterator[_Step]:
    """Yield the operators that compute an array without repetitions."""
    if is_written_out(array):
        name = literal(graph, f"{array.dtype}{array.tolist()}", array)
        graph.constants.inlined.add(name)
        yield Identity(), (name,)
    elif array.size == max(array.shape):
        yield from _arithmetic_sequence(graph, array)
    elif array.ndim >= 2 and array.size == array.shape[-2] * array.shape[-1]:
        yield from _triangle(graph, array)


def _uniform(graph: Graph, value: Array, shape: tuple[int, ...]) -> _Step:
    return ConstantOfShape(value.copy()), (integers(graph, list(shape)),)


def _arithmetic_sequence(graph: Graph, array: Array) -> Iterator[_Step]:
    """Yield the operators that compute an arithmetic sequence of integers."""
    flat = array.reshape(-1)
    if array.dtype == bool_ or not np.isfinite(flat[:2]).all():
        return
    start, step = int(flat[0]), int(flat[1]) - int(flat[0])
    stop = start + step * flat.size
    if not step or max(abs(start), abs(stop)) >= 1 << 23:
        return
    if not np.array_equal(flat, np.arange(start, stop, step).astype(array.dtype)):
        return
    bounds = [literal(graph, f"int64({n})", np.array(n)) for n in (start, stop, step)]
    yield Range(), tuple(bounds)
    if array.dtype != np.int64:
        yield Cast(ELEMENT_NUMBERS[array.dtype]), ()
    if array.ndim > 1:
        yield Reshape(), (integers(graph, list(array.shape)),)


def _triangle(graph: Graph, array: Array) -> Iterator[_Step]:
    """Yield the operators that compute a triangle of one number, 0 elsewhere."""
    matrix = array.reshape(array.shape[-2:])
    rows, columns = matrix.nonzero()
    value = matrix[rows[:1], columns[:1]]
    distances = columns - rows
    for upper in (0, 1):
        k = int(distances.min() if upper else distances.max())
        cut = np.triu if upper else np.tril
        if np.array_equal(matrix, cut(np.full_like(matrix, value[0]), k)):
            yield _uniform(graph, value, array.shape)
            diagonal = literal(graph, f"int64({k})", np.array(k))
            yield Trilu(upper=upper), (diagonal,)
            return

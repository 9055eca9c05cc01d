"""Conversion of a model to another floating dtype."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import ml_dtypes
import numpy as np

from burn import dtypes
from burn.dtypes import DType
from burn_ir.containers import MapType, OptionalType, SequenceType, kind_of
from burn_ir.dim import counting_unnamed
from burn_ir.error_context import error_context
from burn_ir.graph import Constants, Graph, Node
from burn_ir.infer import bind_bodies, infer, infer_op
from burn_ir.op import Op
from burn_ir.ops.cast import Cast
from burn_ir.ops.sequence import SequenceEmpty
from burn_ir.ops.support import ELEMENT_NUMBERS, ELEMENT_TYPES
from burn_ir.types import Array, Type

#: Operators that end the computation of an angle.
SINES = frozenset({"Cos", "Sin"})
#: Operators between positions and angles.
STEPS = frozenset(
    {"Add", "Concat", "Div", "Einsum", "Expand", "Flatten", "Gather", "Identity"}
    | {"MatMul", "Mul", "Neg", "Pow", "Reciprocal", "Reshape", "Slice", "Squeeze"}
    | {"Sub", "Tile", "Transpose", "Unsqueeze", "Where"}
)


def angles(graph: Graph) -> set[int]:
    """Return the ids of the nodes from integers to the sines and cosines of angles.

    These nodes depend on integers and constants alone, and no other node reads their
    intermediate values. The casts from integers at their beginning are included.
    """
    producers, users = graph.producers, graph.users
    angle_nodes: set[int] = set()
    for node in graph.nodes:
        if node.op.onnx in SINES and not node.op.domain and id(node) not in angle_nodes:
            angle_nodes |= _angle_ancestors(node, graph, producers) or set()
    for node in reversed(graph.nodes):
        if id(node) in angle_nodes and node.op.onnx not in SINES:
            readers = users.get(node.output, [])
            if node.output in graph.outputs or any(
                id(r) not in angle_nodes for r in readers
            ):
                angle_nodes.discard(id(node))
    return angle_nodes


def _angle_ancestors(
    sine: Node, graph: Graph, producers: Mapping[str, Node]
) -> set[int] | None:
    """Return the ancestors of ``sine`` up to integers; None if one is a float input."""
    ancestors: set[int] = set()
    pending = [sine]
    while pending:
        node = pending.pop()
        if id(node) in ancestors:
            continue
        ancestors.add(id(node))
        for name in node.inputs:
            value_type = graph.type(name)
            if name is None or value_type is None or value_type.dtype.kind in "biu":
                continue
            source = producers.get(name)
            if source is None and name in graph.constants and name not in graph.inputs:
                continue
            if source is None or not _is_angle_step(source):
                return None
            pending.append(source)
    return ancestors


def _is_angle_step(node: Node) -> bool:
    return not node.op.domain and (node.op.onnx in STEPS or node.op.onnx == "Cast")


def rounded(array: Array, target: DType) -> Array:
    """Return ``array`` in ``target``; finite numbers stay finite, strides 0 stay."""
    if array.dtype == target:
        return array
    # An axis of stride 0 is converted once and broadcast again.
    once = tuple(slice(0, 1) if step == 0 else slice(None) for step in array.strides)
    few = array[once]
    wide = few.astype(np.float64 if few.dtype.itemsize > 4 else np.float32)
    most = float(ml_dtypes.finfo(target).max)  # type: ignore[no-untyped-call]
    if most < float(ml_dtypes.finfo(wide.dtype).max):  # type: ignore[no-untyped-call]
        wide = np.where(np.isfinite(wide), np.clip(wide, -most, most), wide)
    result = np.broadcast_to(wide.astype(target), array.shape)
    result.flags.writeable = False
    return result


#: The dtypes that are converted. Floating dtypes of 8 bits or fewer are storage.
KINDS = (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)
#: Operands, by position, that give sizes, thresholds or quantization parameters:
#: rounding them would change shapes or select other elements. They stay float32.
EXACT: Mapping[str, Sequence[int]] = {
    "DynamicQuantizeLinear": (0,),
    "NonMaxSuppression": (0, 1, 3, 4),
    "QLinearConv": (1, 4, 6),
    "QLinearMatMul": (1, 4, 6),
    "Range": (0, 1, 2),
    "Resize": (1, 2),
}
#: Classical ML operators hold thresholds and coefficients in float32 and need them.
EXACT_DOMAINS = frozenset({"ai.onnx.ml"})
#: Attributes whose value is an ONNX dtype number.
NUMBERED = frozenset({"to", "dtype", "output_datatype", "output_dtype"})


def in_precision(graph: Graph, name: str) -> Graph:
    """Return ``graph`` with its inputs, outputs, weights and nodes in dtype ``name``.

    float16, bfloat16, float32 and float64 are converted; integers, bools and strings
    are not. Finite numbers stay finite: those out of range become the largest number of
    the dtype. Nodes that must be exact compute in float32 between casts, and so do
    angles that are computed from integers (rotary embedding).

    Raises:
        InvalidModel: a node cannot compute in that dtype; names the node.
    """
    with counting_unnamed():
        result = _Conversion(graph, np.dtype(getattr(dtypes, name))).run(graph)
    return infer(result)


class _Conversion:
    def __init__(self, graph: Graph, target: DType) -> None:
        self.target = target
        self.opsets = graph.opsets
        self.old = graph.constants
        self.constants = Constants()
        self.constants.source.update(self.old.source)
        self.constants.literals |= self.old.literals
        self.constants.trained.update(self.old.trained)
        self.constants.transient |= self.old.transient
        self.constants.tells_transient = self.old.tells_transient
        for name, array in self.old.items():
            is_kind = array.dtype in KINDS
            self.constants.add(name, rounded(array, target) if is_kind else array)
        self.exact_constants: dict[str, str] = {}

    def run(self, graph: Graph) -> Graph:
        """Return ``graph``, the model or a body, in the dtype."""
        types = {name: self.type(graph.types[name]) for name in graph.inputs}
        angle_nodes = angles(graph)
        nodes: list[Node] = []
        for node in graph.nodes:
            with error_context(node, self.opsets):
                nodes += self.convert(node, types, id(node) in angle_nodes)
        used = {**types, **{n: self.type(t) for n, t in graph.types.items()}, **types}
        return replace(graph, nodes=tuple(nodes), types=used, constants=self.constants)

    def type(self, value_type: Type) -> Type:
        """Return ``value_type`` in the dtype."""
        if value_type.dtype not in KINDS or isinstance(value_type, MapType):
            return value_type
        if isinstance(value_type, SequenceType | OptionalType):
            element = self.type(value_type.element)
            return replace(value_type, dtype=element.dtype, element=element)
        return value_type.with_dtype(self.target)

    def convert(self, node: Node, types: dict[str, Type], is_angle: bool) -> list[Node]:
        """Return ``node`` with the casts it needs before and after it."""
        before: list[Node] = []
        inputs = list(node.inputs)
        for position, name in enumerate(inputs):
            if name is not None and (is_angle or _is_exact(node.op, position)):
                inputs[position] = self.exact(name, node, types, before)
        op = node.op if is_angle else self.op(node.op)
        operands = [None if n is None else self.type_of(n, types) for n in inputs]
        op = bind_bodies(op, operands)
        results = infer_op(op, operands)
        after: list[Node] = []
        outputs = list(node.outputs)
        for position, (name, result) in enumerate(
            zip(node.outputs, results, strict=False)
        ):
            if name is None:
                continue
            types[name] = self.type(result)
            if types[name].dtype != result.dtype and kind_of(result) == "tensor":
                outputs[position] = f"{name}_{dtypes.name_of(result.dtype)}"
                types[outputs[position] or ""] = result
                cast = Cast(ELEMENT_NUMBERS[self.target])
                after.append(_node_in_scope(node, cast, outputs[position], name))
        converted = replace(node, op=op, inputs=tuple(inputs), outputs=tuple(outputs))
        return [*before, converted, *after]

    def type_of(self, name: str, types: Mapping[str, Type]) -> Type:
        return types.get(name) or Type.of(self.constants[name])

    def exact(
        self, name: str, node: Node, types: dict[str, Type], before: list[Node]
    ) -> str:
        """Return the name of a float operand in float32, ``name`` for other kinds."""
        if name not in types:
            return self.exact_constant(name)
        if types[name].dtype not in KINDS or kind_of(types[name]) != "tensor":
            return name
        if types[name].dtype == dtypes.float32:
            return name
        exact = f"{name}_float32"
        if exact not in types:
            cast = _node_in_scope(
                node, Cast(ELEMENT_NUMBERS[dtypes.float32]), name, exact
            )
            before.append(cast)
        types[exact] = types[name].with_dtype(dtypes.float32)
        return exact

    def exact_constant(self, name: str) -> str:
        array = self.old[name]
        if array.dtype not in KINDS or self.target == dtypes.float32:
            return name
        if name not in self.exact_constants:
            exact = rounded(array, dtypes.float32)
            stored = self.constants.add(f"{name}_float32", exact)
            if name in self.old.literals:
                self.constants.literals.add(stored)
            self.exact_constants[name] = stored
        return self.exact_constants[name]

    def op(self, op: Op) -> Op:
        """Return ``op`` with its dtype attributes, numbers and bodies converted."""
        new: dict[str, Any] = {n: self.run(b) for n, b in op.bodies().items()}
        if op.onnx == "BitCast" or op.domain in EXACT_DOMAINS:
            return op
        for attribute in fields(op):  # type: ignore[arg-type]
            value = getattr(op, attribute.name)
            kind = ELEMENT_TYPES.get(value) if attribute.name in NUMBERED else None
            # NumPy interprets None as float64, but here it means no dtype.
            if kind is not None and kind in KINDS:
                new[attribute.name] = ELEMENT_NUMBERS[self.target]
            elif isinstance(value, np.ndarray) and value.dtype in KINDS:
                new[attribute.name] = rounded(value, self.target)
        if isinstance(op, SequenceEmpty) and op.dtype is None:
            new["dtype"] = ELEMENT_NUMBERS[self.target]  # float32 by default
        return op.with_attrs(**new) if new else op


def _is_exact(op: Op, position: int) -> bool:
    if op.domain in EXACT_DOMAINS:
        return True
    return not op.domain and position in EXACT.get(op.onnx, ())


def _node_in_scope(node: Node, op: Op, source: str | None, result: str) -> Node:
    """Return a node of ``op`` in the scope of ``node``."""
    return Node(op, (source,), (result,), "", node.scope, node.classes)

"""Conversion of a recorded program to a graph of ONNX nodes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
from onnx import helper

from burn import dtypes
from burn.box import Box
from burn.plan.plan_ir import Slot, slots_in
from burn.tensor import Tensor
from burn_import.export.forms.elementwise import LOGICAL, PROMOTING, promoted
from burn_import.export.inverse import Inverse, bound, default_of, inverses
from burn_import.export.program import ExportCall, Program
from burn_import.export.registry import FORMS
from burn_import.export.writer import GraphWriter, Operand, element_type
from burn_ir.dim import Dim, Poly
from burn_ir.errors import Undecided


class Emitter:
    """A converter of a program's calls; ``values`` maps slots to graph values."""

    def __init__(self, program: Program, names: Mapping[Box, str], opset: int) -> None:
        self.program, self.names = program, names
        self.writer = GraphWriter(opset)
        self.values: dict[int, Operand] = {}
        self._boxes: dict[Box, Operand] = {}
        #: Values that were renamed to an output, by their former name.
        self._renamed: dict[str, Operand] = {}

    def graph(
        self, inputs: Sequence[str], outputs: Sequence[tuple[str, Any]], name: str
    ) -> tuple[onnx.GraphProto, dict[str, np.ndarray[Any, Any]]]:
        """Return the graph without its initializers, and the initializers.

        ``outputs`` are pairs of a name and a leaf of the result.
        """
        reserved = [*inputs, *(output for output, _ in outputs)]
        for reserved_name in reserved:
            self.writer.unique(reserved_name)
        infos = [self._input(number, text) for number, text in enumerate(inputs)]
        live = self._live_slots([leaf for _, leaf in outputs])
        for slot, box in self.program.reads.items():
            if slot in live:
                self.values[slot] = self._parameter(box)
        for call in self.program.calls:
            if live.isdisjoint(call.step.outputs):
                continue
            if all(slot in self.program.constants for slot in call.step.outputs):
                continue
            self._write(call)
        results = [self._output(output, leaf) for output, leaf in outputs]
        nodes, unused = self.writer.nodes, self._unused([n for n, _ in outputs])
        arrays = {k: v for k, v in self.writer.initializers.items() if k not in unused}
        return helper.make_graph(nodes, name, infos, results), arrays

    def _input(self, number: int, name: str) -> onnx.ValueInfoProto:
        shape, dtype = self.program.inputs[number]
        value = self.values[number] = Operand(name, shape, dtype)
        for axis, extent in enumerate(shape):
            if isinstance(extent, Poly):
                self.writer.extents.setdefault(str(extent), (value, axis))
        return _value_info(name, shape, dtype)

    def _live_slots(self, leaves: list[Any]) -> set[int]:
        """Return the slots that the results depend on."""
        live = set(slots_in(leaves))
        for call in reversed(self.program.calls):
            outputs = call.step.outputs
            is_constant = all(slot in self.program.constants for slot in outputs)
            if not live.isdisjoint(outputs) and not is_constant:
                live |= set(slots_in([list(call.args), call.static]))
        return live

    def _parameter(self, box: Box) -> Operand:
        if box not in self._boxes:
            array = box.held().numpy()
            name = self.names.get(box, "")
            self._boxes[box] = self.writer.constant(array, name)
        return self._boxes[box]

    def _write(self, call: ExportCall) -> None:
        writer, step = self.writer, call.step
        writer.source, writer.primitive = call.source, step.primitive.name
        writer.out = tuple(zip(call.shapes, step.dtypes, strict=True))
        args = [self._argument(arg) for arg in call.args]
        static = {name: self._argument(value) for name, value in call.static.items()}
        try:
            results = self._results(call, args, static)
        except Undecided as error:
            raise writer.refuse(f"has no form for all sizes: {error}") from error
        items = list(results) if isinstance(results, list | tuple) else [results]
        for slot, value, (shape, dtype) in zip(
            step.outputs, items, writer.out, strict=True
        ):
            self.values[slot] = Operand(value.name, shape, dtype, value.constant)

    def _results(
        self, call: ExportCall, args: list[Any], static: dict[str, Any]
    ) -> Any:
        writer, primitive = self.writer, call.step.primitive
        if primitive.name in FORMS:
            return FORMS[primitive.name](writer, *args, **static)
        values = bound(primitive, args, static)
        for inverse in inverses().get(primitive.name, ()):
            if self._can_represent(inverse, primitive, values):
                return self._inverted(inverse, primitive, values, len(call.shapes))
        since = [inverse.since for inverse in inverses().get(primitive.name, ())]
        if since and min(since) > writer.opset:
            raise writer.refuse(f"has no form before opset {min(since)}")
        raise writer.refuse("has no form in ONNX")

    def _can_represent(
        self, inverse: Inverse, primitive: Any, values: dict[str, Any]
    ) -> bool:
        """Return whether a node can represent a call with these arguments."""
        if inverse.since > self.writer.opset:
            return False
        if not set(inverse.operands) <= values.keys():
            return False
        for name in values.keys() - {*inverse.operands, *inverse.attributes}:
            expected = inverse.fixed.get(name, default_of(primitive, name))
            if isinstance(values[name], Operand) or values[name] != expected:
                return False
        needed = inverse.fixed.keys() - values.keys()
        return all(inverse.fixed[n] == default_of(primitive, n) for n in needed)

    def _inverted(
        self, inverse: Inverse, primitive: Any, values: dict[str, Any], count: int
    ) -> list[Operand]:
        writer = self.writer
        operands = [values[name] for name in inverse.operands]
        if primitive.name in PROMOTING:
            operands = promoted(writer, *operands)
        elif primitive.name in LOGICAL:
            operands = [writer.scalar(operand, dtypes.bool_) for operand in operands]
        else:
            like = next(o.dtype for o in operands if isinstance(o, Operand))
            operands = [
                writer.scalar(o, like) if isinstance(o, int | float) else o
                for o in operands
            ]
        attrs: dict[str, Any] = {}
        for name, attribute in inverse.attributes.items():
            value = values.get(name, default_of(primitive, name))
            attrs[attribute] = int(value) if isinstance(value, bool) else value
        return writer.node_of(
            inverse.op_type, operands, count, dtype=writer.out[0][1], **attrs
        )

    def _argument(self, arg: Any) -> Any:
        if type(arg) is Slot:
            return self._value(arg.place)
        if isinstance(arg, Tensor | np.ndarray):
            return self._constant(arg)
        if isinstance(arg, np.generic):
            return arg.item()
        if isinstance(arg, Box):
            return self._parameter(arg)
        if type(arg) is list or type(arg) is tuple:
            return type(arg)(self._argument(item) for item in arg)
        if type(arg) is slice:
            return slice(*(self._argument(p) for p in (arg.start, arg.stop, arg.step)))
        return arg

    def _value(self, slot: int) -> Operand:
        if slot not in self.values:
            self.values[slot] = self._constant(self.program.constants[slot])
        return self.values[slot]

    def _constant(self, tensor: Any) -> Operand:
        array = np.asarray(tensor.numpy() if isinstance(tensor, Tensor) else tensor)
        return Operand("", array.shape, array.dtype, array)

    def _output(self, name: str, leaf: Any) -> onnx.ValueInfoProto:
        """Declare a result; rename its node's value to the output name if possible."""
        value = self._argument(leaf)
        if not isinstance(value, Operand):
            value = self._constant(value)
        if not value.name:
            value = self.writer.constant(value.constant)
        if value.name in self._renamed or not self._rename(value.name, name):
            self.writer.identity(self._renamed.get(value.name, value), name)
        self._renamed.setdefault(value.name, replace(value, name=name))
        return _value_info(name, value.shape, value.dtype)

    def _rename(self, old: str, new: str) -> bool:
        """Rename a value in all nodes; return False if no node computes it."""
        nodes = self.writer.nodes
        if not any(old in node.output for node in nodes):
            return False
        for node in nodes:
            for names in (node.input, node.output):
                for position, name in enumerate(names):
                    if name == old:
                        names[position] = new
        return True

    def _unused(self, outputs: Sequence[str]) -> set[str]:
        used = {name for node in self.writer.nodes for name in node.input}
        return set(self.writer.initializers) - used - set(outputs)


def _value_info(name: str, shape: Sequence[Dim], dtype: Any) -> onnx.ValueInfoProto:
    """Return the type of a value; dimensions that are formulas stay unknown."""
    extents = [
        n if isinstance(n, int) else (str(n) if str(n).isidentifier() else None)
        for n in shape
    ]
    return helper.make_tensor_value_info(name, element_type(dtype), extents)

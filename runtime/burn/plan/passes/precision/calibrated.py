"""Quantization of the operands of layers with observed ranges."""

from collections import Counter
from typing import Any, TypeAlias

import numpy as np

from burn.box import Box, Buffer
from burn.defaults import host
from burn.dtypes import DType, int8, uint8
from burn.ops.qdq_layers import scale_of_weights, to_integers
from burn.ops.quantize import dequantize, quantize
from burn.ops.support import Array
from burn.plan.passes.graph import FLOAT32, Graph, Steps
from burn.plan.passes.precision.integers import LAYERS
from burn.plan.plan_ir import Read, Slot, Step, slots_in
from burn.primitive import PLAN_ONLY, primitive
from burn.structs import replace
from burn.tensor import Tensor

#: The box of the weights, the number of the layer among its readers, the operand.
Key: TypeAlias = tuple[Box, int, int]
#: The numbers of the quantized operands: the input of a layer, and its addend.
_X, _RESIDUAL = 0, 3


class Ranges:
    """The observed minimum and maximum of each operand of a layer."""

    def __init__(self) -> None:
        self._seen: dict[Key, tuple[float, float]] = {}

    def observe(self, key: Key, x: Array) -> None:
        """Extend the range of ``key`` by the values of ``x``."""
        low, high = self._seen.get(key, (0.0, 0.0))
        self._seen[key] = (
            min(low, float(x.min(initial=0))),
            max(high, float(x.max(initial=0))),
        )

    def scaling(self, key: Key) -> tuple[Tensor, DType] | None:
        """Return the scale and integer dtype of ``key``, None if not observed."""
        low, high = self._seen.get(key, (0.0, 0.0))
        largest, dtype = (
            (high / 255, uint8) if low == 0 else (_symmetric_scale(low, high), int8)
        )
        if not np.isfinite(largest) or largest <= 0:
            return None
        return Tensor(np.array([largest], np.float32), host()), dtype

    def __len__(self) -> int:
        return len(self._seen)


def _symmetric_scale(low: float, high: float) -> float:
    return max(-low, high) / 127


@primitive(no_gradient=PLAN_ONLY)
def observed(x: Array, *, ranges: Ranges, key: Key) -> Array:
    """Extend the range of ``key`` by ``x``, and return ``x``."""
    ranges.observe(key, x)
    return x


class RangeObserver:
    """A pass that inserts steps which observe the ranges of operands."""

    def __init__(self, ranges: Ranges) -> None:
        self._ranges = ranges

    def __call__(self, steps: Steps, graph: Graph) -> Steps:
        new_steps: Steps = []
        counted: Counter[Box] = Counter()
        for step in steps:
            for key, index, shape in _operands(step, graph, counted):
                static = {"ranges": self._ranges, "key": key}
                seen = graph.new_step(observed, (Slot(index),), shape)
                new_steps.append(replace(seen, static=static))
            new_steps.append(step)
        return new_steps


class Calibrated:
    """A pass that quantizes weights and the operands with known ranges."""

    def __init__(self, ranges: Ranges) -> None:
        self._ranges = ranges

    def __call__(self, steps: Steps, graph: Graph) -> Steps:
        new_steps: Steps = []
        counted: Counter[Box] = Counter()
        quantized: dict[int, Slot] = {}
        for step in steps:
            operands = list(_operands(step, graph, counted))
            for key, index, shape in operands:
                scaling = self._ranges.scaling(key)
                if index not in quantized and scaling is not None:
                    inserted = _quantize_and_dequantize(
                        Slot(index), shape, scaling, graph
                    )
                    quantized[index] = Slot(inserted[-1].outputs[0])
                    new_steps += inserted
            if isinstance(step, Step) and operands and operands[0][1] in quantized:
                inserted, step = _quantize_layer(step, quantized, graph)
                new_steps += inserted
            new_steps.append(step)
        return new_steps


def _operands(
    step: Step | Read, graph: Graph, counted: Counter[Box]
) -> list[tuple[Key, int, tuple[int, ...]]]:
    """Return key, place and shape of each operand of a layer and its addend."""
    if isinstance(step, Read) or step.primitive not in LAYERS:
        return []
    if step.dtypes != (FLOAT32,) or graph.is_folded(step):
        return []
    box = _source(step.args[1], graph)
    if box is None or graph.known(step.args[1])[1] != FLOAT32:
        return []
    number = counted[box]
    counted[box] += 1
    operands = []
    for which in (_X, _RESIDUAL):
        value = step.args[which] if which < len(step.args) else None
        shape, dtype = graph.known(value)
        if type(value) is Slot and shape is not None and dtype == FLOAT32:
            operands.append(((box, number, which), value.place, shape))
    return operands


def _source(value: Any, graph: Graph) -> Box | None:
    """Return the first box that constant weights are computed from, or None."""
    if type(value) is not Slot or not graph.is_constant(value):
        return None
    maker = graph.maker.get(value.place)
    if isinstance(maker, Read):
        return maker.box
    places = slots_in(maker.args) if maker else ()
    sources = (_source(Slot(index), graph) for index in places)
    return next((box for box in sources if box is not None), None)


def _quantize_and_dequantize(
    value: Slot, shape: tuple[int, ...], scaling: tuple[Tensor, DType], graph: Graph
) -> list[Any]:
    """Return steps that quantize and dequantize ``value``."""
    scale, dtype = scaling
    read = Read(Buffer(scale), graph.fresh(), scale.backend)
    graph.maker[read.place] = read
    graph.constant.add(read.place)
    narrow = graph.new_step(to_integers, (value, Slot(read.place)), shape)
    narrow = replace(narrow, static={"dtype": dtype}, dtypes=(dtype,))
    args = (Slot(narrow.outputs[0]), Slot(read.place))
    return [read, narrow, graph.new_step(dequantize, args, shape)]


def _quantize_layer(
    step: Step, quantized: dict[int, Slot], graph: Graph
) -> tuple[list[Step], Step]:
    """Return steps that quantize the weight, and the layer of quantized operands."""
    args = list(step.args)
    for which in (_X, _RESIDUAL):
        if which < len(args) and type(args[which]) is Slot:
            args[which] = quantized.get(args[which].place, args[which])
    shape, _ = graph.known(args[1])
    assert shape is not None
    scale = graph.new_step(scale_of_weights, (args[1],), shape[:1])
    by = (Slot(scale.outputs[0]), None)
    narrow = graph.new_step(quantize, (args[1], *by), shape)
    narrow = replace(narrow, static={"dtype": int8, "axis": 0}, dtypes=(int8,))
    wide = graph.new_step(dequantize, (Slot(narrow.outputs[0]), *by), shape, axis=0)
    args[1] = Slot(wide.outputs[0])
    return [scale, narrow, wide], replace(step, args=tuple(args))

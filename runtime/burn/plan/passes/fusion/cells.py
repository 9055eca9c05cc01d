"""Fusion of the equations of a recurrent cell into one LSTM or GRU step.

They are those of :mod:`burn.nn`, with the gates in PyTorch's order. The gates of layers
are in ONNX's: weights are rearranged once.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from burn.defaults import host
from burn.ops.activation import sigmoid, tanh
from burn.ops.elementwise import add, mul, sub
from burn.ops.indexing import take
from burn.ops.matmul import linear
from burn.ops.rnn import gru, lstm
from burn.ops.shape import concat, reshape, split
from burn.plan.passes.graph import FLOAT32, Graph, Steps
from burn.plan.passes.patterns import Values, matches
from burn.plan.plan_ir import Read, Slot, Step
from burn.primitive import Primitive
from burn.structs import replace
from burn.tensor import Tensor

_CELL = (add, (mul, (sigmoid, "f"), "c"), (mul, (sigmoid, "i"), (tanh, "g")))
_SHOWN = (mul, (sigmoid, "o"), (tanh, "cell"))
_SUM = (add, "x", "h")
_NEW = (tanh, (add, "nx", (mul, (sigmoid, (add, "rx", "rh")), "nh")))
_MIXED = (add, (mul, (sub, 1.0, "z"), _NEW), (mul, "z", "h"))
_UPDATE = (sigmoid, (add, "zx", "zh"))


class _Linear(NamedTuple):
    """A linear layer for all gates, whose result only the cell uses."""

    x: Any
    weight: Any
    bias: Any


class _Cell(NamedTuple):
    """A matched cell. ``order`` permutes its gates to the order of ``layer``.

    ``first`` are the previous states, ``results`` the steps that compute the new ones.
    """

    layer: Primitive[..., Any]
    order: tuple[int, ...]
    inputs: _Linear
    first: tuple[Any, ...]
    states: _Linear
    results: tuple[Step, ...]


def as_cells(steps: Steps, graph: Graph) -> Steps:
    """Replace each cell by one step, for devices with recurrent primitives."""
    cells: dict[int, _Cell] = {}
    gone: set[int] = set()
    for step in steps:
        cell = next(_cells(step, graph), None)
        if cell is not None:
            cells[id(cell.results[-1])] = cell
            gone.update(_inside(cell, graph))
    writer, new_steps = _Writer(graph), Steps()
    for step in steps:
        if id(step) in cells:
            new_steps += writer.layer(cells[id(step)])
        elif id(step) not in gone:
            new_steps.append(step)
    return new_steps


def _inside(cell: _Cell, graph: Graph) -> set[int]:
    """Return the ids of the steps of a cell, from its results back to its operands."""
    operands = {*cell.inputs, *cell.states, *cell.first}
    step_ids: set[int] = set()
    stack: list[Any] = [*cell.results]
    while stack:
        step = stack.pop()
        step_ids.add(id(step))
        places = (p for p in step.operand_places if Slot(p) not in operands)
        stack += [graph.maker[index] for index in places]
    return step_ids


def _cells(step: Step | Read, graph: Graph) -> Iterator[_Cell]:
    """Yield the cells whose output ``step`` computes."""
    for shown in matches(_SHOWN, step, graph):
        cell = _producer(shown["cell"], graph)
        for values in matches(_CELL, cell, graph):
            yield from _lstm_cells(step, cell, {**shown, **values}, graph)
    for values in matches(_MIXED, step, graph):
        for update in matches(_UPDATE, _producer(values["z"], graph), graph):
            yield from _gru_cells(step, {**values, **update}, graph)


def _producer(value: Any, graph: Graph) -> Step | Read | None:
    return graph.maker.get(value.place) if type(value) is Slot else None


def _lstm_cells(step: Any, cell: Any, values: Values, graph: Graph) -> Iterator[_Cell]:
    gates = [values[name] for name in "ifgo"]
    total = graph.only_use(_source_of_split(gates, step.shapes[0], graph))
    for both in matches(_SUM, total, graph):
        inputs, states = (_linear(both[name], graph) for name in _SUM[1:])
        if (
            inputs is None
            or states is None
            or not _have_fitting_shapes(inputs, states, step, graph)
        ):
            continue
        if graph.known(values["c"]) != (step.shapes[0], FLOAT32):
            continue  # the cell state is broadcast
        first = (states.x, values["c"])
        order, results = (0, 3, 1, 2), (step, cell)
        yield _Cell(lstm, order, inputs, first, states, results)


def _gru_cells(step: Any, values: Values, graph: Graph) -> Iterator[_Cell]:
    inputs, states = (
        _linear(
            _source_of_split([values[g + end] for g in "rzn"], step.shapes[0], graph),
            graph,
        )
        for end in "xh"
    )
    if (
        inputs is None
        or states is None
        or not _have_fitting_shapes(inputs, states, step, graph)
    ):
        return
    if states.x == values["h"] and graph.uses[values["z"].place] == 2:
        yield _Cell(gru, (1, 0, 2), inputs, (states.x,), states, (step,))


def _source_of_split(parts: list[Any], shape: tuple[int, ...], graph: Graph) -> Any:
    """Return the operand of the split into ``parts`` [batch, hidden], or None."""
    cut = _producer(parts[0], graph)
    if not isinstance(cut, Step) or cut.primitive is not split or len(shape) != 2:
        return None
    batch, hidden = shape
    if graph.known(cut.args[0]) != ((batch, len(parts) * hidden), FLOAT32):
        return None
    if [Slot(index) for index in cut.outputs] != parts or {*cut.shapes} != {shape}:
        return None
    used_once = all(graph.uses[index] == 1 for index in cut.outputs)
    return cut.args[0] if used_once else None


def _linear(value: Any, graph: Graph) -> _Linear | None:
    """Return the linear layer of constant weights that computes ``value``, or None."""
    step = graph.only_use(value)
    if step is None or step.primitive is not linear or step.dtypes != (FLOAT32,):
        return None
    operands = _Linear(*(*step.args, None)[:3])
    if not all(type(v) is Slot or v is None for v in operands):
        return None
    return operands if all(map(graph.is_constant, operands[1:])) else None


def _have_fitting_shapes(
    inputs: _Linear, states: _Linear, step: Step, graph: Graph
) -> bool:
    """Return whether the operands suit a layer: both biases, and states of its width.

    All must have the same batch extent: none may be broadcast.
    """
    (shape, dtype), state = graph.known(inputs.x), graph.known(states.x)
    return (
        (inputs.bias is None) == (states.bias is None)
        and state == (step.shapes[0], FLOAT32)
        and dtype == FLOAT32
        and shape is not None
        and len(shape) == 2
        and shape[0] == step.shapes[0][0]
    )


class _Writer:
    """Builder of layer steps; rearranged weights are shared between layers."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._rearranged: dict[Any, Slot] = {}
        self._steps: Steps = []

    def layer(self, cell: _Cell) -> Steps:
        """Return the steps that replace ``cell``."""
        self._steps = []
        (x, w, bias), (_, r, shift) = cell.inputs, cell.states
        weights = [self._weight(v, cell) for v in (w, r)]
        biases = None if bias is None else self._bias(bias, shift, cell)
        states = [self._add_leading_axis(v) for v in cell.first]
        args = (self._add_leading_axis(x), *weights, biases, *states)
        size = cell.results[0].shapes[0]
        shapes = ((1, 1, *size), *((1, *size) for _ in states))
        outputs = tuple(self._graph.fresh() for _ in shapes)
        dtypes = tuple(FLOAT32 for _ in shapes)
        static = {"linear_before_reset": True} if cell.layer is gru else {}
        self._steps.append(Step(cell.layer, args, static, outputs, shapes, dtypes))
        for result, index in zip(cell.results, outputs[1:], strict=True):
            view = replace(result, primitive=reshape, args=(Slot(index), size))
            self._steps.append(view)
        return self._steps

    def _weight(self, value: Slot, cell: _Cell) -> Slot:
        if (value, cell.order) not in self._rearranged:
            weight = self._add_leading_axis(self._reorder_gates(value, cell))
            self._rearranged[value, cell.order] = weight
        return self._rearranged[value, cell.order]

    def _bias(self, bias: Slot, shift: Slot, cell: _Cell) -> Slot:
        if (bias, shift, cell.order) not in self._rearranged:
            parts = [self._reorder_gates(v, cell) for v in (bias, shift)]
            shape, _ = self._graph.known(bias)
            assert shape is not None
            packed = self._add_leading_axis(
                self._append(concat, (parts,), (2 * shape[0],))
            )
            self._rearranged[bias, shift, cell.order] = packed
        return self._rearranged[bias, shift, cell.order]

    def _reorder_gates(self, value: Slot, cell: _Cell) -> Slot:
        """Return the rows of a weight in the gate order of the layer."""
        hidden = cell.results[0].shapes[0][1]
        rows = [np.arange(hidden) + gate * hidden for gate in cell.order]
        index = Tensor(np.concatenate(rows), host())
        shape, _ = self._graph.known(value)
        assert shape is not None
        return self._append(take, (value, index, 0), shape)

    def _add_leading_axis(self, value: Slot) -> Slot:
        """Return ``value`` with a leading axis of extent one."""
        shape, _ = self._graph.known(value)
        assert shape is not None
        return self._append(reshape, (value, (1, *shape)), (1, *shape))

    def _append(
        self, primitive: Any, args: tuple[Any, ...], shape: tuple[int, ...]
    ) -> Slot:
        self._steps.append(self._graph.new_step(primitive, args, shape))
        return Slot(self._steps[-1].outputs[0])

"""Prepared recurrent layers, with weights in oneDNN's layout."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from burn.backend.cpu.onednn.binding.api import (
    ARGUMENT_MD,
    BIAS,
    DST,
    DST_1,
    DST_2,
    INFERENCE,
    LOGISTIC,
    RELU,
    SRC,
    SRC_1,
    SRC_2,
    TANH,
    WEIGHTS,
    WEIGHTS_1,
    WEIGHTS_2,
    Api,
)
from burn.backend.cpu.onednn.binding.cache import Primitives, work_of_row
from burn.backend.cpu.onednn.binding.capture import compact, do, empty, noting
from burn.backend.cpu.onednn.binding.engine import Session
from burn.backend.cpu.onednn.binding.memory import (
    Array,
    Handle,
    address,
    any_layout,
    ordered,
    strided,
)
from burn.backend.cpu.onednn.binding.prepared import (
    Description,
    Operands,
    Prepared,
    described,
)
from burn.backend.cpu.onednn.binding.weights import Weights
from burn.ops.recurrent_gradients import LayerOperands

#: For each of oneDNN's gates, which of ONNX's parts are added up to it.
Sums = tuple[tuple[int, ...], ...]


class Cell(NamedTuple):
    """The cell of a layer: oneDNN's name of it, and its gates in terms of ONNX's.

    ``kind`` is the activation where there is a choice.
    """

    name: str
    activations: tuple[str, ...]
    states: int
    gates: Sums
    biases: Sums
    peepholes: Sums = ()
    kind: int | None = None


LSTM = Cell(
    "lstm",
    ("sigmoid", "tanh", "tanh"),
    states=2,
    gates=((0,), (2,), (3,), (1,)),
    biases=((0, 4), (2, 6), (3, 7), (1, 5)),
    peepholes=((0,), (2,), (1,)),
)
GRU = Cell(
    "gru",
    ("sigmoid", "tanh"),
    states=1,
    gates=((0,), (1,), (2,)),
    biases=((0, 3), (1, 4), (2, 5)),
)
#: A GRU whose reset gate is applied after the weights: they have a bias of their own.
RESET_AFTER = GRU._replace(name="lbr_gru", biases=((0, 3), (1, 4), (2,), (5,)))
#: Plain layers by their activation.
PLAIN = {
    name: Cell("vanilla_rnn", (name,), 1, ((0,),), ((0, 1),), kind=kind)
    for name, kind in (("tanh", TANH), ("relu", RELU), ("sigmoid", LOGISTIC))
}


class Form(NamedTuple):
    """The cache key of a primitive; ``states`` and ``peephole`` mean presence."""

    cell: Cell
    direction: int
    time: int
    batch: int
    inputs: int
    directions: int
    hidden: int
    states: bool
    peephole: bool

    @property
    def work(self) -> int:
        """Return the multiplications of a step, to choose the number of threads.

        Threads synchronize twice per step, which halves it. A single row is limited by
        reading the weights: from the cache, or from memory if there is only one step.
        """
        weights = len(self.cell.gates) * self.hidden * (self.inputs + self.hidden)
        weights *= self.directions
        if self.batch > 1:
            return self.batch * weights // 2
        return weights if self.time > 1 else work_of_row(weights)

    @property
    def state(self) -> tuple[int, ...]:
        """Return the extents of the first and last states."""
        return (self.directions, self.batch, self.hidden)

    @property
    def bias(self) -> tuple[int, ...]:
        """Return the extents of the bias."""
        return (self.directions, len(self.cell.biases), self.hidden)


class Layer:
    """A prepared layer."""

    __slots__ = ("_bias", "_form", "_prepared", "_weights")

    def __init__(
        self, form: Form, prepared: Prepared, weights: list[Weights], bias: Weights
    ) -> None:
        self._form, self._prepared = form, prepared
        self._weights, self._bias = weights, bias

    @property
    def implementation(self) -> str:
        # "ref" implementations call matrix products here, which are not slow.
        return f"recurrent {self._prepared.description.implementation}"

    def run(self, layer: LayerOperands) -> tuple[Array, ...]:
        """Return all outputs [time, directions, batch, hidden] and the last states."""
        form, x = self._form, compact(layer.x)
        states = layer.states if form.states else ()
        firsts = [or_zeros(state, form.state) for state in states]
        every = empty((form.time, form.batch, form.directions, form.hidden))
        lasts = [empty(form.state) for _ in layer.states]
        parts = (layer.w, layer.r, layer.peephole)
        pairs = zip(self._weights, parts, strict=False)
        places = [weights.place(part) for weights, part in pairs]
        zeros = or_zeros(None, form.bias) if layer.b is None else None
        bias = self._bias.place(layer.b) if zeros is None else address(zeros)
        others = [address(array) for array in (*firsts, every, *lasts)]
        self._prepared.run(address(x), *places, bias, *others)
        return every.transpose(0, 2, 1, 3), *lasts


def or_zeros(array: Array | None, shape: tuple[int, ...]) -> Array:
    if array is not None:
        return compact(array)
    zeros, notes = np.zeros(shape, np.float32), noting()
    if notes is not None:
        notes.keep(zeros)
    return zeros


def prepare(session: Session, primitives: Primitives, form: Form) -> Layer | None:
    """Return a layer of this form; None if the library has none."""
    api, cell = primitives.api, form.cell
    description = forward_description(api, form, any_layout)
    if description is not None and description.implementation.startswith("ref"):
        # Its packed weights fit one batch size only, and are hardly faster.
        description = forward_description(api, form, rows_of)
    if description is None:
        return None
    kinds = [WEIGHTS, WEIGHTS_1, *form.peephole * [WEIGHTS_2], BIAS]
    *weights, bias = (
        weights_of(session, primitives, form, description, k) for k in kinds
    )
    firsts = (SRC_1, SRC_2)[: cell.states * form.states]
    kinds = [SRC, *kinds, *firsts, *(DST, DST_1, DST_2)[: 1 + cell.states]]
    operands: Operands = [
        (kind, description.descriptor(ARGUMENT_MD, kind)) for kind in kinds
    ]
    return Layer(form, primitives.prepared(description, operands), weights, bias)


def weights_of(
    session: Session,
    primitives: Primitives,
    form: Form,
    description: Description,
    kind: int,
) -> Weights:
    """Return the conversion of operands of one ``kind`` from ONNX's layout."""
    cell, count, width = form.cell, form.directions, form.hidden
    parts, sums = {
        WEIGHTS: (len(cell.gates), cell.gates),
        WEIGHTS_1: (len(cell.gates), cell.gates),
        WEIGHTS_2: (len(cell.peepholes), cell.peepholes),
        BIAS: (2 * len(cell.gates), cell.biases),
    }[kind]
    if kind in (WEIGHTS, WEIGHTS_1):
        inputs = form.inputs if kind == WEIGHTS else width
        source = rows_of(primitives.api, (1, count, inputs, len(sums), width), last=2)
    else:
        source = rows_of(primitives.api, (1, count, len(sums), width))
    # One array may be the weights of inputs and of states, and of other cells.
    view, arrange = (cell.name, kind), partial(_reorder_gates, parts, sums)
    packed, which = session.packed, ARGUMENT_MD
    return Weights(primitives, packed, source, view, description, which, kind, arrange)


def forward_description(
    api: Api,
    form: Form,
    layout: Callable[[Api, tuple[int, ...]], Handle],
    propagation: int = INFERENCE,
) -> Description | None:
    """Return the description of a form, with weights in a ``layout``."""
    cell = form.cell
    return described(
        *(api, f"{cell.name}_forward", api.engine, propagation),
        *(() if cell.kind is None else (cell.kind,)),
        *(form.direction, *operands_of(api, form, layout), 0),
        *(() if cell.kind is None else (0.0, 0.0)),
        plain=True,
    )


def operands_of(
    api: Api, form: Form, layout: Callable[[Api, tuple[int, ...]], Handle]
) -> list[Handle | None]:
    """Return the descriptors of a form's operands and results, or their gradients."""
    cell, width, count = form.cell, form.hidden, form.directions
    source = rows_of(api, (form.time, form.batch, form.inputs))
    target = rows_of(api, (form.time, form.batch, count * width))
    state, bias = rows_of(api, (1, *form.state)), rows_of(api, (1, *form.bias))
    firsts = cell.states * [state if form.states else None]
    weights: list[Handle | None] = [
        layout(api, (1, count, n, len(cell.gates), width)) for n in (form.inputs, width)
    ]
    if cell.peepholes:
        peephole = rows_of(api, (1, count, len(cell.peepholes), width))
        weights += [peephole if form.peephole else None, None]  # and no projection
    return [source, *firsts, *weights, bias, target, *cell.states * [state]]


def rows_of(api: Api, shape: tuple[int, ...], last: int = -1) -> Handle:
    """Return the descriptor of a dense array whose ``last`` axis is the innermost."""
    order = [axis for axis in range(len(shape)) if axis != last % len(shape)]
    return strided(api, shape, ordered(shape, (*order, last % len(shape))))


def _reorder_gates(parts: int, sums: Sums, array: Array) -> Array:
    """Return ``array`` with ``sums`` of its ``parts`` along axis 1 in their place."""
    source = compact(array).reshape(len(array), parts, -1)
    if sums == tuple((part,) for part in range(parts)):
        return source
    arranged = empty((len(array), len(sums), source.shape[2]))
    for index, (first, *more) in enumerate(sums):
        target = arranged[:, index]
        do(partial(np.copyto, target, source[:, first]))
        for part in more:
            do(partial(np.add, target, source[:, part], out=target))
    return arranged

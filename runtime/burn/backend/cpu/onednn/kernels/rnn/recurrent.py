"""Recurrent layers with oneDNN: all steps and both directions in one primitive.

Its formulas are ONNX's with the default activations. NumPy computes other variants, and
sequences of different lengths in eager calls.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from burn.backend.cpu.device import Cpu
from burn.backend.cpu.onednn.binding.api import BOTH_WAYS, FROM_LEFT, FROM_RIGHT, RELU
from burn.backend.cpu.onednn.binding.cache import Primitives
from burn.backend.cpu.onednn.binding.capture import noting
from burn.backend.cpu.onednn.binding.engine import Session, current, limits
from burn.backend.cpu.onednn.binding.memory import Array
from burn.backend.cpu.onednn.binding.operands import are_float32
from burn.backend.cpu.onednn.kernels.rnn.recurrent_lengths import finish, mark_ends
from burn.backend.cpu.onednn.kernels.rnn.recurrent_primitives import (
    GRU,
    LSTM,
    PLAIN,
    RESET_AFTER,
    Cell,
    Form,
    Layer,
    prepare,
)
from burn.backend.cpu.onednn.kernels.rnn.recurrent_training import (
    Training,
    prepare_training,
)
from burn.ops.recurrence import Options
from burn.ops.recurrent_gradients import LayerOperands
from burn.ops.rnn import gru, gru_grad, lstm, lstm_grad, rnn, rnn_grad
from burn.primitive import Primitive

_DIRECTIONS = {
    "forward": (FROM_LEFT, 1),
    "reverse": (FROM_RIGHT, 1),
    "bidirectional": (BOTH_WAYS, 2),
}


#: For each direction, whether it goes from the end.
_REVERSE = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


def _lstm_cell(options: Any) -> Cell | None:
    return None if options.get("input_forget") else LSTM


def _gru_cell(options: Any) -> Cell | None:
    return RESET_AFTER if options.get("linear_before_reset") else GRU


def _plain_cell(options: Any) -> Cell | None:
    name = (options.get("activations") or ("tanh",))[0].lower()
    # oneDNN's ReLU returns a number for NaN; plans have no NaN.
    return None if name == "relu" and noting() is None else PLAIN.get(name)


def _register(
    forward: Primitive[..., Any],
    backward: Primitive[..., Any],
    states: int,
    cell_of: Callable[[Any], Cell | None],
) -> None:
    """Register the kernels of a layer: oneDNN's if supported, else NumPy's."""
    count = 1 + states

    @forward.on(Cpu)
    def layer(*operands: Array | None, **options: Any) -> tuple[Array, ...]:
        layer = LayerOperands.of(operands, states)
        outputs = _layer(cell_of(options), layer, options)
        return forward.kernel(*operands, **options) if outputs is None else outputs

    @backward.on(Cpu)
    def gradient(*operands: Any, **options: Any) -> tuple[Array, ...]:
        grads, outs = operands[:count], operands[count : 2 * count]
        layer = LayerOperands.of(operands[2 * count :], states)
        gradients = _layer_grad(cell_of(options), grads, outs, layer, options)
        return backward.kernel(*operands, **options) if gradients is None else gradients


_register(lstm, lstm_grad, 2, _lstm_cell)
_register(gru, gru_grad, 1, _gru_cell)
_register(rnn, rnn_grad, 1, _plain_cell)


def _layer(
    cell: Cell | None, layer: LayerOperands, options: Any
) -> tuple[Array, ...] | None:
    """Return all outputs and the last states; None if NumPy should compute them."""
    chosen, notes = Options(**options), noting()
    prepared = _prepared_form(cell, layer, chosen)
    if prepared is None:
        return _with_ends(cell, layer, chosen)
    session, form, layer = prepared
    if notes is not None and notes.workspaces.is_wanted() and _is_smooth(form):
        training = _training(session, form)
        if training is not None:
            space = training.workspace()
            notes.keep(space)
            notes.workspaces.leave(form, space)
            return _laid_out(training.run(layer, space), chosen)
    results = _infer(session, form, layer)
    return None if results is None else _laid_out(results, chosen)


def _infer(
    session: Session, form: Form, layer: LayerOperands
) -> tuple[Array, ...] | None:
    def make(primitives: Primitives) -> Layer | None:
        return prepare(session, primitives, form)

    kernel: Layer | None = session.primitives.get(form, make, form.work)
    return None if kernel is None else kernel.run(layer)


def _with_ends(
    cell: Cell | None, layer: LayerOperands, options: Options
) -> tuple[Array, ...] | None:
    """Return a plan's results for sequences of different lengths, else None."""
    notes, lengths = noting(), layer.lengths
    if notes is None or lengths is None or cell is None or layer.x.ndim != 3:
        return None
    if options.layout:
        states = tuple(map(_swap_first_axes, layer.states))
        layer = layer._replace(x=_swap_first_axes(layer.x), states=states)
    reverse = _REVERSE.get(options.direction, ())
    if not are_float32(layer.x) or _form(cell, layer, options) is None:
        return None
    prepared = mark_ends(cell, layer, lengths, reverse, notes)
    form = None if prepared is None else _form(cell, prepared[0], options)
    session = None if form is None else current(form.work)
    if prepared is None or form is None or session is None:
        return None
    results = _infer(session, form, prepared[0])
    if results is None:
        return None
    results = finish(cell, layer, results, reverse, prepared[1])
    return _laid_out(results, options)


def _layer_grad(
    cell: Cell | None,
    grads: tuple[Array | None, ...],
    outs: tuple[Array, ...],
    layer: LayerOperands,
    options: Any,
) -> tuple[Array, ...] | None:
    """Return the gradients of the operands but lengths; None if NumPy should.

    If the plan has no workspace of the forward layer, the layer is recomputed.
    """
    chosen, notes = Options(**options), noting()
    prepared = _prepared_form(cell, layer, chosen)
    if (
        prepared is None
        or not are_float32(*grads, *outs)
        or not _is_smooth(prepared[1])
    ):
        return None
    session, form, turned = prepared
    training = _training(session, form)
    if training is None:
        return None
    if chosen.layout:
        grads, outs = _time_first(grads), _time_first(outs)
    space = None if notes is None else notes.workspaces.left(form)
    if space is None:
        space = training.workspace()
        if notes is not None:
            notes.keep(space)
        training.run(turned, space)
    of_x, of_w, of_r, of_b, *of_states = training.back(grads, outs, turned, space)
    if chosen.layout:
        of_x, of_states = _swap_first_axes(of_x), [
            _swap_first_axes(part) for part in of_states
        ]
    states = zip(layer.states, of_states, strict=True)
    return (
        *(of_x, of_w, of_r, *([] if layer.b is None else [of_b])),
        *(part for state, part in states if state is not None),
    )


def _prepared_form(
    cell: Cell | None, layer: LayerOperands, options: Options
) -> tuple[Session, Form, LayerOperands] | None:
    """Return the session for a layer, its form, and its operands with time first."""
    if cell is None or layer.x.ndim != 3 or not are_float32(layer.x):
        return None
    if options.layout:
        states = tuple(map(_swap_first_axes, layer.states))
        layer = layer._replace(x=_swap_first_axes(layer.x), states=states)
    if layer.lengths is not None and not _are_whole(layer.lengths, layer.x):
        return None
    form = _form(cell, layer, options)
    session = None
    if form is not None and form.time >= limits().steps:
        session = current(form.work)
    return None if form is None or session is None else (session, form, layer)


def _training(session: Session, form: Form) -> Training | None:
    def make(primitives: Primitives) -> Training | None:
        return prepare_training(session, primitives, form)

    kernel: Training | None = session.primitives.get(
        ("training", form), make, form.work
    )
    return kernel


def _is_smooth(form: Form) -> bool:
    """Return whether the library's gradient agrees: for ReLU its slope at 0 differs."""
    return form.cell.kind != RELU and not form.peephole


def _laid_out(results: tuple[Array, ...], options: Options) -> tuple[Array, ...]:
    every, *last = results
    if options.layout:
        return every.transpose(2, 0, 1, 3), *map(_swap_first_axes, last)
    return every, *last


def _time_first(results: Any) -> Any:
    """Return results, or their gradients, with the batch after time and directions."""
    every, *last = results
    every = None if every is None else every.transpose(1, 2, 0, 3)
    return every, *map(_swap_first_axes, last)


def _are_whole(lengths: Array, x: Array) -> bool:
    """Return whether no sequence ends before ``x`` does, in any run of a plan.

    If a plan cannot know, it calls NumPy's kernel: other kernels cache packed weights,
    whose memory in the plan changes in every run.
    """
    notes, (time, batch, _) = noting(), x.shape
    if notes is None or lengths.shape != (batch,) or not notes.is_constant(lengths):
        return False
    return bool(np.all(np.equal(lengths, time)))


def _swap_first_axes(x: Array | None) -> Any:
    """Return ``x`` with the batch axis and the first axis swapped."""
    return x if x is None or x.ndim != 3 else x.transpose(1, 0, 2)


def _form(cell: Cell, layer: LayerOperands, options: Options) -> Form | None:
    """Return the form of the layer; None if oneDNN does not support it."""
    x, w, r, b, states, _, peephole = layer
    others = (w, r, b, *states, peephole)
    if not are_float32(*others) or r.ndim != 3 or not x.size:
        return None
    direction, directions = _DIRECTIONS.get(options.direction, (0, 0))
    (time, batch, inputs), hidden = x.shape, r.shape[2]
    size, state = len(cell.gates) * hidden, (directions, batch, hidden)
    shapes: list[tuple[int, ...]] = [(directions, size, inputs)]
    shapes += [(directions, size, hidden), (directions, 2 * size)]
    shapes += [*len(states) * [state], (directions, 3 * hidden)]
    for operand, shape in zip(others, shapes, strict=True):
        if operand is not None and (operand.shape != shape or not operand.size):
            return None  # NumPy's kernel raises the error
    if not _is_usual(cell, options, directions, hidden):
        return None
    return Form(
        *(cell, direction, time, batch, inputs, directions, hidden),
        states=any(state is not None for state in states),
        peephole=peephole is not None,
    )


def _is_usual(cell: Cell, options: Options, directions: int, hidden: int) -> bool:
    """Return whether options are the defaults of ``cell``."""
    usual = directions * list(cell.activations)
    names = [name.lower() for name in options.activations] or usual
    return (
        options.hidden_size in (None, hidden)
        and (options.clip is None or options.clip <= 0)
        and names[: len(usual)] == usual
        and len(names) in (len(usual), 2 * len(cell.activations))
    )

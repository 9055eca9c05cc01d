"""Backpropagation through time for recurrent layers, on arrays.

The states before each step are known: they are the outputs. So the gates of all steps
are recomputed at once, as are the gradients of inputs and weights; only the gradients
of states need a loop over time. LayerOperands are those of :mod:`burn.ops.rnn`.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

from burn.ops.recurrence import (
    ArrayMaths,
    Options,
    direction_starts,
    sigmoid,
    steps_within,
)
from burn.ops.support import Array, namespace


class LayerOperands(NamedTuple):
    """The operands of a layer; absent ones are None."""

    x: Array
    w: Array
    r: Array
    b: Array | None
    states: tuple[Array | None, ...]
    lengths: Array | None = None
    peephole: Array | None = None

    @classmethod
    def of(cls, operands: Sequence[Any], states: int) -> Self:
        """Return the positional operands of a layer with that number of states."""
        last = 4 + states
        filled = (*operands, *(last + 2 - len(operands)) * (None,))
        x, w, r, b = filled[:4]
        return cls(x, w, r, b, filled[4:last], *filled[last:])


class Direction(NamedTuple):
    """One direction, with its steps in execution order.

    ``b`` and ``peephole`` may be None, ``alive`` is ``[time, batch, 1]``. ``before``
    are the outputs before each step, ``grads`` the gradients of the outputs and of the
    last states.
    """

    x: Array
    w: Array
    r: Array
    b: Array | None
    peephole: Array | None
    starts: tuple[Array, ...]
    before: Array
    alive: Array | None
    grads: tuple[Array, ...]


class Back(NamedTuple):
    """The gradients of the steps of a direction.

    ``inward`` are the gradients of the input terms of the gates, ``recurrent`` of the
    state terms, ``[time, batch, gates * hidden]``; ``r`` is the gradient of the
    recurrent weights if it is not that of a product with ``before``.
    """

    inward: Array
    recurrent: Array
    starts: tuple[Array, ...]
    peephole: Array | None = None
    r: Array | None = None


Rule = Callable[[ArrayMaths, Direction, Any], Back]


def layer_gradients(
    rule: Rule, states: int, operands: Sequence[Any], options: Options
) -> tuple[Array, ...]:
    """Return the gradients of the present operands except lengths, in order.

    ``operands`` are the gradients of the results (None for zeros), the results, and the
    operands of a layer with that number of states.
    """
    count = 1 + states
    grads, outs = tuple(operands[:count]), tuple(operands[count : 2 * count])
    layer = LayerOperands.of(operands[2 * count :], states)
    m, xp = ArrayMaths(layer.x), namespace(layer.x)
    ways: list[list[Array]] = []
    x_total: Any = 0.0
    for index, reverse in enumerate(options.reversals(layer.w.shape[0])):
        one = _direction(m, grads, outs, layer, options, (index, reverse))
        back = rule(m, one, options)
        of_x = back.inward @ one.w
        of_x = m.reverse_steps(of_x, layer.lengths) if reverse else of_x
        x_total = x_total + of_x
        ways.append(_of_weights(xp, one, back))
    gradients = [xp.stack(list(parts)) for parts in zip(*ways, strict=True)]
    if options.layout:
        x_total = xp.transpose(x_total, (1, 0, 2))
        first = 4 if layer.b is not None else 3
        span = slice(first - 1, first - 1 + states)
        gradients[span] = [xp.transpose(part, (1, 0, 2)) for part in gradients[span]]
    return _those_asked_for(layer, [x_total, *gradients])


def _direction(
    m: ArrayMaths,
    grads: tuple[Array | None, ...],
    outs: tuple[Array, ...],
    layer: LayerOperands,
    options: Options,
    which: tuple[int, bool],
) -> Direction:
    xp, (index, reverse), layout = namespace(layer.x), which, options.layout
    hidden = layer.r.shape[-1]
    x = m.wide(xp.transpose(layer.x, (1, 0, 2)) if layout else layer.x)

    def turned(every: Array) -> Array:
        part = every[:, :, index].swapaxes(0, 1) if layout else every[:, index]
        part = m.wide(part)
        return m.reverse_steps(part, layer.lengths) if reverse else part

    starts = tuple(
        direction_starts(m, state, x, (layer.w.shape[0], hidden), layout)[index]
        for state in layer.states
    )
    ends = []
    for end, start in zip(grads[1:], starts, strict=True):
        if end is not None:
            end = m.wide(end[:, index] if layout else end[index])
        ends.append(xp.zeros_like(start) if end is None else end)
    y = turned(outs[0])
    dy = xp.zeros_like(y) if grads[0] is None else turned(grads[0])
    b, p = (None if a is None else m.wide(a)[index] for a in (layer.b, layer.peephole))
    return Direction(
        m.reverse_steps(x, layer.lengths) if reverse else x,
        m.wide(layer.w)[index],
        m.wide(layer.r)[index],
        *(b, p, starts),
        xp.concatenate([starts[0][None], y[:-1]])[: len(y)],
        steps_within(m, x, layer.lengths),
        (dy, *ends),
    )


def _of_weights(xp: Any, one: Direction, back: Back) -> list[Array]:
    """Return the gradients of w, r, biases, states and peephole."""
    inward, recurrent = map(_rows, (back.inward, back.recurrent))
    of_r = recurrent.T @ _rows(one.before) if back.r is None else back.r
    gradients = [inward.T @ _rows(one.x), of_r]
    if one.b is not None:
        gradients.append(xp.concatenate([inward.sum(0), recurrent.sum(0)]))
    gradients += back.starts
    return gradients if back.peephole is None else [*gradients, back.peephole]


def _rows(x: Array) -> Array:
    return x.reshape(-1, x.shape[-1])


def _those_asked_for(layer: LayerOperands, gradients: list[Array]) -> tuple[Array, ...]:
    """Return the gradients of present operands, in the dtypes of the operands."""
    parts = [layer.x, layer.w, layer.r, *([] if layer.b is None else [layer.b])]
    parts += [*layer.states, *([] if layer.peephole is None else [layer.peephole])]
    pairs = zip(parts, gradients, strict=True)
    return tuple(
        grad.astype(part.dtype, copy=False) for part, grad in pairs if part is not None
    )


def _where_alive(
    m: ArrayMaths, alive: Array | None, time: int, new: Any, old: Any
) -> Array:
    """Return ``new`` where a sequence continues at ``time``, else ``old``."""
    return new if alive is None else m.where(alive[time], new, old)


def _added(one: Direction) -> Array:
    """Return the gate pre-activations of all steps from inputs, states and biases."""
    raw = one.x @ one.w.T + one.before @ one.r.T
    if one.b is None:
        return raw
    half = one.b.shape[0] // 2
    return raw + (one.b[:half] + one.b[half:])


def lstm_back(m: ArrayMaths, one: Direction, options: Options) -> Back:
    """Return the gradients of :func:`burn.ops.lstm` with its default activations."""
    xp, n, p = namespace(one.x), one.r.shape[-1], one.peephole
    gates, cells = _lstm_gates(m, one, options)
    squashed = m.tanh(cells[1:])
    (dy, dh, dc), slopes = one.grads, xp.empty_like(gates)
    for time in reversed(range(len(gates))):
        i, o, f, g = (gates[time, :, k * n : (k + 1) * n] for k in range(4))
        shown, before = squashed[time], cells[time]
        total = dh + dy[time]
        do = total * shown * (o * (1.0 - o))
        new = dc + total * o * (1.0 - shown * shown)
        if p is not None:
            new = new + do * p[n : 2 * n]
        dc_before = new * f
        if options.input_forget:
            di, df = new * (g - before) * (i * (1.0 - i)), xp.zeros_like(before)
        else:
            di, df = new * g * (i * (1.0 - i)), new * before * (f * (1.0 - f))
        dg = new * i * (1.0 - g * g)
        if p is not None:
            dc_before = dc_before + di * p[:n] + df * p[2 * n :]
        for k, part in enumerate((di, do, df, dg)):
            slopes[time, :, k * n : (k + 1) * n] = _where_alive(
                m, one.alive, time, part, 0.0
            )
        dc = _where_alive(m, one.alive, time, dc_before, dc)
        dh = _where_alive(m, one.alive, time, slopes[time] @ one.r, dh)
    of_peephole = None
    if p is not None:
        pairs = ((0, cells[:-1]), (1, cells[1:]), (2, cells[:-1]))
        parts = [(slopes[..., k * n : (k + 1) * n] * c).sum((0, 1)) for k, c in pairs]
        of_peephole = xp.concatenate(parts)
    return Back(slopes, slopes, (dh, dc), of_peephole)


def _lstm_gates(m: ArrayMaths, one: Direction, options: Options) -> tuple[Array, Array]:
    """Return the gates of all steps, and the cells before each and after the last."""
    xp, n, p = namespace(one.x), one.r.shape[-1], one.peephole
    gates = _added(one)
    cells = xp.empty((len(gates) + 1, *one.starts[1].shape), gates.dtype)
    cells[0] = one.starts[1]
    gates[..., 3 * n :] = m.tanh(gates[..., 3 * n :])
    if p is None:
        gates[..., : 3 * n] = sigmoid(m, gates[..., : 3 * n])
    for time in range(len(gates)):
        i, o, f, g = (gates[time, :, k * n : (k + 1) * n] for k in range(4))
        if p is not None:
            i[...] = sigmoid(m, i + p[:n] * cells[time])
            f[...] = sigmoid(m, f + p[2 * n :] * cells[time])
        if options.input_forget:
            f[...] = 1.0 - i
        new = f * cells[time] + i * g
        cells[time + 1] = _where_alive(m, one.alive, time, new, cells[time])
        if p is not None:
            o[...] = sigmoid(m, o + p[n : 2 * n] * new)
    return gates, cells


def gru_back(m: ArrayMaths, one: Direction, options: Options) -> Back:
    """Return the gradients of :func:`burn.ops.gru` with its default activations."""
    xp, n, late = namespace(one.x), one.r.shape[-1], options.linear_before_reset
    update, reset, inner, new = _gru_gates(m, one, late)
    dy, dh = one.grads
    inward = xp.empty((*new.shape[:2], 3 * n), new.dtype)
    recurrent = xp.empty_like(inward) if late else inward
    for time in reversed(range(len(new))):
        z, r, q, y, h = (a[time] for a in (update, reset, inner, new, one.before))
        total = dh + dy[time]
        dz = total * (h - y) * (z * (1.0 - z))
        dn = total * (1.0 - z) * (1.0 - y * y)
        back = dn * r if late else dn @ one.r[2 * n :]
        dr = (dn * q if late else back * h) * (r * (1.0 - r))
        for k, part in enumerate((dz, dr, dn)):
            part = _where_alive(m, one.alive, time, part, 0.0)
            inward[time, :, k * n : (k + 1) * n] = part
            recurrent[time, :, k * n : (k + 1) * n] = part
        if late:
            back = _where_alive(m, one.alive, time, back, 0.0)
            recurrent[time, :, 2 * n :] = back
            rest = recurrent[time] @ one.r
        else:
            rest = inward[time, :, : 2 * n] @ one.r[: 2 * n] + back * r
        dh = _where_alive(m, one.alive, time, total * z + rest, dh)
    if late:
        return Back(inward, recurrent, (dh,))
    rows = [(inward[..., : 2 * n], one.before), (inward[..., 2 * n :], inner)]
    of_r = xp.concatenate([_rows(part).T @ _rows(by) for part, by in rows])
    return Back(inward, inward, (dh,), r=of_r)


def _gru_gates(
    m: ArrayMaths, one: Direction, late: bool
) -> tuple[Array, Array, Array, Array]:
    """Return the gates, the term at the reset gate, and the new outputs."""
    n = one.r.shape[-1]
    inward = one.x @ one.w.T
    raw = inward[..., : 2 * n] + one.before @ one.r[: 2 * n].T
    shift: Any = 0.0
    if one.b is not None:
        inward = inward + one.b[: 3 * n]
        raw = raw + (one.b[: 2 * n] + one.b[3 * n : 5 * n])
        shift = one.b[5 * n :]
    gates = sigmoid(m, raw)
    update, reset = gates[..., :n], gates[..., n:]
    if late:
        inner = one.before @ one.r[2 * n :].T + shift
        return update, reset, inner, m.tanh(inward[..., 2 * n :] + reset * inner)
    inner = reset * one.before
    added = inner @ one.r[2 * n :].T + shift
    return update, reset, inner, m.tanh(inward[..., 2 * n :] + added)


def rnn_back(m: ArrayMaths, one: Direction, options: Options) -> Back:
    """Return the gradients of :func:`burn.ops.rnn` with tanh, sigmoid or ReLU."""
    xp, raw = namespace(one.x), _added(one)
    name = (options.activations or ("tanh",))[0].lower()
    if name == "relu":
        at_zero = m.where(raw == 0, raw + 0.5, m.where(raw < 0, raw * 0.0, raw))
        slope = m.where(raw > 0, raw * 0.0 + 1.0, at_zero)
    else:
        y = m.tanh(raw) if name == "tanh" else sigmoid(m, raw)
        slope = 1.0 - y * y if name == "tanh" else y * (1.0 - y)
    (dy, dh), slopes = one.grads, xp.empty_like(raw)
    for time in reversed(range(len(raw))):
        part = (dh + dy[time]) * slope[time]
        slopes[time] = _where_alive(m, one.alive, time, part, 0.0)
        dh = _where_alive(m, one.alive, time, slopes[time] @ one.r, dh)
    return Back(slopes, slopes, (dh,))

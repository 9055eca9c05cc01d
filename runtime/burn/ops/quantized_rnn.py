"""A recurrent layer with quantized weights."""

from typing import Any

import numpy as np

from burn.ops.quantize import quantization_range, quantize
from burn.ops.recurrence import (
    ArrayMaths,
    Options,
    State,
    Step,
    activations_of,
    run_directions,
)
from burn.ops.rnn import lstm_step
from burn.ops.support import Array, namespace
from burn.primitive import primitive


@primitive(outputs=3, no_gradient="rounding is piecewise constant")
def dynamic_quantized_lstm(
    x: Array,
    w: Array,
    w_scale: Array,
    w_zero_point: Array,
    r: Array,
    r_scale: Array,
    r_zero_point: Array,
    b: Array | None = None,
    h0: Array | None = None,
    c0: Array | None = None,
    seq_lens: Array | None = None,
    peephole: Array | None = None,
    **options: Any,
) -> tuple[Array, ...]:
    """Return the results of :func:`lstm` with 8-bit weights.

    ``w`` is ``[directions, input, 4 hidden]``, ``r`` has ``hidden`` for ``input``; the
    scales and zero points are ``[directions]`` or ``[directions, 4 hidden]``. The other
    factors of products are quantized dynamically to 8 bits: ``x`` as a whole, and the
    outputs of each step. Other arguments are those of :func:`lstm`.
    """
    m, settings = ArrayMaths(x), Options(**options)
    hidden = r.shape[1]
    functions = list(activations_of(m, settings, ("Sigmoid", "Tanh", "Tanh")))
    inward, back = _real(w, w_scale, w_zero_point), _real(r, r_scale, r_zero_point)

    def prepare(direction: int, turned: Any) -> tuple[Any, Step]:
        inputs = _rounded(turned) @ inward[direction]
        if b is not None:
            inputs = inputs + (b[direction, : 4 * hidden] + b[direction, 4 * hidden :])
        p = None if peephole is None else peephole[direction]
        step = lstm_step(m, back[direction], p, functions[direction], settings)

        def rounding(projected: Any, state: State) -> State:
            return step(projected, (_rounded(state[0]), *state[1:]))

        return inputs, rounding

    sizes = (w.shape[0], hidden)
    return run_directions(m, x, [h0, c0], seq_lens, sizes, settings, prepare)


def _real(weight: Array, scale: Array, zero_point: Array) -> Array:
    """Return the dequantized weights of all directions."""
    xp, count = namespace(weight), weight.shape[0]
    scale = xp.asarray(scale, np.float32).reshape(count, 1, -1)
    zero_point = xp.asarray(zero_point).astype(np.float32).reshape(count, 1, -1)
    return (weight.astype(np.float32) - zero_point) * scale


def _rounded(x: Array) -> Array:
    """Return ``x`` rounded to 8 bits."""
    scale, zero_point = quantization_range.kernel(x)
    octets = quantize.kernel(x, scale, zero_point, precision=x.dtype)
    return (octets.astype(x.dtype) - zero_point.astype(x.dtype)) * scale

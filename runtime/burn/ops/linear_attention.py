"""Linear attention: a recurrence over a state of fixed size."""

from typing import Any

import numpy as np

from burn.ops.casting import cast
from burn.ops.composition import Joint, through
from burn.ops.elementwise import exp
from burn.ops.indexing import getitem
from burn.ops.matmul import matmul
from burn.ops.padding import stack
from burn.ops.shape import reshape
from burn.ops.support import Array, accumulate, namespace
from burn.primitive import primitive


@primitive(outputs=2)
def linear_attention(
    query: Array,
    key: Array,
    value: Array,
    state: Array | None = None,
    decay: Array | None = None,
    beta: Array | None = None,
    *,
    scale: float | None = None,
) -> tuple[Array, Array]:
    """Return the results ``[batch, heads, sequence, out]`` and the final state.

    ``query`` is ``[batch, heads, sequence, size]``, ``key`` and ``value`` have groups
    of heads, and the state ``[batch, groups, size, out]`` begins with zeros. At each
    step it is multiplied by ``exp(decay)`` if there is one (``[batch, groups,
    sequence, size or 1]``), the outer product of key and value is added, and the
    query reads ``scale`` (1 / sqrt(size)) times its product with the state. With
    ``beta`` (``[batch, groups or 1, sequence, 1]``), the value of the key in the
    state moves towards the value by that share: the delta rule. (Yang et al. 2024,
    https://arxiv.org/abs/2412.06464). Half types are computed in float32.
    """
    dtypes = query.dtype, (query if state is None else state).dtype
    work = [None if x is None else accumulate(x) for x in (state, decay, beta)]
    query, key, value = accumulate(query), accumulate(key), accumulate(value)
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    memory, decay, beta = work
    if memory is None:
        extents = (*key.shape[:2], key.shape[3], value.shape[3])
        memory = namespace(query).zeros(extents, query.dtype)
    decay = None if decay is None else np.exp(decay)[..., None]
    batch, heads, length, _ = query.shape
    groups = key.shape[1]
    query = query.reshape(batch, groups, heads // groups, length, -1) * scale
    extents = (batch, groups, heads // groups, length, value.shape[3])
    out = namespace(query).empty(extents, query.dtype)
    for step in range(length):
        row, column = value[:, :, step, None], key[:, :, step, :, None]
        if decay is not None:
            memory = memory * decay[:, :, step]
        if beta is not None:
            row = beta[:, :, step, None] * (row - key[:, :, step, None] @ memory)
        memory = memory + column * row
        out[..., step, :] = query[..., step, :] @ memory
    out = out.reshape(batch, heads, length, -1)
    return out.astype(dtypes[0], copy=False), memory.astype(dtypes[1])


@linear_attention.vjp
def _(grads: Any, outs: Any, *inputs: Any, scale: float | None = None) -> Any:
    factor = inputs[0].shape[-1] ** -0.5 if scale is None else scale

    def body(*operands: Any) -> Any:
        return _recurrence(operands, factor)

    operands = (*inputs, *(6 - len(inputs)) * (None,))
    joint = Joint(lambda: through(body, grads, *operands))
    return tuple(joint[position] for position in range(6))


def _recurrence(operands: tuple[Any, ...], scale: float) -> Any:
    """Return :func:`linear_attention` in primitives, for its gradient."""
    query, key, value, state, decay, beta = operands
    batch, heads, length, size = query.shape
    groups = key.shape[1]
    grouped = reshape(query, (batch, groups, heads // groups, length, size))
    dtype = query.dtype if state is None else state.dtype
    memory: Any = 0.0 if state is None else cast(state, dtype=query.dtype)
    rows = []
    for step in range(length):
        key_ = (slice(None), slice(None), slice(step, step + 1))
        row, line = getitem(value, key_), getitem(key, key_)
        if decay is not None:
            memory = memory * exp(getitem(decay, key_)).mT
        if beta is not None and (step or state is not None):
            row = row - matmul(line, memory)
        if beta is not None:
            row = getitem(beta, key_) * row
        memory = memory + line.mT * row
        rows.append(matmul(grouped[:, :, :, step], memory) * scale)
    out = reshape(stack(rows, 3), (batch, heads, length, value.shape[3]))
    return out, cast(memory, dtype=dtype)

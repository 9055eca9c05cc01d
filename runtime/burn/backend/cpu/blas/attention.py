"""Attention of plans as one call for a generated kernel.

The kernels of its products and of the softmax compute the call until the kernel
replaces it, when a plan is first repeated. Large attention takes less time with the
kernel, even if that is compiled for one call, and is computed by it at once.
"""

from functools import partial
from typing import Any

import numpy as np

from burn.backend.cpu.blas.convolution import KERNELS
from burn.backend.cpu.device import Cpu
from burn.backend.cpu.jit.pool import parallel_parts
from burn.backend.cpu.jit.products.attention import Attention, scratch_floats
from burn.backend.cpu.onednn.binding.capture import (
    Notes,
    compact,
    do,
    noted_by,
    noting,
)
from burn.ops.attention import masked_softmax
from burn.ops.fused_attention import scaled_attention as scaled_attention_op
from burn.ops.matmul import matmul
from burn.ops.softmax import softmax
from burn.ops.support import Array

#: The multiplications of one call that take longer by other kernels than LLVM takes to
#: load and to compile a kernel.
LARGE = 1 << 30


def scaled_attention(
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None = None,
    *,
    scale: float,
    causal: bool = False,
    empty_is_zero: bool = True,
) -> Array:
    """Compute :func:`burn.ops.fused_attention.scaled_attention` by one call.

    Operands of rank 4 and a mask that is added, all of float32; others by NumPy.
    """
    options = (scale, causal, empty_is_zero)
    arrays = [x for x in (query, key, value, mask) if x is not None]
    if query.ndim != 4 or any(x.dtype != np.float32 for x in arrays):
        return scaled_attention_op.kernel(
            *(query, key, value, mask),
            scale=scale,
            causal=causal,
            empty_is_zero=empty_is_zero,
        )
    notes = noting()
    shape = (*query.shape[:3], value.shape[-1])
    if notes is None:
        out = np.empty(shape, query.dtype)
        attend(Attention(query, key, value, mask, out, out, *options))
        return out
    query, key, value = map(_with_rows, (query, key, value))
    if mask is not None:
        mask = np.broadcast_to(_with_rows(mask), (*shape[:3], key.shape[2]))
    each = scratch_floats((key.shape[2], query.shape[3], shape[3]))
    parts = parallel_parts(query.size // query.shape[3])
    scratch = notes.workspaces.shared("attention", (parts * each,))[: parts * each]
    out = _result(notes, shape, query.dtype)
    given = Attention(query, key, value, mask, out, scratch, *options)
    call = partial(attend, given)
    if notes.workspaces.is_generated and _work(given) >= LARGE:
        attend_by_kernel(given)
        notes.note(call)
    else:
        do(call)
    return out


def _work(given: Attention) -> int:
    """Return the multiplications of both products."""
    columns = given.query.shape[-1] + given.value.shape[-1]
    work: int = given.query[..., 0].size * given.key.shape[2] * columns
    return work


def attend_by_kernel(given: Attention) -> None:
    """Write attention to ``given.out``, by its generated kernel."""
    # With the compiler of kernels, which most plans need not import yet.
    from burn.backend.cpu.jit.machine import machine
    from burn.backend.cpu.jit.products.attention import attention_kernel

    kernel = attention_kernel(given)
    made = machine().call(kernel)
    made.call()


def _with_rows(x: Array) -> Array:
    """Return ``x``, or a copy if the elements of its rows are not side by side."""
    return x if x.strides[-1] == x.itemsize else compact(x)


def _result(notes: Notes, shape: tuple[int, ...], dtype: Any) -> Array:
    """Return memory for a result, in the preferred order if that keeps its rows."""
    order = notes.order_of(shape)
    if order is None or order[-1] != len(shape) - 1:
        return notes.empty(shape, dtype)
    memory = notes.empty(tuple(shape[axis] for axis in order), dtype)
    return memory.transpose(np.argsort(order).tolist())


def attend(given: Attention) -> None:
    """Write attention to ``given.out``, by the kernels of its operations."""
    query, key, value, mask, out = given[:5]
    product, cpu = matmul.kernel_for(Cpu()), Cpu()
    repeats = query.shape[1] // key.shape[1]
    if repeats > 1:
        key, value = (np.repeat(x, repeats, axis=1) for x in (key, value))
    with noted_by(None):
        scores = product(query, np.swapaxes(key, -2, -1))
        np.multiply(scores, np.float32(given.scale), out=scores)
        if mask is not None:
            np.add(scores, mask, out=scores)
        if given.causal:
            seen = np.tri(*scores.shape[-2:]) > 0
            scores = np.where(seen, scores, np.float32(-np.inf))
        weigh = masked_softmax if given.empty_is_zero else softmax
        np.copyto(out, product(weigh.kernel_for(cpu)(scores), value))


KERNELS[scaled_attention_op] = scaled_attention

"""Attention of one query per head over a key-value cache."""

from functools import cache
from typing import Any

import numpy as np

from burn.backend.cuda.dependent_launch import launch
from burn.backend.cuda.device import Cuda
from burn.backend.cuda.kernels.attention.cached_kernel import (
    KEYS,
    MASKS,
    NUMBERS,
    Form,
    source,
)
from burn.backend.cuda.kernels.elementwise.epilogues import TYPES
from burn.backend.cuda.libraries import are_settled, counters, settle
from burn.ops.decoding import cached_attention as cached_attention_op
from burn.ops.support import Array

#: The most heads that share a key, and shares of blocks that a block has.
_HEADS, _SHARES = 8, 2048
#: The first compute capability that has clusters of blocks, times ten.
_CLUSTERS = 90
#: The most numbers of the queries of blocks with more shared memory for each, and their
#: most queries.
_FEW_NUMBERS, _FEW_HEADS = 512, 4


@cached_attention_op.on(Cuda)
def cached_attention(
    query: Array,
    key: Array,
    value: Array,
    past_key: Array,
    past_value: Array,
    mask: Array | None = None,
    cos: Array | None = None,
    sin: Array | None = None,
    *,
    scale: float,
    empty_is_zero: bool = True,
) -> tuple[Array, Array]:
    """Compute :func:`burn.ops.decoding.cached_attention` without concatenation."""
    operands = (query, key, value, past_key, past_value, mask, cos, sin)
    compute: Any = (
        _by_kernel if _are_supported(*operands) else cached_attention_op.kernel
    )
    out, new_key = compute(*operands, scale=scale, empty_is_zero=empty_is_zero)
    return out, new_key


def _are_supported(query: Array, key: Array, value: Array, *others: Any) -> bool:
    past_key, past_value, mask, cos, sin = others
    (_, heads, _, size), groups = query.shape, key.shape[1]
    arrays = (query, key, value, past_key, past_value)
    if query.dtype not in TYPES or any(x.dtype != query.dtype for x in arrays):
        return False
    if key.shape != value.shape or heads % groups:
        return False
    width = TYPES[query.dtype][1]
    threads, shared = size // width, heads // groups
    if size % width or threads & (threads - 1) or not 2 <= threads <= 32:
        return False
    shares = (past_key.shape[2] // KEYS + 1) * shared
    if shared > min(_HEADS, NUMBERS // size) or shares > _SHARES:
        return False
    if any(x.strides[-1] != x.itemsize for x in (query, key, value)):
        return False
    if not past_key.flags.c_contiguous or not past_value.flags.c_contiguous:
        return False
    return _have_types(mask, cos, sin, size)


def _have_types(mask: Any, cos: Any, sin: Any, size: int) -> bool:
    if mask is not None and mask.dtype not in MASKS:
        return False
    if cos is None or sin is None:
        return True
    if cos.dtype != sin.dtype or cos.dtype not in TYPES:
        return False
    return bool(cos.shape == sin.shape == (cos.shape[0], 1, 1, size // 2))


def _by_kernel(
    query: Array,
    key: Array,
    value: Array,
    past_key: Array,
    past_value: Array,
    mask: Array | None,
    cos: Array | None,
    sin: Array | None,
    *,
    scale: float,
    empty_is_zero: bool,
) -> tuple[Array, Array]:
    import cupy

    (batch, heads, _, size), groups = query.shape, key.shape[1]
    past, per_group = past_key.shape[2], heads // groups
    splits = past // KEYS + 1  # the last one has the new key
    out = cupy.empty((batch, heads, 1, size), query.dtype)
    new_key = cupy.empty((batch, groups, 1, size), query.dtype)
    partial = cupy.empty((batch * groups * splits, per_group, size + 2), np.float32)
    mask_args, angles = _mask(mask, batch, heads, past), _angles(cos, sin)
    early = (past_key, past_value, mask, *angles[:2])
    form = Form(
        *(query.dtype, size, per_group, splits),
        *_blocks(query, groups * batch * splits, per_group),
        None if mask is None else mask.dtype,
        None if cos is None else cos.dtype,
        bool(mask_args[2]),
        is_mask_new=not are_settled(early),
    )
    args = (
        *(query, *_steps(query, 0, 1), key, *_steps(key, 0, 1)),
        *(value, *_steps(value, 0, 1), past_key, past_value),
        *(*mask_args, *angles, out, new_key, partial, counters(batch * groups)),
        *(np.int32(past), np.float32(scale), np.int32(empty_is_zero)),
    )
    grid = (splits * form.cluster, groups, batch)
    launch(_kernel(form), grid, form.threads, args)
    settle(early)
    return out, new_key


def _blocks(query: Array, clusters: int, heads: int) -> tuple[int, int]:
    """Return the blocks of each of ``clusters``, and their threads.

    Blocks of a cluster are small, so that they start beside those of the kernel before.
    Products of several rows leave registers for 128 threads.
    """
    device, is_small = query.device, heads * query.shape[-1] <= _FEW_NUMBERS
    has_clusters = int(device.compute_capability) >= _CLUSTERS
    if not has_clusters or 2 * clusters > device.attributes["MultiProcessorCount"]:
        return 1, 512 if is_small and heads <= _FEW_HEADS else 256
    if not is_small:
        return 4, 128
    return (4, 256) if query.shape[0] == 1 else (8, 128)


def _mask(mask: Array | None, batch: int, heads: int, past: int) -> tuple[Any, ...]:
    """Return the kernel's arguments for the mask: its address and strides."""
    import cupy

    if mask is None:
        return (np.uint64(0), *(np.int64(0),) * 3)
    mask = cupy.broadcast_to(mask, (batch, heads, 1, past + 1))
    return (mask, *_steps(mask, 0, 1, 3))


def _angles(cos: Array | None, sin: Array | None) -> tuple[Any, ...]:
    """Return the kernel's arguments for rotary embeddings, and the step of a batch."""
    import cupy

    if cos is None or sin is None:
        return (np.uint64(0), np.uint64(0), np.int64(0))
    step = cos.shape[-1] if cos.shape[0] > 1 else 0
    return (cupy.ascontiguousarray(cos), cupy.ascontiguousarray(sin), np.int64(step))


def _steps(array: Array, *axes: int) -> tuple[Any, ...]:
    """Return the strides in elements along some axes."""
    return tuple(np.int64(array.strides[axis] // array.itemsize) for axis in axes)


@cache
def _kernel(form: Form) -> Any:
    import cupy

    return cupy.RawKernel(source(form), "cached_attention")

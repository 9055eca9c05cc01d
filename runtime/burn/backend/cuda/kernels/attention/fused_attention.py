"""Attention: cuDNN's for float16 without a mask, a kernel on tensor cores for others.

Float32 that is not read as TensorFloat-32, and heads of other sizes, take two products
and a softmax.
"""

from functools import cache
from typing import Any

import numpy as np

from burn.backend.cuda.device import Cuda
from burn.backend.cuda.kernels.attention.tiled_attention import (
    is_tiled,
    tiled_attention,
)
from burn.backend.cuda.kernels.convolution.cudnn_graphs import GRAPHS
from burn.backend.cuda.kernels.elementwise.elements import dense
from burn.backend.cuda.kernels.products.products import are_multiplied, multiply
from burn.backend.cuda.libraries import cudnn, cudnn_handle, workspace
from burn.ops.fused_attention import scaled_attention as scaled_attention_op
from burn.ops.support import Array

_HALF = np.dtype(np.float16)
_FLOAT = np.dtype(np.float32)
_SOURCE = """
__device__ float over_block(float x, bool is_sum) {
    __shared__ float parts[32];
    for (int step = 16; step; step >>= 1) {
        const float y = __shfl_xor_sync(0xffffffffu, x, step);
        x = is_sum ? x + y : (x != x || x > y ? x : y);
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
    __syncthreads();
    x = parts[0];
    for (int i = 1; i < blockDim.x / 32; i++) {
        const float y = parts[i];
        x = is_sum ? x + y : (x != x || x > y ? x : y);
    }
    return x;
}
// The softmax of each row of [batch, heads, rows, columns], which is changed.
extern "C" __global__ void attention_weights(
    float* x, O* y, int x_step, int y_step, const M* mask, long long in_batch,
    long long in_head, long long in_row, long long in_column, int heads,
    int rows, int columns, bool causal, bool empty
) {
    const int row = blockIdx.x % rows;
    const long long head = blockIdx.x / rows % heads, batch = blockIdx.x / rows / heads;
    float* at = x + (long long)blockIdx.x * x_step;
    O* out = y + (long long)blockIdx.x * y_step;
    const M* seen = mask + batch * in_batch + head * in_head + row * in_row;
    float largest = __int_as_float(0xff800000);
    for (int i = threadIdx.x; i < columns; i += blockDim.x) {
        float v = at[i];
        if (causal && i > row) v = __int_as_float(0xff800000);
        if (MASK == 1 && !seen[i * in_column]) v = __int_as_float(0xff800000);
        if (MASK == 2) v += (float)seen[i * in_column];
        at[i] = v;
        largest = v != v || v > largest ? v : largest;
    }
    largest = over_block(largest, false);
    if (empty && isinf(largest) && largest < 0) largest = 0;
    float total = 0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) {
        const float v = expf(at[i] - largest);
        at[i] = v;
        total += v;
    }
    total = over_block(total, true);
    if (empty && total == 0) total = 1;
    const float factor = 1 / total;
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        out[i] = (O)(at[i] * factor);
}
"""


@scaled_attention_op.on(Cuda)
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
    """Compute :func:`burn.ops.fused_attention.scaled_attention` in up to 3 kernels."""
    static: Any = {"scale": scale, "causal": causal, "empty_is_zero": empty_is_zero}
    out = None
    if query.ndim == 4 and query.size and key.size and value.size:
        if query.dtype == _HALF and mask is None:
            out = _flash((query, key, value), scale, causal)
        if out is None:
            out = _tiled((query, key, value), mask, **static)
        if key.shape[1] != query.shape[1]:
            key, value = (_for_heads(x, query.shape[1]) for x in (key, value))
        if out is None and query.dtype in (_HALF, _FLOAT):
            out = _products((query, key, value), mask, **static)
    if out is None:
        out = scaled_attention_op.kernel(query, key, value, mask, **static)
    result: Array = out.astype(query.dtype, copy=False)
    return result


def _for_heads(x: Array, heads: int) -> Array:
    """Return ``x`` [batch, groups, columns, size] repeated to ``heads`` heads."""
    import cupy

    batch, groups, *matrix = x.shape
    shape = (batch, groups, heads // groups, *matrix)
    return dense(cupy.broadcast_to(x[:, :, None], shape)).reshape(batch, heads, *matrix)


def _empty_like_query(query: Array, size: int) -> Array:
    """Return an array [..., rows, size] in the memory order of ``query``.

    Where heads lie between rows and elements, joining them again is a view.
    """
    import cupy

    shape = (*query.shape[:-1], size)
    order = sorted(range(3), key=lambda axis: (-query.strides[axis], axis))
    dense = cupy.empty([shape[axis] for axis in (*order, 3)], query.dtype)
    return dense.transpose(*np.argsort([*order, 3]).tolist())


def _tiled(
    operands: tuple[Array, Array, Array], mask: Array | None, **static: Any
) -> Array | None:
    """The result by one kernel on tensor cores, None if it does not take them."""
    query = operands[0]
    if not is_tiled(*operands, static["scale"], Cuda(query.device.id).tf32):
        return None
    if mask is not None and mask.dtype not in (np.bool_, _HALF):
        mask = mask.astype(_FLOAT, copy=False)
    out = _empty_like_query(query, query.shape[-1])
    tiled_attention(operands, mask, out, **static)
    return out


def _products(
    operands: tuple[Array, Array, Array],
    mask: Array | None,
    *,
    scale: float,
    causal: bool,
    empty_is_zero: bool,
) -> Array | None:
    """Return attention by two matrix products, None if cuBLASLt has no algorithm.

    Scores are float32. Rows in memory are aligned, whatever their length is.
    """
    query, key, value = operands
    if not are_multiplied(query, key) or not are_multiplied(query, value):
        return None
    if mask is not None and mask.dtype not in (np.bool_, _FLOAT):
        mask = mask.astype(_FLOAT)
    shape = (*query.shape[:-1], key.shape[-2])
    scores = _aligned_rows(shape, _FLOAT)
    if multiply(query, key.swapaxes(-2, -1), scale=scale, out=scores) is None:
        return None
    weights = scores if query.dtype == _FLOAT else _aligned_rows(shape, query.dtype)
    _softmax(scores, weights, mask, causal, empty_is_zero)
    out = _empty_like_query(query, value.shape[-1])
    joined = multiply(weights, value, out=out)
    return multiply(weights, value) if joined is None else joined


def _aligned_rows(shape: tuple[int, ...], dtype: Any) -> Array:
    """Return a new array whose rows are aligned to 16 bytes."""
    import cupy

    each = 16 // dtype.itemsize
    *outer, columns = shape
    whole = cupy.empty((*outer, -(-columns // each) * each), dtype)
    return whole[..., :columns]


def _softmax(
    scores: Array, weights: Array, mask: Array | None, causal: bool, empty: bool
) -> None:
    """Write the softmax of ``scores`` [batch, heads, rows, columns] to ``weights``."""
    import cupy

    batch, heads, rows, columns = scores.shape
    strides, pointer = (0, 0, 0, 0), np.uint64(0)
    if mask is not None:
        mask = cupy.broadcast_to(mask, scores.shape)
        strides = tuple(stride // mask.itemsize for stride in mask.strides)
        pointer = mask
    kind = 0 if mask is None else 1 if mask.dtype == np.bool_ else 2
    threads = 32 if columns <= 128 else min(256, -(-columns // 32) * 32)
    steps = (
        scores.strides[2] // scores.itemsize,
        weights.strides[2] // weights.itemsize,
    )
    _weights_kernel(kind, weights.dtype)(
        (batch * heads * rows,),
        (threads,),
        (
            *(scores, weights, *map(np.int32, steps)),
            *(pointer, *map(np.int64, strides)),
            *map(np.int32, (heads, rows, columns)),
            *(np.bool_(causal), np.bool_(empty)),
        ),
    )


@cache
def _weights_kernel(kind: int, dtype: Any) -> Any:
    import cupy

    return cupy.RawKernel(weights_source(kind, dtype), "attention_weights")


def weights_source(kind: int, dtype: Any) -> str:
    """Return CUDA C of the softmax, for a kind of mask and a result ``dtype``."""
    mask = "float" if kind == 2 else "unsigned char"
    result = "__half" if dtype == _HALF else "float"
    header = "#include <cuda_fp16.h>\n" if dtype == _HALF else ""
    header += f"typedef {mask} M;\ntypedef {result} O;\n#define MASK {kind}\n"
    return header + _SOURCE


def _flash(operands: tuple[Array, ...], scale: float, causal: bool) -> Array | None:
    """Return attention by cuDNN, None if the operands are unsupported."""

    query, key, value = operands
    is_plain = key.dtype == value.dtype == _HALF and key.shape[1] == query.shape[1]
    if not is_plain or cudnn() is None:
        return None
    if causal and query.shape[-2] != key.shape[-2]:
        return None
    arrays = [_aligned(array) for array in operands]
    out = _empty_like_query(query, value.shape[-1])
    forms = tuple((array.shape, array.strides) for array in (*arrays, out))
    device = query.device.id
    key_ = (device, "attention", forms, scale, causal)
    graph = GRAPHS.get(key_, lambda: _built(device, forms, scale, causal))
    if graph is None:
        return None
    graph.run(*arrays, out)
    return out


def _aligned(array: Array) -> Array:
    """Return ``array``, or a dense copy if cuDNN cannot read it."""
    steps = [stride // array.itemsize for stride in array.strides]
    is_read = steps[-1] == 1 and all(step % 8 == 0 for step in steps[:-1])
    if is_read and array.data.ptr % 16 == 0:
        return array
    return array.copy() if array.flags.c_contiguous else dense(array)


class Flash:
    """A cuDNN graph of attention over operands of half precision.

    Raises:
        RuntimeError: cuDNN has no plan for it.
    """

    def __init__(self, device: int, forms: Any, scale: float, causal: bool) -> None:
        library = cudnn()
        types = library.data_type
        graph = library.pygraph(
            handle=cudnn_handle(device, 0),
            io_data_type=types.HALF,
            intermediate_data_type=types.FLOAT,
            compute_data_type=types.FLOAT,
        )
        *layouts, (shape, strides) = [
            (list(shape), [stride // 2 for stride in strides])
            for shape, strides in forms
        ]
        query, key, value = (
            graph.tensor(name=name, dim=dim, stride=stride)
            for name, (dim, stride) in zip("qkv", layouts, strict=True)
        )
        out, _ = graph.sdpa(
            q=query,
            k=key,
            v=value,
            is_inference=True,
            attn_scale=scale,
            use_causal_mask=causal,
        )
        out.set_output(True).set_dim(shape).set_stride(strides)
        graph.validate()
        graph.build_operation_graph()
        graph.create_execution_plans([library.heur_mode.A, library.heur_mode.FALLBACK])
        graph.check_support()
        graph.build_plans()
        self._graph, self._device = graph, device
        self._keys = tuple(each.get_uid() for each in (query, key, value, out))
        self._size = graph.get_workspace_size()

    def run(self, *arrays: Array) -> None:
        """Compute on CuPy's current stream; the last array takes the result."""
        import cupy

        stream = cupy.cuda.get_current_stream().ptr
        addresses = (array.data.ptr for array in arrays)
        self._graph.execute(
            dict(zip(self._keys, addresses, strict=True)),
            workspace(self._device, stream, self._size),
            handle=cudnn_handle(self._device, stream),
        )


def _built(device: int, forms: Any, scale: float, causal: bool) -> Flash | None:
    try:
        return Flash(device, forms, scale, causal)
    except (RuntimeError, cudnn().cudnnGraphNotSupportedError):
        return None

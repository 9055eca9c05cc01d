"""Epilogues of layers as one in-place kernel: activations, scales and a residual.

Kernels that compute the layer itself share the CUDA C of an epilogue.
"""

from functools import cache
from typing import Any

import numpy as np

from burn.backend.cuda.device import Cuda
from burn.backend.cuda.kernels.elementwise.activations import ERF, FORMULAS, TANH
from burn.backend.cuda.kernels.elementwise.elements import copy_in_order
from burn.backend.cuda.kernels.elementwise.elementwise import memory_order
from burn.backend.cuda.kernels.elementwise.printing import STORED
from burn.ops import fused
from burn.ops.fused import After, group_norm_then as group_norm_then_op
from burn.ops.norm import group_norm as group_norm_op
from burn.ops.support import Array

#: Element types: how CUDA C calls them, and how many are read at once.
TYPES = {np.dtype(np.float16): ("__half", 8), np.dtype(np.float32): ("float", 4)}
_STORED = {
    op.name: (formula, tuple(defaults)) for op, (formula, defaults) in FORMULAS.items()
}
#: The formula of ``v`` and the names of its numbers. Comparisons keep NaN.
_FORMULAS: dict[str, tuple[str, tuple[str, ...]]] = {
    **_STORED,
    "relu": ("v < 0 ? W(0) : v", ()),
    "clip": ("v < low ? low : v > high ? high : v", ("low", "high")),
    "elu": ("v < 0 ? alpha * expm1(v) : v", ("alpha",)),
    "leaky_relu": ("v < 0 ? alpha * v : v", ("alpha",)),
    "tanh": ("tanh(v)", ()),
    "gelu": (ERF, ()),
    "gelu_tanh": (TANH, ()),
    "scale": ("v * factor", ("factor",)),
    "add": ("v + r", ()),
}
_HEADER = """
typedef float W;
template <class N> __device__ N unit(N v) { return v > 1 ? N(1) : v < 0 ? N(0) : v; }
struct __align__(SIZE * sizeof(T)) Pack { T at[SIZE]; };
"""
_SOURCE = """
extern "C" __global__ void epilogue(Pack* x, const Pack* residual, long long count) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= count) return;
    Pack part = x[i], more;
    if (HAS_RESIDUAL) more = residual[i];
    #pragma unroll
    for (int k = 0; k < SIZE; k++) {
        W v = (W)part.at[k];
        const W r = HAS_RESIDUAL ? (W)more.at[k] : W(0);
        EPILOGUE
        part.at[k] = (T)v;
    }
    x[i] = part;
}
"""


def header(dtype: Any, size: int) -> str:
    """Return the types for a kernel that reads ``size`` elements at once."""
    element, _ = TYPES[dtype]
    include = "#include <cuda_fp16.h>\n" if dtype == np.float16 else ""
    return f"{include}typedef {element} T;\n#define SIZE {size}\n{_HEADER}"


def statements(after: After) -> str:
    """Return CUDA C that applies ``after`` to ``v``; ``r`` is the residual."""
    lines = []
    for name, *values in after:
        formula, names = _FORMULAS[name]
        declarations = "".join(
            f"const W {key} = {_literal(value)}; "
            for key, value in zip(names, values, strict=True)
        )
        lines.append(f"{{ {declarations}v = {formula}; }}")
    return " ".join(lines)


def _literal(value: float) -> str:
    """Return a CUDA C literal of a float32, including infinities."""
    bits = int(np.float32(value).view(np.uint32))
    return f"__uint_as_float({bits:#x}u)"


def has_residual(after: After) -> bool:
    """Return whether ``after`` adds a residual."""
    return ("add",) in after


@cache
def _kernel(dtype: Any, size: int, after: After) -> Any:
    import cupy

    code = _SOURCE.replace("EPILOGUE", statements(after))
    code = code.replace("HAS_RESIDUAL", "1" if has_residual(after) else "0")
    return cupy.RawKernel(header(dtype, size) + code, "epilogue")


def apply_after(out: Array, residual: Array | None, after: After) -> Array:
    """Return ``out``, modified in place by activations, scales and the residual."""
    if not after or not out.size:
        return out
    if out.dtype not in TYPES or not _is_dense(out):
        return fused.apply_after(out, residual, after)
    residual = _laid_out_like(residual, out) if has_residual(after) else None
    _, most = TYPES[out.dtype]
    pointers = [out.data.ptr, 0 if residual is None else residual.data.ptr]
    aligned = all(pointer % 16 == 0 for pointer in pointers)
    size = most if aligned and out.size % most == 0 else 1
    count = out.size // size
    other = np.uint64(0) if residual is None else residual
    kernel = _kernel(out.dtype, size, after)
    kernel((-(-count // 256),), (256,), (out, other, np.int64(count)))
    return out


def _is_dense(array: Array) -> bool:
    """Return whether ``array`` is dense, in any memory order."""
    step = array.itemsize
    for stride, extent in sorted(zip(array.strides, array.shape, strict=True)):
        if extent == 1:
            continue
        if stride != step:
            return False
        step *= extent
    return True


def _laid_out_like(array: Any, out: Array) -> Array:
    """Return ``array`` with the shape, dtype and strides of the dense ``out``."""
    import cupy

    if array.shape == out.shape and array.dtype == out.dtype:
        strides = zip(array.strides, out.strides, out.shape, strict=True)
        if all(a == b or extent == 1 for a, b, extent in strides):
            return array
    if array.dtype == out.dtype and array.dtype in STORED:
        order = memory_order(out.shape, out.strides, out.itemsize)
        array = cupy.broadcast_to(array, out.shape)
        return copy_in_order(array, order or tuple(range(out.ndim)))
    copy = cupy.empty_like(out)  # of the same strides
    copy[...] = array
    return copy


@group_norm_then_op.on(Cuda)
def group_norm_then(
    x: Array,
    weight: Array,
    bias: Array,
    residual: None = None,
    *,
    after: After,
    **static: Any,
) -> Array:
    """Compute :func:`burn.ops.fused.group_norm_then`, activations in one kernel."""
    out = group_norm_op.kernel_for(Cuda(x.device.id))(x, weight, bias, **static)
    return apply_after(out, residual, after)

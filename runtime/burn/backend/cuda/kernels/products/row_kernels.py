"""Form, norm and launch of the kernels for products of few rows."""

from math import gcd
from typing import Any, NamedTuple

import numpy as np

from burn.backend.cuda.dependent_launch import INSTRUCTIONS, launch
from burn.backend.cuda.kernels.elementwise import epilogues
from burn.backend.cuda.kernels.elementwise.epilogues import TYPES, has_residual
from burn.backend.cuda.libraries import pack_once
from burn.ops.decoding import Norm
from burn.ops.fused import After
from burn.ops.support import Array

#: Threads and warps of a block.
THREADS, WARPS = 256, 8
PROCESSORS = "MultiProcessorCount"
_VECTORS = {16: "int4", 8: "int2", 4: "int", 2: "short"}
#: CUDA C that writes normalized rows to shared memory, ``STRIDE`` vectors apart. Each
#: thread reads just the vectors of them that it has written. It has up to ``MOST_HELD``
#: vectors in registers.
NORMALIZE = r"""
__device__ float over_team(float v, float* parts) {
    #pragma unroll
    for (int step = 16; step; step >>= 1) v += __shfl_xor_sync(0xffffffffu, v, step);
    if (M > 1) return v;
    __syncthreads();
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = v;
    __syncthreads();
    v = 0;
    #pragma unroll
    for (int i = 0; i < 8; i++) v += parts[i];
    return v;
}
__device__ void normalize(
    const Pack* x, Pack* rows, const Pack* weight, const Pack* bias, float epsilon,
    float* parts
) {
    constexpr int TEAM = M > 1 ? 32 : 256, EACH = (PACKS + TEAM - 1) / TEAM;
    // Vectors and their weights stay in registers if there are few.
    constexpr bool HELD = EACH <= MOST_HELD;
    constexpr int COUNT = HELD ? EACH : 1, UNROLLED = HELD ? EACH : 4;
    const int first = threadIdx.x % TEAM;
    #define ALL _Pragma("unroll UNROLLED") \
        for (int e = 0, i = first; e < EACH && i < PACKS; e++, i += TEAM)
    #define AT(e) (HELD ? own[HELD ? (e) : 0] : row[first + (e) * TEAM])
    for (int m = threadIdx.x / TEAM; m < M; m += 256 / TEAM) {
        Pack* row = rows + m * STRIDE;
        Pack own[COUNT], scale[COUNT];
        float mean = 0, squares = 0;
        ALL {
            if (HELD) own[e] = x[m * PACKS + i];
            else row[i] = x[m * PACKS + i];
            if (HELD && weight) scale[e] = weight[i];
        }
        if (NORM == 1) {
            ALL {
                const Pack p = AT(e);
                #pragma unroll
                for (int k = 0; k < SIZE; k++) mean += (float)p.at[k];
            }
            mean = over_team(mean, parts) / (PACKS * SIZE);
        }
        ALL {
            const Pack p = AT(e);
            #pragma unroll
            for (int k = 0; k < SIZE; k++) {
                const float v = (float)p.at[k] - mean;
                squares += v * v;
            }
        }
        squares = over_team(squares, parts) / (PACKS * SIZE);
        const float factor = 1 / sqrtf(squares + epsilon);
        ALL {
            Pack p = AT(e), w, b;
            if (weight) w = HELD ? scale[HELD ? e : 0] : weight[i];
            if (bias) b = bias[i];
            #pragma unroll
            for (int k = 0; k < SIZE; k++) {
                float v = ((float)p.at[k] - mean) * factor;
                if (weight) v *= (float)w.at[k];
                if (bias) v += (float)b.at[k];
                p.at[k] = (T)v;
            }
            row[i] = p;
        }
    }
}
"""
#: Weights are read once: they need no place in the first cache.
FETCHED = """
__device__ Pack fetched(const Pack* at) {
    const VECTOR v = __ldcs((const VECTOR*)at);
    return *(const Pack*)&v;
}
"""


class Form(NamedTuple):
    """The constants of a compiled kernel: ``rows`` of ``inner`` to ``columns``."""

    dtype: Any
    rows: int
    columns: int
    inner: int
    norm: Norm
    gated: bool
    after: After

    @property
    def size(self) -> int:
        """The number of neighboring weights of a row that one instruction reads."""
        return gcd(self.inner, TYPES[self.dtype][1])

    @property
    def packs(self) -> int:
        """The number of vectors of ``size`` numbers in a row."""
        return self.inner // self.size


def source(form: Form, code: str, numbers: dict[str, int]) -> str:
    """Return CUDA C of a kernel, ``code`` after the definitions that it needs."""
    shared: dict[str, int | str] = {
        "M": form.rows,
        "N": form.columns,
        "PACKS": form.packs,
        "VECTOR": _VECTORS[form.size * form.dtype.itemsize],
        "GATE": int(form.gated),
        "NORM": ("", "layer", "rms").index(form.norm),
        "HAS_RESIDUAL": int(has_residual(form.after)),
        **numbers,
    }
    defines = "".join(f"#define {name} {value}\n" for name, value in shared.items())
    code = code.replace("AFTER", epilogues.statements(form.after))
    head = epilogues.header(form.dtype, form.size) + INSTRUCTIONS
    return head + defines + FETCHED + NORMALIZE + code


class RowKernel(NamedTuple):
    """A compiled kernel, its results of a row per block, and bytes of shared memory."""

    function: Any
    columns: int
    shared: int


def compile_kernel(code: str, columns: int, shared: int) -> RowKernel:
    """Compile ``code`` for blocks with ``shared`` bytes of dynamic shared memory."""
    import cupy

    function = cupy.RawKernel(code, "row_linear")
    if function.shared_size_bytes + shared > 48 << 10:
        function.max_dynamic_shared_size_bytes = shared
    return RowKernel(function, columns, shared)


def run(
    kernel: RowKernel,
    operands: tuple[Array | None, ...],
    form: Form,
    epsilon: float,
    blocks: int,
) -> Array:
    """Launch ``kernel`` with at most ``blocks`` blocks for each multiprocessor.

    ``operands`` are those of :func:`burn.ops.decoding.row_linear`.
    """
    import cupy

    x, weight, bias, residual, norm_weight, norm_bias, gate = operands
    assert x is not None and weight is not None
    weight = pack_once(weight, "rows", cupy.ascontiguousarray)
    gate = None if gate is None else pack_once(gate, "rows", cupy.ascontiguousarray)
    if not has_residual(form.after):
        residual = None
    arrays = [
        np.uint64(0) if a is None else cupy.ascontiguousarray(a)
        for a in (x, weight, gate, bias, residual, norm_weight, norm_bias)
    ]
    out = cupy.empty((*x.shape[:-1], form.columns), x.dtype)
    most = x.device.attributes[PROCESSORS] * blocks
    count = min(-(-form.columns // kernel.columns), most)
    args = (*arrays, out, np.float32(epsilon))
    launch(kernel.function, (count,), THREADS, args, shared=kernel.shared)
    return out

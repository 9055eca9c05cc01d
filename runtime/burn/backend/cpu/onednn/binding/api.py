"""Declarations of the part of oneDNN's C API that is used.

Handles are opaque. Functions return a status, and their first argument points to the
new handle. Names and numbers are those of the headers ``dnnl.h``, ``dnnl_types.h`` and
``dnnl_common_types.h`` of version 3.
"""

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import POINTER, c_float, c_int, c_int32, c_int64, c_size_t, c_uint, c_void_p
from typing import Any

from burn.backend.cpu.onednn.binding.library import Library

#: The largest rank, and the type that extents and strides are passed in.
MAX_RANK = 12
Dims = c_int64 * MAX_RANK


class ExecArg(ctypes.Structure):
    """An execution argument: its index and its memory."""

    _fields_ = (("arg", c_int), ("memory", c_void_p))


# Arguments of an execution.
SRC, SRC_1, DST, WEIGHTS, BIAS = 1, 2, 17, 33, 41
MEAN, VARIANCE, SCALE, SHIFT = 49, 50, 51, 52
WORKSPACE, SCRATCHPAD = 64, 80
# The further ones of a recurrent layer: first and last states, and weights.
SRC_2, DST_1, DST_2, WEIGHTS_1, WEIGHTS_2 = 3, 18, 19, 34, 35
# The operand of the post-operation with a number is so many times one more, plus SRC_1.
POST_OPERATION = 32768
DIFF_SRC, DIFF_DST, DIFF_WEIGHTS = 129, 145, 161
DIFF_BIAS, DIFF_SCALE, DIFF_SHIFT = 169, 255, 256
DIFF_SRC_1, DIFF_SRC_2, DIFF_DST_1, DIFF_DST_2 = 130, 131, 146, 147
DIFF_WEIGHTS_1 = 162
# Offsets of the argument indices of scales and zero points.
SCALES, ZERO_POINTS = 4096, 8192

# Kinds of propagation, and of algorithms.
INFERENCE, TRAINING, BACKWARD, BACKWARD_DATA = 96, 64, 128, 160
CONVOLUTION, DECONVOLUTION = 1, 10
POOL_MAX, POOL_WITH_PADDING, POOL_WITHOUT_PADDING = 0x1FF, 0x2FF, 0x3FF
SOFTMAX, LOG_SOFTMAX = 0x30000, 0x30001
BINARY_ADD, BINARY_MUL, BINARY_DIV, BINARY_SUB = 0x1FFF0, 0x1FFF1, 0x1FFF4, 0x1FFF5
BINARY_MAX, BINARY_MIN, BINARY_GT = 0x1FFF2, 0x1FFF3, 0x1FFF7
REDUCTION_SUM = 0x2FFF4
CLIP = 0x2F
SQRT, LINEAR = 0x25, 0x26
RELU, TANH, SOFT_RELU, LOGISTIC = 0x20, 0x21, 0x27, 0x29
ELU, HARD_SIGMOID = 0x22, 0x28
GELU_TANH, SWISH, GELU_ERF, MISH, HARD_SWISH = 0x2B, 0x2C, 0x31, 0x33, 0x34
USE_GLOBAL_STATS, USE_SCALE, USE_SHIFT, FUSE_RELU = 1, 2, 4, 8
FROM_LEFT, FROM_RIGHT, BOTH_WAYS = 1, 2, 3

# Query kinds of descriptors.
IMPLEMENTATION = 8
WEIGHTS_MD, DIFF_WEIGHTS_MD, WORKSPACE_MD, SCRATCHPAD_MD = 131, 132, 135, 136
# Any of them, by the number of the argument.
ARGUMENT_MD = 255

UNDEFINED, BFLOAT16, FLOAT32, INT32, INT8, UINT8 = 0, 2, 3, 4, 5, 6
ANY_LAYOUT = 1
USER_SCRATCHPAD = 1
CPU_ENGINE, IN_ORDER = 1, 1
# Bits of the set of instructions: products of bytes, and of bfloat16.
VNNI, AVX512_BF16 = 0x40 | 0x8, 0x80
AVX2, AVX512 = 0x4, 0x20

STATUS = {
    1: "out of memory",
    2: "invalid arguments",
    3: "unimplemented",
    4: "last implementation reached",
    5: "runtime error",
    6: "not required",
    7: "invalid graph",
}
LAST_IMPLEMENTATION = 4
#: The statuses for an unimplemented primitive.
NOT_OFFERED = frozenset({2, 3})

_H, _OUT = c_void_p, POINTER(c_void_p)
_DIMS = POINTER(c_int64)
_WINDOWS = (_DIMS, _DIMS, _DIMS, _DIMS)
_STATES = (_H, _H, _H, _H, _H, _H, _H)
#: The arguments of every function, all of which return a status.
SIGNATURES: dict[str, tuple[Any, ...]] = {
    "engine_create": (_OUT, c_int, c_size_t),
    "stream_create": (_OUT, _H, c_uint),
    "memory_desc_create_with_strides": (_OUT, c_int, _DIMS, c_int, _DIMS),
    "memory_desc_create_with_tag": (_OUT, c_int, _DIMS, c_int, c_int),
    "memory_desc_clone": (_OUT, _H),
    "memory_desc_destroy": (_H,),
    "memory_create": (_OUT, _H, _H, _H),
    "memory_set_data_handle": (_H, _H),
    "memory_destroy": (_H,),
    "primitive_attr_create": (_OUT,),
    "primitive_attr_set_scratchpad_mode": (_H, c_int),
    "primitive_attr_set_post_ops": (_H, _H),
    "primitive_attr_set_scales_mask": (_H, c_int, c_int),
    "primitive_attr_set_zero_points_mask": (_H, c_int, c_int),
    "primitive_attr_destroy": (_H,),
    "post_ops_create": (_OUT,),
    "post_ops_append_eltwise": (_H, c_int, c_float, c_float),
    "post_ops_append_binary": (_H, c_int, _H),
    "post_ops_append_sum": (_H, c_float, c_int32, c_int),
    "post_ops_destroy": (_H,),
    "primitive_desc_query": (_H, c_int, c_int, c_void_p),
    "primitive_desc_next_impl": (_H,),
    "primitive_desc_destroy": (_H,),
    "primitive_create": (_OUT, _H),
    "primitive_destroy": (_H,),
    "primitive_execute": (_H, _H, c_int, POINTER(ExecArg)),
    "reorder_primitive_desc_create": (_OUT, _H, _H, _H, _H, _H),
    "convolution_forward_primitive_desc_create": (
        *(_OUT, _H, c_int, c_int, _H, _H, _H, _H),
        *(*_WINDOWS, _H),
    ),
    "deconvolution_forward_primitive_desc_create": (
        *(_OUT, _H, c_int, c_int, _H, _H, _H, _H),
        *(*_WINDOWS, _H),
    ),
    "convolution_backward_weights_primitive_desc_create": (
        *(_OUT, _H, c_int, _H, _H, _H, _H),
        *(*_WINDOWS, _H, _H),
    ),
    "matmul_primitive_desc_create": (_OUT, _H, _H, _H, _H, _H, _H),
    "pooling_forward_primitive_desc_create": (
        *(_OUT, _H, c_int, c_int, _H, _H),
        *(_DIMS, *_WINDOWS, _H),
    ),
    "pooling_backward_primitive_desc_create": (
        *(_OUT, _H, c_int, _H, _H),
        *(_DIMS, *_WINDOWS, _H, _H),
    ),
    "softmax_forward_primitive_desc_create": (
        *(_OUT, _H, c_int, c_int, _H, _H, c_int, _H),
    ),
    "layer_normalization_forward_primitive_desc_create": (
        *(_OUT, _H, c_int, _H, _H, _H, c_float, c_uint, _H),
    ),
    "batch_normalization_forward_primitive_desc_create": (
        *(_OUT, _H, c_int, _H, _H, c_float, c_uint, _H),
    ),
    "layer_normalization_backward_primitive_desc_create": (
        *(_OUT, _H, c_int, _H, _H, _H, _H, c_float, c_uint, _H, _H),
    ),
    "batch_normalization_backward_primitive_desc_create": (
        *(_OUT, _H, c_int, _H, _H, _H, c_float, c_uint, _H, _H),
    ),
    "softmax_backward_primitive_desc_create": (
        *(_OUT, _H, c_int, _H, _H, _H, c_int, _H, _H),
    ),
    "eltwise_forward_primitive_desc_create": (
        *(_OUT, _H, c_int, c_int, _H, _H, c_float, c_float, _H),
    ),
    "prelu_forward_primitive_desc_create": (_OUT, _H, c_int, _H, _H, _H, _H),
    "eltwise_backward_primitive_desc_create": (
        *(_OUT, _H, c_int, _H, _H, _H, c_float, c_float, _H, _H),
    ),
    "binary_primitive_desc_create": (_OUT, _H, c_int, _H, _H, _H, _H),
    "reduction_primitive_desc_create": (
        *(_OUT, _H, c_int, _H, _H, c_float, c_float, _H),
    ),
    "lstm_forward_primitive_desc_create": (
        *(_OUT, _H, c_int, c_int, *_STATES, _H, _H, _H, _H, c_uint, _H),
    ),
    "gru_forward_primitive_desc_create": (
        *(_OUT, _H, c_int, c_int, *_STATES, c_uint, _H),
    ),
    "lbr_gru_forward_primitive_desc_create": (
        *(_OUT, _H, c_int, c_int, *_STATES, c_uint, _H),
    ),
    "vanilla_rnn_forward_primitive_desc_create": (
        *(_OUT, _H, c_int, c_int, c_int, *_STATES, c_uint, c_float, c_float, _H),
    ),
    "lstm_backward_primitive_desc_create": (
        *(_OUT, _H, c_int, c_int, *_STATES, _H, _H, _H, _H, *_STATES, _H, _H, _H, _H),
        *(c_uint, _H, _H),
    ),
    "gru_backward_primitive_desc_create": (
        *(_OUT, _H, c_int, c_int, *_STATES, *_STATES, c_uint, _H, _H),
    ),
    "lbr_gru_backward_primitive_desc_create": (
        *(_OUT, _H, c_int, c_int, *_STATES, *_STATES, c_uint, _H, _H),
    ),
    "vanilla_rnn_backward_primitive_desc_create": (
        *(_OUT, _H, c_int, c_int, c_int, *_STATES, *_STATES, c_uint),
        *(c_float, c_float, _H, _H),
    ),
}


class OneDnnError(RuntimeError):
    """A call of oneDNN failed; ``status`` is its return value."""

    def __init__(self, function: str, status: int) -> None:
        self.status = status
        meaning = STATUS.get(status, "unknown")
        super().__init__(f"oneDNN's {function} failed: {meaning} (status {status})")


class Api:
    """The declared functions of one library, with an engine and a stream for the CPU.

    The stream runs a primitive in the calling thread, so that it can be shared.
    """

    def __init__(self, library: Library) -> None:
        self.library = library
        self._functions = {
            name: _declare(library.calls, name, types)
            for name, types in SIGNATURES.items()
        }
        calls = library.calls
        calls.dnnl_memory_desc_get_size.argtypes = (_H,)
        calls.dnnl_memory_desc_get_size.restype = c_size_t
        calls.dnnl_memory_desc_equal.argtypes = (_H, _H)
        calls.dnnl_memory_desc_equal.restype = c_int
        calls.dnnl_primitive_desc_query_md.argtypes = (_H, c_int, c_int)
        calls.dnnl_primitive_desc_query_md.restype = c_void_p
        self.size_of = calls.dnnl_memory_desc_get_size
        self.same = calls.dnnl_memory_desc_equal
        self.query_md = calls.dnnl_primitive_desc_query_md
        # The two that every run calls, without a detour through `call`.
        self.execute = self._functions["primitive_execute"]
        # Functions that plans call repeatedly, with arguments that need no conversion.
        self.execute_bare = calls["dnnl_primitive_execute"]
        self.execute_bare.restype = c_int
        types = SIGNATURES["memory_set_data_handle"]
        self.point = _declare(library.quick, "memory_set_data_handle", types)
        self.set_threads, self.most_threads = _threads(library)
        self._limits = threading.local()
        # Destructors of handles, which may run after this module was unloaded.
        self.destroy_memory_desc = self._functions["memory_desc_destroy"]
        self.destroy_memory = self._functions["memory_destroy"]
        self.destroy_primitive_attr = self._functions["primitive_attr_destroy"]
        self.destroy_post_ops = self._functions["post_ops_destroy"]
        self.destroy_primitive_desc = self._functions["primitive_desc_destroy"]
        self.destroy_primitive = self._functions["primitive_destroy"]
        self.engine = self.create("engine_create", CPU_ENGINE, 0)
        self.stream = self.create("stream_create", self.engine, IN_ORDER)

    @property
    def threads(self) -> int:
        """The number of OpenMP threads that help the calling thread."""
        count: int = getattr(self._limits, "count", self.most_threads)
        return count

    @contextmanager
    def limited_threads(self, count: int) -> Iterator[None]:
        """Let at most ``count`` threads compute for the calling thread."""
        before = self.threads
        self._limits.count = min(count, before)
        self.restore_threads()
        try:
            yield
        finally:
            self._limits.count = before
            self.restore_threads()

    def restore_threads(self) -> None:
        """Set the number of threads of the engine to :attr:`threads`."""
        if self.set_threads is not None:
            self.set_threads(self.threads)

    def call(self, function: str, *args: Any) -> None:
        """Call ``function`` (without its prefix).

        Raises:
            OneDnnError: the call fails.
        """
        status = self._functions[function](*args)
        if status:
            raise OneDnnError(function, status)

    def create(self, function: str, *args: Any) -> int:
        """Return the handle that ``function`` creates; the caller must destroy it.

        Raises:
            OneDnnError: the call fails.
        """
        handle = c_void_p()
        self.call(function, ctypes.byref(handle), *args)
        assert handle.value is not None
        return handle.value

    def instructions(self) -> int:
        """Return the bits of the effective instruction set (ISA)."""
        calls = self.library.calls
        calls.dnnl_get_effective_cpu_isa.argtypes = ()
        return int(calls.dnnl_get_effective_cpu_isa())

    def name_of(self, descriptor: Any) -> str:
        """Return the implementation name of a primitive descriptor."""
        name = ctypes.c_char_p()
        where = ctypes.byref(name)
        self.call("primitive_desc_query", descriptor, IMPLEMENTATION, 0, where)
        return (name.value or b"").decode()


def _threads(library: Library) -> tuple[Any, int]:
    """Return the function that sets the thread count, and the current count.

    None if there is one thread, or the library does not use OpenMP.
    """
    try:
        count = library.quick.omp_get_max_threads
        choose = library.quick.omp_set_num_threads
    except AttributeError:
        return None, 1
    choose.argtypes, choose.restype = (c_int,), None
    threads = int(count())
    return (choose if threads > 1 else None), threads


def dims(values: Any) -> Any:
    """Return ``values`` as a ``dnnl_dims_t`` of extents, strides and the like."""
    return Dims(*values)


def _declare(library: ctypes.CDLL, name: str, types: tuple[Any, ...]) -> Any:
    function = getattr(library, f"dnnl_{name}")
    function.argtypes = types
    function.restype = c_int
    return function

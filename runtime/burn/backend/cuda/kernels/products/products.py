"""Matrix products with cuBLASLt."""

import threading
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from burn import dtypes
from burn.backend.cuda.choices import choice_of
from burn.backend.cuda.device import Cuda
from burn.backend.cuda.kernels.products.matrices import (
    ALIGNMENT,
    Matrix,
    describe_matrices,
    matrix_of,
)
from burn.backend.cuda.libraries import (
    WORKSPACE,
    cublas_lt,
    lt_handle,
    workspace,
)
from burn.backend.cuda.tuning import is_tuning, keeps_nan, quickest
from burn.ops.matmul import linear as linear_op, matmul as matmul_op
from burn.ops.support import PRODUCTS, Array

#: ``cudaDataType`` of the element types that are multiplied here.
_TYPES = {
    np.dtype(np.float32): 0,
    np.dtype(np.float64): 1,
    np.dtype(np.float16): 2,
    dtypes.bfloat16: 14,
}
# cublasComputeType_t
_FLOAT32, _TF32, _FLOAT64 = 68, 77, 70
#: Products of which a thread keeps the descriptors; the oldest go first.
_LIMIT = 1024
#: Bytes of scratch memory beyond those that an algorithm asks for: some epilogues of
#: cuBLASLt need 16.
_SLACK = 256
#: The number of algorithms measured for a product of a CUDA graph.
ALGORITHMS = 12


@dataclass(frozen=True)
class Extra:
    """The epilogue of a product: ``scale`` times it, plus addend, bias and activation.

    The addend has the shape of the product; the activation must exist in cuBLASLt.
    ``result`` describes the memory of the result if that is not dense; it is float32 if
    it is ``wide``, for any operand dtype.
    """

    biased: bool = False
    adds: bool = False
    activation: str = ""
    scale: float = 1.0
    result: Matrix | None = None
    wide: bool = False


class _Products(threading.local):
    """A cache of a thread's prepared products; descriptors are not thread-safe."""

    def __init__(self) -> None:
        self.prepared: dict[Any, Product | None] = {}


_PRODUCTS = _Products()


class Product:
    """``left @ right``, plus a bias for each row of the column-major result.

    The constructor asks cuBLASLt for an algorithm, or for several with a ``key``, under
    which :meth:`tune` keeps the fastest one.

    Raises:
        LookupError: there is none.
    """

    def __init__(
        self,
        device: int,
        dtype: Any,
        left: Matrix,
        right: Matrix,
        extra: Extra,
        key: Any = None,
    ) -> None:
        lt = cublas_lt()
        self._lt, self._handle, self._device = lt, lt_handle(device), device
        wide = dtype == np.float64
        scale = _TYPES[np.dtype(np.float64 if wide else np.float32)]
        compute = _FLOAT64 if wide else _FLOAT32
        if dtype == np.float32 and Cuda(device).tf32:
            compute = _TF32
        kind = np.float64 if wide else np.float32
        self._alpha = np.full(1, extra.scale, kind)
        self._beta = np.full(1, extra.adds, kind)
        self._operation = lt.matmul_desc_create(compute, scale)
        attribute = lt.MatmulDescAttribute
        self._set(attribute.TRANSA, np.int32(left.transposed))
        self._set(attribute.TRANSB, np.int32(right.transposed))
        self._bias: Any = None
        self._has_relu = extra.activation == "RELU"
        name = extra.activation + "_BIAS" * extra.biased if extra.activation else "BIAS"
        if extra.activation or extra.biased:
            self._set(attribute.EPILOGUE, np.int32(getattr(lt.Epilogue, name)))
        if extra.biased:
            self._bias = np.zeros(1, np.int64)
        rows = left.columns if left.transposed else left.rows
        columns = right.rows if right.transposed else right.columns
        count = max(left.count, right.count)
        result = extra.result or Matrix(
            rows, columns, rows, count, rows * columns, False, ALIGNMENT
        )
        self._left, self._right = (
            self._layout(matrix, count, dtype) for matrix in (left, right)
        )
        out_dtype = np.dtype(np.float32) if extra.wide else dtype
        self._result = self._layout(result, count, out_dtype)
        alignments = (left.alignment, right.alignment)
        self._key, self._number = key, None if key else 0
        self._algorithms = self._proposed(*alignments, ALGORITHMS if key else 1)
        self._algorithm = self._algorithms[0]

    def _set(self, attribute: int, value: Any) -> None:
        data = np.asarray(value)
        self._lt.matmul_desc_set_attribute(
            self._operation, attribute, data.ctypes.data, data.nbytes
        )

    def _layout(self, matrix: Matrix, count: int, dtype: Any) -> int:
        lt = self._lt
        layout: int = lt.matrix_layout_create(
            _TYPES[dtype], matrix.rows, matrix.columns, matrix.leading
        )
        if count > 1:
            attribute = lt.MatrixLayoutAttribute
            step = matrix.step if matrix.count > 1 else 0
            for name, value in (
                (attribute.BATCH_COUNT, np.asarray(count, np.int32)),
                (attribute.STRIDED_BATCH_OFFSET, np.asarray(step, np.int64)),
            ):
                lt.matrix_layout_set_attribute(
                    layout, name, value.ctypes.data, value.nbytes
                )
        return layout

    def tune(self, *operands: Any) -> bool:
        """Select the fastest of the proposed algorithms on these operands.

        The result is False if the epilogue is a ReLU, and no algorithm keeps NaN in it.
        """

        if self._number is None:
            count = len(self._algorithms)
            self._number = choice_of(
                self._device, self._key, count, lambda: self._fastest(operands)
            )
            self._algorithm = self._algorithms[self._number]
        return self._number >= 0

    def _fastest(self, operands: tuple[Any, ...]) -> int:
        """Return the number of the fastest algorithm, -1 if none keeps NaN."""
        left, right, *others = operands

        def run(number: int, right: Any = right) -> None:
            self._algorithm = self._algorithms[number]
            self.run(left, right, *others)

        numbers = list(range(len(self._algorithms)))
        if self._has_relu:
            out = operands[-1]
            numbers = [n for n in numbers if keeps_nan(partial(run, n), right, out)]
        if len(numbers) > 1:
            return quickest(numbers, run, self._device)
        return numbers[0] if numbers else -1

    def _proposed(self, left: int, right: int, most: int) -> list[Any]:
        """Return the first algorithms of cuBLASLt's heuristics."""
        lt = self._lt
        preference = lt.matmul_preference_create()
        attribute = lt.MatmulPreferenceAttribute
        for name, value in (
            (attribute.MAX_WORKSPACE_BYTES, np.asarray(WORKSPACE, np.uint64)),
            (attribute.MIN_ALIGNMENT_A_BYTES, np.asarray(left, np.uint32)),
            (attribute.MIN_ALIGNMENT_B_BYTES, np.asarray(right, np.uint32)),
        ):
            lt.matmul_preference_set_attribute(
                preference, name, value.ctypes.data, value.nbytes
            )
        results = np.zeros(most, lt.matmul_heuristic_result_dtype)
        count = np.zeros(1, np.int32)
        lt.matmul_algo_get_heuristic(
            *(self._handle, self._operation, self._left, self._right),
            *(self._result, self._result, preference, most),
            *(results.ctypes.data, count.ctypes.data),
        )
        lt.matmul_preference_destroy(preference)
        if not count[0]:
            raise LookupError("cuBLASLt has no algorithm for this product")
        return [results[n : n + 1].copy() for n in range(int(count[0]))]

    def run(
        self,
        left: Array,
        right: Array,
        bias: Array | None,
        addend: Array | None,
        out: Array,
    ) -> None:
        """Write the product to ``out``, on CuPy's current stream."""
        import cupy

        stream = cupy.cuda.get_current_stream().ptr
        if bias is not None:
            self._bias[0] = bias.data.ptr
            self._set(self._lt.MatmulDescAttribute.BIAS_POINTER, self._bias)
        address = out.data.ptr
        added = address if addend is None else addend.data.ptr
        size = int(self._algorithm["workspace_size"][0]) + _SLACK
        self._lt.matmul(
            *(self._handle, self._operation, self._alpha.ctypes.data),
            *(left.data.ptr, self._left, right.data.ptr, self._right),
            *(self._beta.ctypes.data, added, self._result, address, self._result),
            self._algorithm.ctypes.data,
            *(workspace(self._device, stream, size), size, stream),
        )


@linear_op.on(Cuda)
def linear(x: Array, weight: Array, bias: Array | None = None) -> Array:
    """Compute :func:`burn.ops.linear` with the bias in the product's epilogue."""
    if (
        are_multiplied(x, weight)
        and weight.ndim == 2
        and x.shape[-1:] == (weight.shape[1],)
    ):
        fused = bias if is_epilogue(bias, weight) else None
        out = multiply(x.reshape(-1, x.shape[-1]), weight.T, fused)
        if out is not None:
            if bias is not None and fused is None:
                out += bias
            return out.reshape(*x.shape[:-1], weight.shape[0])
    return linear_op.kernel(x, weight, bias)


def is_epilogue(bias: Any, weight: Array) -> bool:
    """Return whether cuBLASLt can add ``bias`` to the product."""
    if bias is None or bias.dtype != weight.dtype or weight.dtype == np.float64:
        return False
    return bool(bias.shape == weight.shape[:1] and bias.flags.c_contiguous)


@matmul_op.on(Cuda)
def matmul(x: Array, y: Array) -> Array:
    """Compute :func:`burn.ops.matmul` of floating-point matrices."""
    if are_multiplied(x, y) and min(x.ndim, y.ndim) > 1 and x.shape[-1] == y.shape[-2]:
        if x.ndim > 2 and y.ndim == 2:
            out = multiply(x.reshape(-1, x.shape[-1]), y)
            return _or_generic(out, x, y, (*x.shape[:-1], y.shape[1]))
        import cupy

        outer = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
        out = multiply(_broadcast(cupy, x, outer), _broadcast(cupy, y, outer))
        return _or_generic(out, x, y, (*outer, x.shape[-2], y.shape[-1]))
    return matmul_op.kernel(x, y)


PRODUCTS["cupy"] = matmul


def _or_generic(out: Array | None, x: Array, y: Array, shape: tuple[int, ...]) -> Array:
    return matmul_op.kernel(x, y) if out is None else out.reshape(shape)


def are_multiplied(x: Array, y: Array) -> bool:
    """Return whether cuBLASLt supports such operands."""
    if x.dtype != y.dtype or x.dtype not in _TYPES or not x.size or not y.size:
        return False
    return cublas_lt() is not None


def _broadcast(cupy: Any, array: Array, outer: tuple[int, ...]) -> Array:
    """Return ``array`` broadcast to the leading axes ``outer``, or as one matrix."""
    if all(extent == 1 for extent in array.shape[:-2]):
        return array.reshape(array.shape[-2:])
    if array.shape[:-2] != outer:
        array = cupy.broadcast_to(array, (*outer, *array.shape[-2:]))
    return array


def multiply(
    x: Array,
    y: Array,
    bias: Array | None = None,
    addend: Array | None = None,
    *,
    activation: str = "",
    scale: float = 1.0,
    out: Array | None = None,
) -> Array | None:
    """``x @ y`` row-major, None if cuBLASLt has no algorithm.

    Operands have equal leading axes or none. A row-major result is the transpose of a
    column-major one, hence ``y.T @ x.T``. ``addend`` is row-major and of the result's
    shape; ``out``, of their dtype or float32, takes the result if it is given.
    """
    import cupy

    device = cupy.cuda.runtime.getDevice()
    y, left = describe_matrices(y)
    x, right = describe_matrices(x)
    target = None if out is None else matrix_of(out)
    if out is not None and (target is None or target.transposed):
        return None
    extra = Extra(
        *(bias is not None, addend is not None, activation, scale, target),
        wide=out is not None and out.dtype != x.dtype,
    )
    product = _prepared_product(device, x.dtype, left, right, extra)
    if product is None:
        return None
    if out is None:
        outer = x.shape[:-2] or y.shape[:-2]
        out = cupy.empty((*outer, x.shape[-2], y.shape[-1]), x.dtype)
    if is_tuning(device) and not product.tune(y, x, bias, addend, out):
        return None
    product.run(y, x, bias, addend, out)
    return out


def _prepared_product(
    device: int, dtype: Any, left: Matrix, right: Matrix, extra: Extra
) -> Product | None:
    """Return this thread's prepared product, None if there is no algorithm."""
    key = ("product", Cuda(device).tf32, dtype, left, right, extra)
    tuned = is_tuning(device)
    plan_key, prepared = (device, tuned, key), _PRODUCTS.prepared
    if plan_key not in prepared:
        try:
            prepared[plan_key] = Product(
                *(device, dtype, left, right, extra), key if tuned else None
            )
        except LookupError:
            prepared[plan_key] = None
        if len(prepared) > _LIMIT:
            prepared.pop(next(iter(prepared)))
    return prepared[plan_key]

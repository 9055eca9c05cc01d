"""Result dtypes of operators by PyTorch's rules, since the code has none."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from burn.dtypes import DType
from burn_import.frontends.checkpoints.element_types import ELEMENTS
from burn_import.frontends.torch_export.builder import (
    BOOL,
    FLOAT32,
    FLOAT64,
    INT32,
    INT64,
    Value,
    kind_of,
    promoted_dtype,
)
from burn_import.frontends.torch_export.complex_as_real import complex_dtype, part_dtype
from burn_ir import UnsupportedModel

#: The dtype of each ``c10::ScalarType`` number, which the code uses.
_SCALARS = (
    *("uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"),
    *("complex32", "complex64", "complex128", "bool", "qint8", "quint8", "qint32"),
    *("bfloat16", "quint4x2", "quint2x4", "bits1x8", "bits2x4", "bits4x2", "bits8"),
    *("bits16", "float8_e5m2", "float8_e4m3fn", "float8_e5m2fnuz"),
    *("float8_e4m3fnuz", "uint16", "uint32", "uint64"),
)


def scalar_type(number: Any) -> DType:
    """Return the dtype of a ``ScalarType`` number.

    Raises:
        UnsupportedModel: the number is unknown, or NumPy has no such dtype.
    """
    is_listed = type(number) is int and 0 <= number < len(_SCALARS)
    element = ELEMENTS.get(_SCALARS[number]) if is_listed else None
    if element is None or element.dtype is None:
        raise UnsupportedModel(f"expected a dtype that is supported, got {number!r}")
    return element.dtype


def scalar_number(dtype: DType) -> int:
    """Return the ``ScalarType`` number of a dtype."""
    return _SCALARS.index(np.dtype(dtype).name)


_BOOLS = frozenset(
    {
        *("eq", "ne", "lt", "le", "gt", "ge", "any", "all", "isnan", "isinf"),
        *("isfinite", "isposinf", "isneginf", "signbit", "logical_and", "logical_or"),
        *("_is_all_true", "_is_any_true"),
        *("logical_xor", "logical_not", "isin", "isclose", "equal"),
        *("greater", "greater_equal", "less", "less_equal", "not_equal"),
    }
)
_INDICES = frozenset(
    {
        *("argmax", "argmin", "argsort", "nonzero", "count_nonzero", "bucketize"),
        *("searchsorted", "tril_indices", "triu_indices", "randperm"),
        "_shape_as_tensor",
        "torchvision.nms",
    }
)
#: Functions with floating results: integer operands become float32.
_FLOATS = frozenset(
    {
        *("sqrt", "rsqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p"),
        *("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh"),
        *("acosh", "atanh", "atan2", "erf", "erfc", "erfinv", "sigmoid", "reciprocal"),
        *(
            "softmax",
            "log_softmax",
            "logit",
            "lgamma",
            "digamma",
            "polygamma",
            "mvlgamma",
            "sinc",
            "true_divide",
        ),
        *("mean", "std", "var", "norm", "logsumexp", "div", "logaddexp", "deg2rad"),
        *("copysign", "ldexp", "special_xlog1py", "special_xlogy", "xlogy"),
        *("rad2deg", "special_ndtr", "special_ndtri", "special_entr", "i0"),
        *("special_i0", "special_i0e", "special_i1", "special_i1e", "cov", "corrcoef"),
        *("trapezoid", "trapz", "cumulative_trapezoid", "gradient"),
        *("pairwise_distance", "triplet_margin_loss", "margin_ranking_loss"),
        *("cosine_embedding_loss", "poisson_nll_loss", "native_dropout_backward"),
    }
)
_SUMS = frozenset(
    {"sum", "sum_to_size", "nansum", "prod", "cumsum", "cumprod", "trace", "vander"}
)
#: Operators that promote all their tensors and numbers to one dtype.
_PROMOTING = frozenset(
    {
        *("add", "sub", "mul", "div", "rsub", "true_divide", "floor_divide", "fmod"),
        *("remainder", "pow", "maximum", "minimum", "atan2", "hypot", "logaddexp"),
        *("bitwise_and", "bitwise_or", "bitwise_xor", "__and__", "__or__", "__xor__"),
        *("where", "max", "min", "fmax", "fmin", "copysign", "cat", "stack", "concat"),
        *(
            "dot",
            "einsum",
            "matmul",
            "addcmul",
            "addcdiv",
            "clamp",
            "clamp_min",
            "clamp_max",
        ),
        *("concatenate", "hstack", "vstack", "dstack", "xlogy", "lerp", "square"),
        *("gcd", "lcm", "logaddexp2", "special_xlogy", "special_xlog1py", "ldexp"),
        *("outer", "ger", "kron", "bitwise_left_shift", "bitwise_right_shift"),
        *("dist", "inner", "mse_loss", "smooth_l1_loss", "huber_loss"),
        *("cosine_similarity", "binary_cross_entropy_with_logits"),
    }
)
#: Arguments that do not take part in promotion.
_BESIDE = frozenset(
    {"condition", "dim", "keepdim", "alpha", "rounding_mode", "value", "path"}
)
_OPERANDS = (Value, int, float, complex)
_REAL_PARTS = frozenset(
    {
        *("view_as_real", "real", "imag", "abs", "absolute", "angle", "istft"),
        *("norm", "linalg_norm", "linalg_vector_norm"),
    }
)
_REAL_TRANSFORMS = ("fft_irfft", "fft_hfft", "_fft_c2r")
#: Operators that create complex numbers, other than Fourier transforms.
_JOINING = frozenset({"view_as_complex", "complex", "polar"})
_NO_TRANSFORMS = frozenset(
    {"fft_fftshift", "fft_ifftshift", "fft_fftfreq", "fft_rfftfreq"}
)
_FILLED = frozenset(
    {
        *("zeros", "ones", "empty", "rand", "randn", "eye", "linspace", "logspace"),
        *("hann_window", "hamming_window", "blackman_window", "bartlett_window"),
        *("kaiser_window", "scalar_tensor", "fft_fftfreq", "fft_rfftfreq"),
    }
)


def result_dtype(name: str, args: Mapping[str, Any]) -> DType:
    """Return the dtype of an operator's result; ``args`` are named arguments.

    Raises:
        UnsupportedModel: the arguments do not determine it.
    """
    operator = name if name.endswith("__") else name.rstrip("_")
    if name != operator:  # in-place variants
        return _first_value(args).dtype
    result = (
        _requested(args)
        or _operator_dtype(operator, args)
        or _complex_conversion_dtype(operator, args)
    )
    if result is not None:
        return result
    if operator in ("to", "type_as") and isinstance(args.get("other"), Value):
        return _first_value({"other": args["other"]}).dtype
    if operator in ("arange", "full", "tensor"):
        return _creation_dtype(operator, args)
    dtype = _operands(operator, args)
    if operator in _SUMS and kind_of(dtype) < kind_of(FLOAT32):
        return INT64
    is_whole = operator in _FLOATS and kind_of(dtype) < kind_of(FLOAT32)
    return FLOAT32 if is_whole and args.get("rounding_mode") is None else dtype


def _requested(args: Mapping[str, Any]) -> DType | None:
    """Return the dtype that a call requests explicitly, if it does."""
    into, dtype = args.get("out"), args.get("dtype", args.get("out_dtype"))
    if isinstance(into, Value):
        return into.dtype
    return dtype if isinstance(dtype, np.dtype) else None


def _operator_dtype(operator: str, args: Mapping[str, Any]) -> DType | None:
    """Return the result dtype that is independent of the operands, if there is one."""
    if operator in _BOOLS:
        return BOOL
    if operator in _INDICES:
        return INT32 if args.get("out_int32") is True else INT64
    if operator == "bincount":
        weights = args.get("weights")
        is_single = isinstance(weights, Value) and weights.dtype == FLOAT32
        return INT64 if weights is None else FLOAT32 if is_single else FLOAT64
    if operator == "float_power":
        return FLOAT64
    return FLOAT32 if operator in _FILLED else None


def _complex_conversion_dtype(operator: str, args: Mapping[str, Any]) -> DType | None:
    """Return the dtype of conversions between real and complex, if it is one."""
    is_transform = operator.startswith(("fft_", "_fft_r2c"))
    is_transform = is_transform and operator not in _NO_TRANSFORMS
    if operator == "stft":
        is_transform = args.get("return_complex") is True
    if operator in _REAL_PARTS or operator.startswith(_REAL_TRANSFORMS):
        dtype = part_dtype(_first_value(args).dtype)
        is_whole = operator != "abs" and kind_of(dtype) < kind_of(FLOAT32)
        return FLOAT32 if is_whole else dtype
    if is_transform or operator in _JOINING:
        return complex_dtype(_first_value(args).dtype)
    return part_dtype(_first_value(args).dtype) if operator == "stft" else None


def _creation_dtype(operator: str, args: Mapping[str, Any]) -> DType:
    """Return the dtype of a tensor created from numbers."""
    if operator == "arange":
        numbers = [args[key] for key in ("start", "end", "step") if key in args]
        dtype = promoted_dtype(numbers)
        return FLOAT32 if kind_of(dtype) > kind_of(INT64) else INT64
    value = args.get("fill_value", args.get("data"))
    while isinstance(value, list | tuple) and value:
        value = value[0]
    if isinstance(value, Value) and value.is_number:
        return FLOAT32 if kind_of(value.dtype) == kind_of(FLOAT32) else value.dtype
    if value is None or isinstance(value, list | tuple | str):
        return FLOAT32
    return promoted_dtype([value])


def _operands(operator: str, args: Mapping[str, Any]) -> DType:
    if operator not in _PROMOTING:
        return _first_value(args).dtype
    operands: list[Any] = []
    for name, value in args.items():
        values = value if isinstance(value, list | tuple) else [value]
        if name not in _BESIDE:
            operands += [x for x in values if isinstance(x, _OPERANDS)]
    if not operands:
        raise UnsupportedModel("expected operands, got none")
    return promoted_dtype(operands)


def _first_value(args: Mapping[str, Any]) -> Value:
    for value in args.values():
        for item in value if isinstance(value, list | tuple) else [value]:
            if isinstance(item, Value):
                return item
    raise UnsupportedModel("expected a tensor among the arguments, got none")


def result_types(
    name: str, args: Mapping[str, Any], count: int | None = None
) -> list[Value]:
    """Return the results of an operator before it is written, with dtypes.

    Extents are included where rules need them. A list of tensors is unpacked to
    ``count`` names, None if unknown.

    Raises:
        UnsupportedModel: the arguments do not determine the dtype or the number of
            results.
    """
    if name == "where" and "self" not in args:  # the indices of nonzero elements
        return [Value("", INT64)] * args["condition"].rank
    first = Value("", result_dtype(name, args))
    if name == "gradient":
        return [first] * max(_first_value(args).rank, 1)
    if name in _PARTS:
        x = _first_value(args)
        return [Value("", x.dtype, dims) for dims in _PARTS[name](x, args, count)]
    if name in ("meshgrid", "broadcast_tensors"):
        return [first] * len(args["tensors"])
    return [first, Value("", INT64), first, first]


Extents = Sequence[Any]
#: The extents of each part of a split tensor.
Parts = list[tuple[Any, ...]]


def _axis(x: Value, args: Mapping[str, Any]) -> tuple[int, Any]:
    if x.dims is None or not x.dims:
        raise UnsupportedModel("expected a known rank of a tensor that is split")
    axis = x.axis(int(args.get("dim", 0)))
    return axis, x.dims[axis]


def _split_extent(x: Value, axis: int, sizes: Extents) -> Parts:
    dims = x.dims or ()
    return [(*dims[:axis], size, *dims[axis + 1 :]) for size in sizes]


def _even(x: Value, axis: int, extent: int, size: int) -> Parts:
    starts = range(0, max(extent, 1), max(size, 1))
    if len(starts) > MOST_PARTS:
        raise UnsupportedModel(f"a tensor is split into {len(starts)} parts")
    return _split_extent(x, axis, [min(size, extent - start) for start in starts])


MOST_PARTS = 4096


def _split(x: Value, args: Mapping[str, Any], count: int | None = None) -> Parts:
    axis, extent = _axis(x, args)
    size = args.get("split_size", args.get("split_sizes"))
    if isinstance(size, list | tuple):
        return _split_extent(x, axis, size)
    if not isinstance(extent, int) or not isinstance(size, int):
        raise UnsupportedModel(
            f"a split into parts of {size} along a symbolic extent ({extent})"
        )
    return _even(x, axis, extent, size)


def _chunk(x: Value, args: Mapping[str, Any], count: int | None = None) -> Parts:
    axis, extent = _axis(x, args)
    chunks = _count(args["chunks"])
    if not isinstance(extent, int):
        return _split_extent(x, axis, [None] * chunks)
    return _even(x, axis, extent, -(-extent // max(chunks, 1)))


def _unbind(x: Value, args: Mapping[str, Any], count: int | None = None) -> Parts:
    axis, extent = _axis(x, args)
    if not isinstance(extent, int):
        extent = extent if count is None else count
    if not isinstance(extent, int) or extent > MOST_PARTS:
        raise UnsupportedModel(f"an unbind along an axis of extent {extent}")
    dims = x.dims or ()
    return [(*dims[:axis], *dims[axis + 1 :])] * extent


def _tensor_split(x: Value, args: Mapping[str, Any], count: int | None = None) -> Parts:
    axis, extent = _axis(x, args)
    sections, indices = args.get("sections"), args.get("indices")
    if not isinstance(extent, int):
        count = _count(sections) if indices is None else len(indices) + 1
        return _split_extent(x, axis, [None] * count)
    if indices is None:
        whole, more = divmod(extent, max(_count(sections), 1))
        sizes = [whole + (n < more) for n in range(_count(sections))]
        return _split_extent(x, axis, sizes)
    ends = [min(e + extent if e < 0 else e, extent) for e in indices]
    pairs = zip([0, *ends], [*ends, extent], strict=True)
    return _split_extent(x, axis, [max(end - start, 0) for start, end in pairs])


def _count(count: Any) -> int:
    if not isinstance(count, int) or not 0 < count <= MOST_PARTS:
        raise UnsupportedModel(f"a tensor is split into {count} parts")
    return count


def _split_along(axis: int) -> Callable[..., Parts]:
    def parts(x: Value, args: Mapping[str, Any], count: int | None = None) -> Parts:
        dim = 0 if axis == 1 and x.rank == 1 else axis
        return _tensor_split(x, {**args, "dim": dim})

    return parts


_PARTS: Mapping[str, Callable[..., Parts]] = {
    "split": _split,
    "tensor_split": _tensor_split,
    "hsplit": _split_along(1),
    "vsplit": _split_along(0),
    "dsplit": _split_along(2),
    "unsafe_split": _split,
    "unsafe_chunk": _chunk,
    "split_with_sizes": _split,
    "chunk": _chunk,
    "unbind": _unbind,
    "unbind_copy": _unbind,
}

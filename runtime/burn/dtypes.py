"""Dtypes of tensors, and the type promotion table.

Every dtype is a NumPy dtype object; types that NumPy lacks come from ml_dtypes. Strings
are stored as Python objects (``string`` is the object dtype), as in NumPy.
"""

from functools import cache
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

DType = np.dtype[Any]

bool_ = np.dtype(np.bool_)
int8, int16, int32, int64 = (np.dtype(f"int{n}") for n in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (np.dtype(f"uint{n}") for n in (8, 16, 32, 64))
int2, int4 = np.dtype(ml_dtypes.int2), np.dtype(ml_dtypes.int4)
uint2, uint4 = np.dtype(ml_dtypes.uint2), np.dtype(ml_dtypes.uint4)
float16, float32, float64 = (np.dtype(f"float{n}") for n in (16, 32, 64))
bfloat16 = np.dtype(ml_dtypes.bfloat16)
float8_e4m3fn = np.dtype(ml_dtypes.float8_e4m3fn)
float8_e4m3fnuz = np.dtype(ml_dtypes.float8_e4m3fnuz)
float8_e5m2 = np.dtype(ml_dtypes.float8_e5m2)
float8_e5m2fnuz = np.dtype(ml_dtypes.float8_e5m2fnuz)
float8_e8m0fnu = np.dtype(ml_dtypes.float8_e8m0fnu)
float4_e2m1fn = np.dtype(ml_dtypes.float4_e2m1fn)
complex64, complex128 = np.dtype("complex64"), np.dtype("complex128")
string = np.dtype(object)

SIGNED = (int2, int4, int8, int16, int32, int64)
UNSIGNED = (uint2, uint4, uint8, uint16, uint32, uint64)
FLOAT8 = (
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float8_e8m0fnu,
    float4_e2m1fn,
)
FLOATS = (*FLOAT8, float16, bfloat16, float32, float64)
#: Float types whose sums and products are accumulated in float32.
HALVES = frozenset((*FLOAT8, float16, bfloat16))
COMPLEX = (complex64, complex128)
#: Sets are searched by hash: tuples compare with each dtype of ml_dtypes.
FLOAT_SET = frozenset(FLOATS)
_INTEGERS = frozenset((*SIGNED, *UNSIGNED))

_NAMES: dict[DType, str] = {bool_: "bool", string: "string"}


def name_of(dtype: DType) -> str:
    """Return the name of a dtype in ``burn``: ``"float32"`` or ``"string"``."""
    return _NAMES.get(dtype, dtype.name)


def is_float(dtype: DType) -> bool:
    """Return whether a dtype is floating, including those of ml_dtypes."""
    return dtype in FLOAT_SET


def is_integer(dtype: DType) -> bool:
    """Return whether a dtype is a signed or unsigned integer; False for bool."""
    return dtype in _INTEGERS


def is_complex(dtype: DType) -> bool:
    """Return whether a dtype is complex64 or complex128."""
    return dtype in COMPLEX


def integer_limits(dtype: DType) -> Any:
    """Return an object with the ``min`` and ``max`` of an integer dtype."""
    return ml_dtypes.iinfo(dtype)  # type: ignore[no-untyped-call]


def step(dtype: DType) -> float:
    """Return the machine epsilon: the distance from 1 to the next larger number."""
    return float(ml_dtypes.finfo(dtype).eps)  # type: ignore[no-untyped-call]


def largest(dtype: DType) -> float:
    """Return the largest finite number of a floating dtype."""
    return float(ml_dtypes.finfo(dtype).max)  # type: ignore[no-untyped-call]


class FloatLimits(NamedTuple):
    """The finite limits of a floating dtype, and its machine epsilon."""

    min: float
    max: float
    eps: float


def finfo(dtype: DType) -> FloatLimits:
    """Return the limits of a floating dtype: ``burn.finfo(burn.float32).min``.

    Raises:
        ValueError: ``dtype`` is not floating.
    """
    if not is_float(dtype):
        raise ValueError(f"expected a floating dtype, got {name_of(dtype)}")
    top = largest(dtype)
    return FloatLimits(-top, top, step(dtype))


@cache
def promote(a: DType, b: DType) -> DType:
    """Return the dtype of an operation on ``a`` and ``b``, as PyTorch promotes them.

    A float with an integer keeps the float dtype (float32 + int64 is float32), two
    different half types become float32, an unsigned with a signed integer widens.
    """
    if a == b:
        return a
    for family, join in ((COMPLEX, _join_complex), (FLOATS, _join_floats)):
        if a in family and b in family:
            return join(a, b)
        if a in family or b in family:
            return _absorb(a, b, family)
    if bool_ in (a, b):
        return b if a == bool_ else a
    if string in (a, b):
        raise TypeError(f"no common dtype for {name_of(a)} and {name_of(b)}")
    return _join_integers(a, b)


def _absorb(a: DType, b: DType, family: tuple[DType, ...]) -> DType:
    strong, weak = (a, b) if a in family else (b, a)
    if weak == string:
        raise TypeError(f"no common dtype for {name_of(a)} and {name_of(b)}")
    if strong == complex64 and weak == float64:
        return complex128
    return strong


def _join_complex(a: DType, b: DType) -> DType:
    return complex128


def _join_floats(a: DType, b: DType) -> DType:
    if a.itemsize == b.itemsize:
        return float32
    return a if a.itemsize > b.itemsize else b


def _join_integers(a: DType, b: DType) -> DType:
    for family in (SIGNED, UNSIGNED):
        if a in family and b in family:
            return family[max(family.index(a), family.index(b))]
    signed, unsigned = (a, b) if a in SIGNED else (b, a)
    rank = max(SIGNED.index(signed), UNSIGNED.index(unsigned) + 1)
    return SIGNED[min(rank, len(SIGNED) - 1)]


def promote_scalar(dtype: DType, value: complex) -> DType:
    """Return the dtype of an operation on ``dtype`` and a weakly typed Python number.

    The number never widens a tensor of its own kind or a higher one: bool < int < float
    < complex. An integer tensor with a Python float becomes float32.
    """
    if isinstance(value, bool) or dtype in COMPLEX or dtype == string:
        return dtype
    if isinstance(value, int):
        return int64 if dtype == bool_ else dtype
    if isinstance(value, float):
        return dtype if dtype in FLOATS else float32
    return complex128 if dtype == float64 else complex64


def default_dtype(value: complex) -> DType:
    """Return the dtype of a tensor created from a Python number."""
    if isinstance(value, bool):
        return bool_
    if isinstance(value, int):
        return int64
    return float32 if isinstance(value, float) else complex64

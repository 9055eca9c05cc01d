"""NumPy's functions in LLVM IR.

Arithmetic is rounded like NumPy's: operations are not contracted.
"""

import struct
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np

_FLOAT32, _FLOAT64, _BOOL = map(np.dtype, (np.float32, np.float64, np.bool_))
_INT32, _INT64 = map(np.dtype, (np.int32, np.int64))
#: The type of each dtype among values. In memory a bool is a byte.
TYPES = {_FLOAT32: "float", _FLOAT64: "double", _BOOL: "i1", _INT32: "i32"}
TYPES[_INT64] = "i64"
_NUMBERS = (_FLOAT32, _FLOAT64, _INT32, _INT64)
FLOATS = (_FLOAT32, _FLOAT64)
#: The supported reductions and their dtypes.
REDUCTIONS = dict.fromkeys(("add", "maximum", "minimum"), _NUMBERS)


class InstructionWriter(Protocol):
    """The interface for appending instructions."""

    def do(self, text: str) -> str:
        """Append an instruction and return the name of its result."""


#: Writes a function of operands of one dtype.
Rule: TypeAlias = Callable[[InstructionWriter, np.dtype[Any], tuple[str, ...]], str]


def is_known(dtype: np.dtype[Any]) -> bool:
    """Return whether kernels support this dtype."""
    return dtype in TYPES


def types_of(function: np.ufunc, args: Any) -> tuple[np.dtype[Any], ...] | None:
    """Return the operand dtypes of a function, None if no kernel supports it."""
    rule = _FUNCTIONS.get(function.__name__)
    given = [getattr(arg, "dtype", type(arg)) for arg in args]
    if rule is None or not all(
        is_known(kind) if isinstance(kind, np.dtype) else kind in (bool, int, float)
        for kind in given
    ):
        return None
    given = [_BOOL if kind is bool else kind for kind in given]  # NumPy refuses bool
    dtypes: tuple[np.dtype[Any], ...] = function.resolve_dtypes((*given, None))
    types = dtypes[: function.nin]
    return types if len(set(types)) == 1 and types[0] in rule[0] else None


def result_of(name: str, types: tuple[np.dtype[Any], ...]) -> np.dtype[Any]:
    """Return the dtype of the result of a function."""
    return _BOOL if name in _ASKING else types[-1]


def cost_of(name: str) -> int:
    """Return the cost of a function, in additions."""
    return _COSTS.get(name, 1)


def write(
    name: str, to: InstructionWriter, dtype: np.dtype[Any], args: tuple[str, ...]
) -> str:
    """Emit a function of operands of ``dtype`` and return the name of the result."""
    return _FUNCTIONS[name][1](to, dtype, args)


def constant(value: float, dtype: np.dtype[Any]) -> str:
    """Return a number as an exact LLVM literal."""
    if dtype in FLOATS:
        exact = float(dtype.type(value))
        return f"0x{struct.unpack('>Q', struct.pack('>d', exact))[0]:016X}"
    return ("true" if value else "false") if dtype == _BOOL else str(int(value))


def converted(to: InstructionWriter, value: str, given: Any, wanted: Any) -> str:
    """Return ``value`` converted to another dtype.

    Raises:
        KeyError: the conversion is not supported; NumPy's of floats to integers
            depends on the processor for values out of range.
    """
    if given == wanted:
        return value
    source, target = TYPES[given], TYPES[wanted]
    if wanted == _BOOL:
        nothing = constant(0, given)
        compare = "fcmp une" if given in FLOATS else "icmp ne"
        return to.do(f"{compare} {source} {value}, {nothing}")
    return to.do(f"{_CONVERSIONS[source, target]} {source} {value} to {target}")


def can_convert(given: np.dtype[Any], wanted: np.dtype[Any]) -> bool:
    """Return whether :func:`converted` supports the conversion."""
    pair = (TYPES.get(given, ""), TYPES.get(wanted, ""))
    if not all(pair):
        return False
    return given == wanted or wanted == _BOOL or pair in _CONVERSIONS


_CONVERSIONS = {("float", "double"): "fpext", ("double", "float"): "fptrunc"}
_CONVERSIONS |= {("i1", kind): "zext" for kind in ("i32", "i64")}
_CONVERSIONS |= {("i1", kind): "uitofp" for kind in ("float", "double")}
_CONVERSIONS |= {(i, f): "sitofp" for i in ("i32", "i64") for f in ("float", "double")}
_CONVERSIONS |= {("i32", "i64"): "sext", ("i64", "i32"): "trunc"}


def _binary(of_floats: str, of_integers: str = "") -> Rule:
    def rule(to: InstructionWriter, dtype: np.dtype[Any], args: tuple[str, ...]) -> str:
        name = of_floats if dtype in FLOATS else of_integers
        return to.do(f"{name} {TYPES[dtype]} {args[0]}, {args[1]}")

    return rule


def _intrinsic(of_floats: str, of_integers: str = "", more: str = "") -> Rule:
    def rule(to: InstructionWriter, dtype: np.dtype[Any], args: tuple[str, ...]) -> str:
        is_float, kind = dtype in FLOATS, TYPES[dtype]
        bits = f"f{8 * dtype.itemsize}" if is_float else kind
        name = f"@llvm.{of_floats if is_float else of_integers}.{bits}"
        given = ", ".join(f"{kind} {arg}" for arg in args)
        return to.do(f"call {kind} {name}({given}{'' if is_float else more})")

    return rule


def _negative(
    to: InstructionWriter, dtype: np.dtype[Any], args: tuple[str, ...]
) -> str:
    if dtype in FLOATS:
        return to.do(f"fneg {TYPES[dtype]} {args[0]}")
    return to.do(f"sub {TYPES[dtype]} 0, {args[0]}")


def _square(to: InstructionWriter, dtype: np.dtype[Any], args: tuple[str, ...]) -> str:
    return _binary("fmul", "mul")(to, dtype, args * 2)


def _reciprocal(
    to: InstructionWriter, dtype: np.dtype[Any], args: tuple[str, ...]
) -> str:
    return _binary("fdiv")(to, dtype, (constant(1, dtype), *args))


def _logical(name: str) -> Rule:
    def rule(to: InstructionWriter, dtype: np.dtype[Any], args: tuple[str, ...]) -> str:
        one, *other = [converted(to, arg, dtype, _BOOL) for arg in args]
        return to.do(f"{name} i1 {one}, {other[0] if other else 'true'}")

    return rule


# exp(x) = 2**n * exp(r) with r = x - n log(2) in two parts, the first of few bits, and
# a polynomial for exp(r). The constants are Cephes' of single precision.
_LOG2_E = 1.44269504088896341
_LOG_2 = (0.693359375, -2.12194440e-4)
_EXP = (
    *(1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3),
    *(4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1),
)
# Added to a number of less than 22 bits it leaves the nearest integer in the low bits.
_ROUNDING = 12582912.0
# Beyond these exp is 0 or infinite.
_LEAST, _MOST = -104.0, 89.0


def _exp(to: InstructionWriter, dtype: np.dtype[Any], args: tuple[str, ...]) -> str:
    def number(value: float) -> str:
        return constant(value, _FLOAT32)

    def two(name: str, a: str, b: str) -> str:
        return to.do(f"{name} float {a}, {b}")

    def fused(a: str, b: str, c: str) -> str:
        given = f"float {a}, float {b}, float {c}"
        return to.do(f"call float @llvm.fma.f32({given})")

    x = _bounded(to, args[0], _LEAST, _MOST)
    shifted = two("fadd", two("fmul", x, number(_LOG2_E)), number(_ROUNDING))
    n = two("fsub", shifted, number(_ROUNDING))
    r = fused(n, number(-_LOG_2[0]), x)
    r = fused(n, number(-_LOG_2[1]), r)
    y = number(_EXP[0])
    for factor in _EXP[1:]:
        y = fused(y, r, number(factor))
    y = two("fadd", fused(y, two("fmul", r, r), r), number(1))
    # In two factors, since 2**n alone may be too small or too large.
    bits = to.do(f"bitcast float {shifted} to i32")
    whole = to.do(f"sub i32 {bits}, {_bits_of(_ROUNDING)}")
    half = to.do(f"ashr i32 {whole}, 1")
    for part in (half, to.do(f"sub i32 {whole}, {half}")):
        power = to.do(f"shl i32 {to.do(f'add i32 {part}, 127')}, 23")
        y = two("fmul", y, to.do(f"bitcast i32 {power} to float"))
    return y


def _bounded(to: InstructionWriter, x: str, low: float, high: float) -> str:
    """Return a float within bounds, NaN if it is NaN: an instruction for each bound."""
    for compare, limit in (("ogt", low), ("olt", high)):
        bound = constant(limit, _FLOAT32)
        is_beyond = to.do(f"fcmp {compare} float {bound}, {x}")
        x = to.do(f"select i1 {is_beyond}, float {bound}, float {x}")
    return x


#: The name of ``exp(x) + 1``.
EXP_PLUS_ONE = "exp plus one"
# The polynomial of degree 3 for (exp(r) - 1 - r) / (r * r) with the least maximal
# error: 1.1e-7 of exp(r), where that is between the roots of 1/2 and 2.
_EXP_SHORT = (8.31248e-3, 4.189055e-2, 0.16667116, 0.49999229)
#: Between these 2**n is a normal number. Below them exp(x) + 1 is rounded to 1.
EXP_BOUNDS = (-86.0, 88.0)


def _exp_plus_one(
    to: InstructionWriter, dtype: np.dtype[Any], args: tuple[str, ...]
) -> str:
    """Write ``exp(x) + 1`` in two thirds of the instructions of ``exp``.

    It is the largest number of ``2**n`` rather than infinity for large ``x``.
    """

    power = exp_of_bounded(to, _bounded(to, args[0], *EXP_BOUNDS))
    return to.do(f"fadd float {power}, {constant(1, _FLOAT32)}")


def bounded_exp(to: InstructionWriter, x: str, lanes: int) -> str:
    """Write ``exp(x)`` of ``lanes`` floats, the one of a bound beyond EXP_BOUNDS."""
    kind = f"<{lanes} x float>"
    for compare, limit in zip(("ogt", "olt"), EXP_BOUNDS, strict=True):
        bound = f"splat (float {constant(limit, _FLOAT32)})"
        is_beyond = to.do(f"fcmp {compare} {kind} {bound}, {x}")
        x = to.do(f"select <{lanes} x i1> {is_beyond}, {kind} {bound}, {kind} {x}")
    return exp_of_bounded(to, x, lanes)


def exp_of_bounded(to: InstructionWriter, x: str, lanes: int = 0) -> str:
    """Write ``exp(x)`` of a float, or of ``lanes`` floats, within EXP_BOUNDS or NaN."""
    kind = f"<{lanes} x float>" if lanes else "float"
    whole = kind.replace("float", "i32")
    suffix = f"v{lanes}f32" if lanes else "f32"

    def number(value: float | str) -> str:
        if isinstance(value, str):
            return value
        scalar = constant(value, _FLOAT32)
        return f"splat (float {scalar})" if lanes else scalar

    def fused(a: str, b: float | str, c: float | str) -> str:
        given = f"{kind} {a}, {kind} {number(b)}, {kind} {number(c)}"
        return to.do(f"call {kind} @llvm.fma.{suffix}({given})")

    shifted = fused(x, _LOG2_E, _ROUNDING)
    n = to.do(f"fsub {kind} {shifted}, {number(_ROUNDING)}")
    r = x
    for part in _LOG_2:
        r = fused(n, -part, r)
    y = fused(number(_EXP_SHORT[0]), r, _EXP_SHORT[1])
    for factor in (*_EXP_SHORT[2:], 1.0, 1.0):
        y = fused(y, r, factor)
    # The low bits of the rounded number are n, which is added to the exponent.
    places = "splat (i32 23)" if lanes else "23"
    low = to.do(f"bitcast {kind} {shifted} to {whole}")
    shift = to.do(f"shl {whole} {low}, {places}")
    bits = to.do(f"bitcast {kind} {y} to {whole}")
    bits = to.do(f"add {whole} {bits}, {shift}")
    return to.do(f"bitcast {whole} {bits} to {kind}")


# Eigen's rational approximation, of odd powers by even ones, up to where it is 1.
_TANH = (
    *(-2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11),
    *(5.12229709037114e-08, 1.48572235717979e-05, 6.37261928875436e-04),
    4.89352455891786e-03,
)
_TANH_BELOW = (
    *(1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03),
    4.89352518554385e-03,
)
_TANH_MOST = 7.90531110763549805


def _tanh(to: InstructionWriter, dtype: np.dtype[Any], args: tuple[str, ...]) -> str:
    def polynomial(factors: tuple[float, ...]) -> str:
        y = constant(factors[0], _FLOAT32)
        for factor in factors[1:]:
            given = f"float {y}, float {square}, float {constant(factor, _FLOAT32)}"
            y = to.do(f"call float @llvm.fma.f32({given})")
        return y

    x = _bounded(to, args[0], -_TANH_MOST, _TANH_MOST)
    square = to.do(f"fmul float {x}, {x}")
    above = to.do(f"fmul float {x}, {polynomial(_TANH)}")
    return to.do(f"fdiv float {above}, {polynomial(_TANH_BELOW)}")


def _bits_of(value: float) -> int:
    bits: int = struct.unpack(">I", struct.pack(">f", value))[0]
    return bits


def _compare(of_floats: str, of_integers: str) -> Rule:
    return _binary(f"fcmp {of_floats}", f"icmp {of_integers}")


_EVERY = (*_NUMBERS, _BOOL)
_FUNCTIONS: dict[str, tuple[tuple[np.dtype[Any], ...], Rule]] = {
    "add": (_NUMBERS, _binary("fadd", "add")),
    "subtract": (_NUMBERS, _binary("fsub", "sub")),
    "multiply": (_NUMBERS, _binary("fmul", "mul")),
    "divide": (FLOATS, _binary("fdiv")),
    "maximum": (_NUMBERS, _intrinsic("maximum", "smax")),
    "minimum": (_NUMBERS, _intrinsic("minimum", "smin")),
    "negative": (_NUMBERS, _negative),
    "absolute": (_NUMBERS, _intrinsic("fabs", "abs", ", i1 false")),
    "square": (_NUMBERS, _square),
    "reciprocal": (FLOATS, _reciprocal),
    "sqrt": (FLOATS, _intrinsic("sqrt")),
    "floor": (FLOATS, _intrinsic("floor")),
    "ceil": (FLOATS, _intrinsic("ceil")),
    "trunc": (FLOATS, _intrinsic("trunc")),
    "rint": (FLOATS, _intrinsic("rint")),
    "exp": ((_FLOAT32,), _exp),
    EXP_PLUS_ONE: ((_FLOAT32,), _exp_plus_one),
    "tanh": ((_FLOAT32,), _tanh),
    "less": (_NUMBERS, _compare("olt", "slt")),
    "less_equal": (_NUMBERS, _compare("ole", "sle")),
    "greater": (_NUMBERS, _compare("ogt", "sgt")),
    "greater_equal": (_NUMBERS, _compare("oge", "sge")),
    "equal": (_NUMBERS, _compare("oeq", "eq")),
    "not_equal": (_NUMBERS, _compare("une", "ne")),
    "logical_and": (_EVERY, _logical("and")),
    "logical_or": (_EVERY, _logical("or")),
    "logical_xor": (_EVERY, _logical("xor")),
    "logical_not": (_EVERY, _logical("xor")),
}
_ASKING = {"less", "less_equal", "greater", "greater_equal", "equal", "not_equal"}
_ASKING |= {"logical_and", "logical_or", "logical_xor", "logical_not"}
_COSTS = {
    "exp": 12,
    EXP_PLUS_ONE: 8,
    "tanh": 15,
    "divide": 4,
    "sqrt": 4,
    "reciprocal": 4,
}

"""Code generation of CUDA C for elementwise expressions; half types use float32."""

from typing import Any

import numpy as np

from burn import dtypes
from burn.backend.cuda.kernels.elementwise.activations import ERF, FORMULAS, TANH
from burn.ops import activation
from burn.ops.elements import COPY, SELECT, Element, Expression, Operand
from burn.primitive import Primitive

_HALF, _SINGLE, _DOUBLE = map(np.dtype, (np.float16, np.float32, np.float64))
_INT, _LONG, _BOOL = map(np.dtype, (np.int32, np.int64, np.bool_))
_BFLOAT = np.dtype(dtypes.bfloat16)
#: The CUDA C types of elements in memory, and of values.
STORED = {
    _HALF: "__half",
    _BFLOAT: "bfloat16",
    _SINGLE: "float",
    _DOUBLE: "double",
    _INT: "int",
    _LONG: "long long",
    _BOOL: "bool",
}
VALUES = {**STORED, _HALF: "float", _BFLOAT: "float"}
_FLOATS = (_HALF, _BFLOAT, _SINGLE, _DOUBLE)
#: Gradients with formulas of `v`, which is of type W, and of the gradient `g`, by the
#: parameter `approximate`. Clipping avoids infinity times 0, as in the generic kernel.
_CLIPPED = "const W c = v > 40 ? W(40) : v < -40 ? W(-40) : v, s = c * c; "
_GELU_GRAD = {
    "none": (
        _CLIPPED,
        "g * ((1 + erf(c * W(0.70710678118654752))) * W(0.5)"
        " + c * exp(s * W(-0.5)) * W(0.39894228040143268))",
    ),
    "tanh": (
        f"{_CLIPPED}const W u = (s * W(0.044715) + 1) * c, "
        "t = tanh(u * W(0.79788456080286536)); ",
        "g * W(0.5) * (1 + t + c * (1 - t * t) * "
        "(s * W(0.134145) + 1) * W(0.79788456080286536))",
    ),
}
#: Primitives that have a formula.
PRIMITIVES: frozenset[Primitive[..., Any]] = frozenset(
    (*FORMULAS, activation.gelu, activation.gelu_grad)
)
#: Functions of floats and integers, and of floats alone.
_ALL = {
    "add": "{0} + {1}",
    "subtract": "{0} - {1}",
    "multiply": "{0} * {1}",
    "negative": "-{0}",
    "square": "{0} * {0}",
    "maximum": "{0} != {0} || {0} > {1} ? {0} : {1}",
    "minimum": "{0} != {0} || {0} < {1} ? {0} : {1}",
    "less": "{0} < {1}",
    "less_equal": "{0} <= {1}",
    "greater": "{0} > {1}",
    "greater_equal": "{0} >= {1}",
    "equal": "{0} == {1}",
    "not_equal": "{0} != {1}",
    "logical_and": "{0} != 0 && {1} != 0",
    "logical_or": "{0} != 0 || {1} != 0",
    "logical_xor": "({0} != 0) != ({1} != 0)",
    "logical_not": "{0} == 0",
}
_OF_FLOATS = {
    "divide": "{0} / {1}",
    "reciprocal": "1 / {0}",
    "absolute": "fabs({0})",
    "isnan": "{0} != {0}",
    **{name: f"{name}({{0}})" for name in ("sqrt", "floor", "ceil", "trunc", "rint")},
    **{name: f"{name}({{0}})" for name in ("exp", "log", "log1p", "expm1", "tanh")},
    **{name: f"{name}({{0}})" for name in ("sin", "cos", "tan")},
    "power": "pow({0}, {1})",
}
#: The type of bfloat16 in memory, which rounds to nearest even. NVRTC's own type needs
#: a header that not every installation has.
BFLOAT16 = """
struct bfloat16 {
    unsigned short bits;
    bfloat16() = default;
    __device__ bfloat16(float v) {
        const unsigned u = __float_as_uint(v);
        bits = v != v ? 0x7fff : (u + 0x7fff + (u >> 16 & 1)) >> 16;
    }
    __device__ operator float() const { return __uint_as_float((unsigned)bits << 16); }
};
"""
#: Helper functions of formulas.
HEADER = """
template <class N> __device__ N unit(N v) { return v > 1 ? N(1) : v < 0 ? N(0) : v; }
"""


def is_printed(element: Element) -> bool:
    """Return whether CUDA C exists for all of ``element``."""
    if element.dtype not in STORED or not all(t in STORED for t in element.types):
        return False
    name = element.name
    if isinstance(name, Primitive):
        good = name in PRIMITIVES and element.dtype in _FLOATS
    elif name in (COPY, SELECT) or name in _ALL:
        good = len(set(element.types)) == 1 or name == SELECT
        good = good and (
            name in _COMPARE or name in (COPY, SELECT) or not _is_bool(element)
        )
    else:
        good = name in _OF_FLOATS and set(element.types) <= set(_FLOATS)
    return good and all(
        is_printed(operand) if isinstance(operand, Element) else _is_operand(operand)
        for operand in element.operands
    )


_COMPARE = {"equal", "not_equal", "logical_and", "logical_or", "logical_xor"}
_COMPARE |= {"logical_not"}


def _is_bool(element: Element) -> bool:
    return _BOOL in element.types


def _is_operand(operand: Expression) -> bool:
    return not isinstance(operand, Operand) or operand.dtype in STORED


class Printer:
    """Emits statements of an expression; common subexpressions are computed once."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._names: dict[Any, str] = {}

    def value(self, expression: Expression, dtype: Any) -> str:
        """Return the variable or literal of ``expression``, converted to ``dtype``."""
        if isinstance(expression, Operand):
            name, source = f"x{expression.number}", expression.dtype
        elif isinstance(expression, Element):
            name, source = self._element(expression), expression.dtype
        else:
            return _number(expression, dtype)
        return name if source == dtype else _convert(name, source, dtype)

    def _element(self, element: Element) -> str:
        if element in self._names:
            return self._names[element]
        args = [
            self.value(operand, dtype)
            for operand, dtype in zip(element.operands, element.types, strict=True)
        ]
        name = self._names[element] = f"v{len(self._names)}"
        kind = VALUES[element.dtype]
        if isinstance(element.name, Primitive):
            self.lines.append(f"{kind} {name}; {{ {_formula(element, args, name)} }}")
            return name
        if element.name == COPY:
            text = _convert(args[0], element.types[0], element.dtype)
        elif element.name == SELECT:
            text = f"{args[0]} ? {args[1]} : {args[2]}"
        else:
            text = {**_ALL, **_OF_FLOATS}[element.name].format(*args)
        self.lines.append(f"const {kind} {name} = {text};")
        return name


def _formula(element: Element, args: list[str], name: str) -> str:
    kind = VALUES[element.dtype]
    numbers = dict(element.numbers)
    defaults: dict[str, float] = {}
    before = ""
    if element.name is activation.gelu_grad:
        before, text = _GELU_GRAD[numbers.get("approximate", "none")]
        before = f"const W g = {args[0]}; {before}"
    elif element.name is activation.gelu:
        text = TANH if numbers.get("approximate") == "tanh" else ERF
    else:
        text, defaults = FORMULAS[element.name]  # type: ignore[index]
    declarations = "".join(
        f"const W {key} = {_number(numbers.get(key, value), element.dtype)}; "
        for key, value in defaults.items()
    )
    return (
        f"typedef {kind} W; const W v = {args[-1]}; {before}{declarations}"
        f"{name} = {text};"
    )


def _convert(name: str, source: Any, target: Any) -> str:
    if target == _BOOL:
        return name if source == _BOOL else f"({name} != 0)"
    if target in (_HALF, _BFLOAT) and source != _BOOL:
        return f"(float)({STORED[target]})(float){name}"
    return f"({VALUES[target]}){name}"


def _number(value: Any, dtype: Any) -> str:
    """Return a CUDA C literal of a number, including infinities."""
    if dtype == _BOOL:
        return "true" if value else "false"
    if dtype == _DOUBLE:
        bits = int(np.float64(value).view(np.uint64))
        return f"__longlong_as_double({bits:#x}LL)"
    if dtype in _FLOATS:
        bits = int(np.asarray(value, dtype).astype(np.float32).view(np.uint32))
        return f"__uint_as_float({bits:#x}u)"
    return f"({VALUES[dtype]}){int(value)}LL"

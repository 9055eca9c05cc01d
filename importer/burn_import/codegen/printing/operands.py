"""Source of the operands of traced calls: tensors, numbers, extents and lists."""

import math
import re
from collections.abc import Callable, Collection
from functools import cache
from typing import Any

import numpy as np

from burn import Tensor
from burn.dtypes import DType, bfloat16, float16, float32, float64, is_float, largest
from burn_import.codegen.printing.burn_source import BurnSource
from burn_import.tracing.expression import ATOM, POWER, Expression, atom, merge
from burn_import.tracing.extents import Extents
from burn_import.tracing.identifiers import dtype_source, literal, words_literal
from burn_import.tracing.scalar_operands import (
    is_list,
    is_listable,
    is_text,
    nested_lists,
    number_in,
)
from burn_import.tracing.trace import Symbol
from burn_ir.containers import SequenceType
from burn_ir.dim import Poly
from burn_ir.errors import UnsupportedModel

#: Dtypes whose largest numbers are printed by name.
LIMITED = (float16, bfloat16, float32, float64)
#: Integers below this are recognized by their logarithm or root.
MOST_ROOTED = 1025
#: Powers of two below have many digits.
_SMALL = 2.0**-4
#: Maximum strings of a tensor in source.
STRING_LIMIT = 4096


class OperandRenderer(BurnSource):
    """A renderer of operands, with the current names of values.

    ``attribute`` returns the attribute of a stored array, ``access`` the source
    that reads the module at a path.
    """

    def __init__(
        self,
        extents: Extents,
        attribute: Callable[[str], str],
        access: Callable[[tuple[str, ...]], str],
    ) -> None:
        super().__init__()
        self.extents = extents
        self.attribute = attribute
        self.access = access
        self.names: dict[Symbol, str] = {}
        self.pending: dict[Symbol, Expression] = {}
        #: Values that only an ``if`` reads: Python comparisons suffice.
        self.conditions: set[Symbol] = set()
        #: The conditions that were emitted as Python comparisons.
        self.python: set[Symbol] = set()
        #: Modules that are loop variables, as members of a list.
        self.members: dict[tuple[str, ...], str] = {}

    def module(self, path: tuple[str, ...]) -> str:
        """Return the source that reads a module."""
        for length in range(len(path), 0, -1):
            name = self.members.get(path[:length])
            if name is not None:
                return name + self.access(path).removeprefix(self.access(path[:length]))
        return self.access(path)

    def number(self, arg: Any) -> Expression:
        """Return an operand that is known to be a scalar."""
        return self.host(number_in(arg.data) if isinstance(arg, Tensor) else arg)

    def data(self, arg: Any, lists: Collection[DType] = ()) -> Expression:
        """Return an operand as a tensor, or as a Python number from a ``lower``."""
        if isinstance(arg, list):
            items = [self.data(item, lists) for item in arg]
            text = ", ".join(map(_element, arg, items))
            return Expression(f"[{text}]", ATOM, merge(items))
        if not isinstance(arg, Tensor):
            return self.host(arg)
        symbol: Symbol = arg.data
        if symbol in self.pending:
            return self.pending[symbol]
        if symbol in self.names:
            return atom(self.names[symbol], symbol)
        contents = symbol.known
        if lists and is_list(symbol, lists):
            return self.host(arg)
        if symbol.constant and contents is not None and is_text(contents):
            return self.strings(contents)
        if symbol.constant:
            return atom(f"self.{self.attribute(symbol.constant)}")
        return self.array(symbol)

    def value(self, arg: Any) -> Expression:
        """Return a tensor that leaves the code: of a parameter, its value."""
        expression = self.data(arg)
        stored = arg.data.constant and arg.data not in self.names
        if stored and expression.text.startswith("self."):
            return Expression(self.stored_value(expression.text))
        return expression

    def items(self, values: Any) -> Expression:
        """Return a list of tensors."""
        items = [self.value(item) for item in values]
        text = ", ".join(map(_element, values, items))
        return Expression(f"[{text}]", ATOM, merge(items))

    def strings(self, array: np.ndarray[Any, Any]) -> Expression:
        """Return a string tensor as source, since records cannot store strings."""
        if array.size > STRING_LIMIT:
            raise UnsupportedModel(
                f"expected at most {STRING_LIMIT} strings in a tensor, got {array.size}"
            )
        self.modules |= {"ops", "burn"}
        words = array.tolist()
        text = words_literal(words) if array.ndim == 1 else literal(words)
        return self.filled(array, atom(text), array.dtype)

    def filled(
        self, array: np.ndarray[Any, Any], values: Expression, dtype: DType
    ) -> Expression:
        """Return a tensor of ``values``; empty ones need an explicit shape."""
        kind = dtype_source(dtype)
        if array.ndim > 1 and not array.size:
            return Expression(f"ops.zeros({literal(array.shape)}, dtype={kind})")
        return Expression(f"ops.array({values.text}, dtype={kind})")

    def array(self, symbol: Symbol, dtype: DType | None = None) -> Expression:
        """Return a tensor of known integers and dimensions, built at its use."""
        assert symbol.type is not None and symbol.known is not None, symbol.name
        self.modules |= {"ops", "burn"}
        known = symbol.known
        if _are_powers_of_two(known):
            exponents = np.frexp(known)[1] - 1
            values = atom(re.sub(r"-?\d+", r"2**\g<0>", literal(exponents.tolist())))
        else:
            values = self.host(nested_lists(known))
        return self.filled(known, values, dtype or symbol.type.dtype)

    def host(self, arg: Any) -> Expression:
        """Return an operand that may be Python numbers: axes, sizes, bounds."""
        if isinstance(arg, Tensor):
            symbol: Symbol = arg.data
            contents = symbol.known
            here = symbol in self.names or symbol in self.pending
            if contents is None or here or not is_listable(contents):
                return self.data(arg)
            return self.host(contents.tolist())
        if isinstance(arg, list | tuple):
            items = [self.host(item) for item in arg]
            text = ", ".join(item.text for item in items)
            if isinstance(arg, list):
                return Expression(f"[{text}]", ATOM, merge(items))
            text += "," if len(items) == 1 else ""
            return Expression(f"({text})", ATOM, merge(items))
        if isinstance(arg, Poly):
            return self.extents.write(arg)
        return self.static(arg)

    def static(self, value: Any) -> Expression:
        """Return a static argument: a number, a string, a dtype."""
        if isinstance(value, np.dtype):
            self.modules.add("burn")
            return atom(dtype_source(value))
        if isinstance(value, list | tuple) and any(
            isinstance(item, list | tuple | Poly) for item in value
        ):
            return self.host(value)
        dtype = _limited_dtype(value)
        if dtype is not None:
            return atom(self.limit(dtype, "max" if value > 0 else "min"))
        formula = _formula(value)
        text = formula or literal(value)
        if "math." in text:
            self.modules.add("math")
        return Expression(text, POWER) if "**" in formula else atom(text)


def _formula(value: Any) -> str:
    """Return the function of an integer that a float32 rounds, "" if there is none."""
    return _formulas().get(float(value), "") if isinstance(value, np.float32) else ""


@cache
def _formulas() -> dict[float, str]:
    """Return the source of logarithms and roots of integers, by their float32.

    Attention scales scores by one over a root, or queries and keys by the root of it.
    Positions in buckets are divided by the logarithm of a quotient.
    """
    texts = {float(np.float32(math.tau)): "math.tau"}
    for number in range(101, 200):  # a variance of one and a bit
        texts[float(np.float32((number / 100) ** -0.5))] = f"{number / 100}**-0.5"
    for number in range(2, MOST_ROOTED):
        texts[float(np.float32(math.log(number)))] = f"math.log({number})"
        if math.isqrt(number) ** 2 != number:
            texts[float(np.float32(math.sqrt(number)))] = f"math.sqrt({number})"
            texts[float(np.float32(number**-0.5))] = f"{number}**-0.5"
            texts[float(np.float32(number**-0.25))] = f"{number}**-0.25"
    for number in range(3, MOST_ROOTED, 2):
        for divisor in (2, 4, 8, 16, 32, 64, 128, 256):
            if number > divisor:
                value = float(np.float32(math.log(number / divisor)))
                texts.setdefault(value, f"math.log({number} / {divisor})")
    return texts


def _are_powers_of_two(array: np.ndarray[Any, Any]) -> bool:
    """Return whether several numbers, some with many digits, are powers of 2."""
    if array.dtype == object or not is_float(array.dtype) or array.size < 2:
        return False
    return bool((np.frexp(array)[0] == 0.5).all() and array.min() < _SMALL)


def _limited_dtype(value: Any) -> DType | None:
    """Return the dtype that has a float as its first or last finite number, or None."""
    is_number = isinstance(value, np.generic) and is_float(value.dtype)
    if not is_number and not isinstance(value, float):
        return None
    return next((one for one in LIMITED if abs(float(value)) == largest(one)), None)


def _element(value: Any, source: Expression) -> str:
    """Return the source of an element of a list; a list in it is unpacked."""
    value_type = value.data.type if isinstance(value, Tensor) else None
    return f"*{source.text}" if isinstance(value_type, SequenceType) else source.text

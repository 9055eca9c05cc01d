"""Operands that are one number, and where a number may stand for a tensor."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from burn import Tensor
from burn.dtypes import DType, default_dtype, is_float, is_integer, string
from burn_import.tracing.trace import Apply, Symbol
from burn_ir.dim import Poly

#: At most this many numbers stand in the source; more go to the record.
INLINE_LIMIT = 8


def is_number(arg: Any) -> bool:
    """Return whether an operand is one number, known by now."""
    if isinstance(arg, Tensor):
        return number_in(arg.data) is not None
    return isinstance(arg, int | float | Poly)


def number_in(symbol: Symbol) -> Any:
    """The only element of a constant operand, or None."""
    contents = symbol.known
    if contents is None or contents.size != 1:
        return None
    if contents.dtype == object:
        item = contents.reshape(-1)[0]
        return item if isinstance(item, Poly) else None
    plain = contents.dtype.kind in "biu" or is_float(contents.dtype)
    return contents.reshape(-1)[0] if plain else None


def fits(symbol: Symbol, others: list[Tensor]) -> bool:
    """Whether a number has the effect of the constant: no axis or dtype is lost."""
    contents = symbol.known
    assert contents is not None
    tensors = [other.data for other in others if number_in(other.data) is None]
    if contents.ndim == 0:
        return bool(tensors)
    return any(
        t.type is not None
        and t.type.shape is not None
        and len(t.type.shape) >= contents.ndim
        for t in tensors
    )


def tensor_position(call: Apply) -> int:
    """The position of the operand that is a tensor in a call of nothing but numbers.

    It has the dtype and the rank of the result: Python computes with plain numbers
    itself. The condition of ``where`` has no part in the dtype.
    """
    first = 1 if call.primitive.name == "where" else 0
    return max(range(first, len(call.args)), key=lambda i: rank_of(call.args[i]))


def is_same(a: Any, b: Any) -> bool:
    """Whether two operands are one, or one stored array.

    A parameter is no tensor in one place and a number in another, which would keep its
    value when the parameter is trained.
    """
    if a is b or not isinstance(a, Tensor) or not isinstance(b, Tensor):
        return a is b
    first, second = a.data, b.data
    return first is second or bool(first.constant) and first.constant == second.constant


def rank_of(arg: Any) -> int:
    """The rank of a number as the model has it, -1 of one that a ``lower`` gives."""
    return arg.data.known.ndim if isinstance(arg, Tensor) else -1


def keeps_dtype(arg: Tensor, call: Apply) -> bool:
    """Return whether a number has the dtype of the constant that it stands for.

    The condition of ``where`` has no part in the dtype: the number, if it is not of
    Python's own dtype, needs another branch with one.
    """
    if call.primitive.name != "where":
        return True
    contents = arg.data.known
    branches = [a for a in call.args[1:] if a is not arg]
    typed = any(isinstance(a, Tensor) and number_in(a.data) is None for a in branches)
    return typed or contents.dtype in (object, default_dtype(contents.item()))


def stands_as_number(arg: Tensor, call: Apply) -> bool:
    """Return whether an operand of an elementwise primitive is a plain number."""
    others = [a for a in call.args if isinstance(a, Tensor) and a is not arg]
    plain = number_in(arg.data) is not None and fits(arg.data, others)
    return plain and keeps_dtype(arg, call)


def fill_number(arg: Any) -> Any:
    """The number that an operand is; zero of any dtype is the default, 0."""
    number = number_in(arg.data) if isinstance(arg, Tensor) else arg
    is_zero = isinstance(number, np.generic) and not any(number.tobytes())
    return 0 if is_zero else number


def nested(array: np.ndarray[Any, Any]) -> Any:
    """An array as lists; floats keep their dtype, for the digits of the literal."""
    if not is_float(array.dtype):
        return array.tolist()
    return [nested(row) for row in array] if array.ndim else array[()]


def is_list(symbol: Symbol, dtypes: Collection[DType]) -> bool:
    """Return whether a vector of one of these dtypes can stand as a list of numbers."""
    contents, kind = symbol.known, symbol.type
    right = kind is not None and kind.dtype in dtypes
    # A list without numbers is one of floats.
    vector = contents is not None and contents.ndim == 1 and contents.size > 0
    return right and contents is not None and vector and is_listable(contents)


def is_listable(array: np.ndarray[Any, Any]) -> bool:
    """Return whether an array of whole numbers is small enough to stand in source."""
    small = array.ndim <= 1 and array.size <= INLINE_LIMIT
    whole = is_integer(array.dtype) or array.dtype == string
    return small and whole and not is_text(array)


def is_text(array: np.ndarray[Any, Any]) -> bool:
    """Return whether an array holds strings; dimensions are held as objects too."""
    if array.dtype != string:
        return False
    return not any(isinstance(item, int | Poly) for item in array.ravel().tolist())

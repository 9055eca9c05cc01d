"""Scalar operands, and the places where a number may replace a tensor."""

from collections.abc import Collection
from typing import Any

import numpy as np

from burn import Tensor
from burn.dtypes import DType, default_dtype, is_float, is_integer, string
from burn_import.tracing.constructor_numbers import ParameterNumber
from burn_import.tracing.trace import Apply, Symbol
from burn_ir.dim import Poly

#: Maximum elements of a literal; larger arrays go to the record.
INLINE_LIMIT = 8


def is_number(arg: Any) -> bool:
    """Return whether an operand is a scalar with a known value."""
    if isinstance(arg, Tensor):
        return number_in(arg.data) is not None
    return isinstance(arg, int | float | Poly)


def number_in(symbol: Symbol) -> Any:
    """Return the only element of a constant operand, or None."""
    contents = symbol.known
    if contents is None or contents.size != 1:
        return None
    if contents.dtype == object:
        item = contents.reshape(-1)[0]
        return item if isinstance(item, Poly | ParameterNumber) else None
    plain = contents.dtype.kind in "biu" or is_float(contents.dtype)
    return contents.reshape(-1)[0] if plain else None


def fits(symbol: Symbol, others: list[Tensor]) -> bool:
    """Return whether a number can replace the constant, keeping rank and dtype."""
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
    """Return the operand to keep as a tensor in a call of only numbers.

    It has the dtype and the rank of the result: Python would compute with plain
    numbers itself. The condition of ``where`` does not affect the dtype.
    """
    first = 1 if call.primitive.name == "where" else 0
    return max(range(first, len(call.args)), key=lambda i: rank_of(call.args[i]))


def is_same(a: Any, b: Any) -> bool:
    """Return whether two operands are one value, or one stored array.

    A parameter must not be a tensor in one place and a literal in another, which
    would keep its value when the parameter is trained.
    """
    if a is b or not isinstance(a, Tensor) or not isinstance(b, Tensor):
        return a is b
    first, second = a.data, b.data
    return first is second or bool(first.constant) and first.constant == second.constant


def rank_of(arg: Any) -> int:
    """Return the rank of a number in the model, -1 for literals of a ``lower``."""
    return arg.data.known.ndim if isinstance(arg, Tensor) else -1


def keeps_dtype(arg: Tensor, call: Apply) -> bool:
    """Return whether a number has the dtype of the constant that it replaces.

    The condition of ``where`` does not affect the dtype: a number that is not of
    Python's own dtype needs another branch of that dtype.
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
    """Return the value of an operand; zero of any dtype is the default, 0."""
    number = number_in(arg.data) if isinstance(arg, Tensor) else arg
    is_zero = isinstance(number, np.generic) and not any(number.tobytes())
    return 0 if is_zero else number


def nested_lists(array: np.ndarray[Any, Any]) -> Any:
    """Return an array as nested lists; floats keep their dtype for printing."""
    if not is_float(array.dtype):
        return array.tolist()
    return [nested_lists(row) for row in array] if array.ndim else array[()]


def is_list(symbol: Symbol, dtypes: Collection[DType]) -> bool:
    """Return whether a vector of one of these dtypes can be a list literal."""
    contents, kind = symbol.known, symbol.type
    right = kind is not None and kind.dtype in dtypes
    # an empty list becomes a float array
    vector = contents is not None and contents.ndim == 1 and contents.size > 0
    return right and contents is not None and vector and is_listable(contents)


def is_listable(array: np.ndarray[Any, Any]) -> bool:
    """Return whether an integer array is small enough for a literal."""
    small = array.ndim <= 1 and array.size <= INLINE_LIMIT
    whole = is_integer(array.dtype) or array.dtype == string
    return small and whole and not is_text(array)


def is_text(array: np.ndarray[Any, Any]) -> bool:
    """Return whether an array holds strings; dimensions are objects, too."""
    if array.dtype != string:
        return False
    return not any(isinstance(item, int | Poly) for item in array.ravel().tolist())

"""Operands whose contents are known: whether they can stand as plain numbers."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from burn import Tensor
from burn.dtypes import DType, default_dtype, is_float, is_integer, string
from burn_import.source.trace import Apply, Symbol
from burn_ir.dim import Poly

#: At most this many numbers stand in the source; more go to the record.
INLINE_LIMIT = 8


def is_number(arg: Any) -> bool:
    if isinstance(arg, Tensor):
        return only_number(arg.data) is not None
    return isinstance(arg, int | float | Poly)


def is_sequence(value: Any) -> bool:
    if isinstance(value, Tensor):
        known = value.data.known
        return known is not None and known.ndim == 1
    return isinstance(value, list | tuple)


def is_list(symbol: Symbol, dtypes: Collection[DType]) -> bool:
    """Whether a vector of one of these dtypes can stand as a list of numbers."""
    known, kind = symbol.known, symbol.type
    fits = kind is not None and kind.dtype in dtypes
    return fits and known is not None and known.ndim == 1 and listable(known)


def listable(known: np.ndarray[Any, Any]) -> bool:
    small = known.ndim <= 1 and known.size <= INLINE_LIMIT
    whole = is_integer(known.dtype) or known.dtype == string
    return small and whole and not is_text(known)


def is_text(known: np.ndarray[Any, Any]) -> bool:
    """Whether an array holds strings; dimensions are held as objects too."""
    if known.dtype != string:
        return False
    return not any(isinstance(item, int | Poly) for item in known.ravel().tolist())


def only_number(symbol: Symbol) -> Any:
    """The only element of a constant operand, or None."""
    known = symbol.known
    if known is None or known.size != 1:
        return None
    if known.dtype == object:
        item = known.reshape(-1)[0]
        return item if isinstance(item, Poly) else None
    plain = known.dtype.kind in "biu" or is_float(known.dtype)
    return known.reshape(-1)[0] if plain else None


def fits(symbol: Symbol, others: list[Tensor]) -> bool:
    """Whether a number has the effect of the constant: no axis or dtype is lost."""
    known = symbol.known
    assert known is not None
    tensors = [other.data for other in others if only_number(other.data) is None]
    if known.ndim == 0:
        return bool(tensors)
    return any(
        t.type is not None
        and t.type.shape is not None
        and len(t.type.shape) >= known.ndim
        for t in tensors
    )


def keeps_dtype(arg: Tensor, call: Apply) -> bool:
    """Whether a number has the dtype of the constant that it stands for.

    The condition of ``where`` has no part in the dtype: the number, if it is not of
    Python's own dtype, needs another branch with one.
    """
    if call.primitive.name != "where":
        return True
    known = arg.data.known
    branches = [a for a in call.args[1:] if a is not arg]
    typed = any(isinstance(a, Tensor) and only_number(a.data) is None for a in branches)
    return typed or known.dtype in (object, default_dtype(known.item()))

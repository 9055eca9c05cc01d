"""Operands that are one number, and where a number may stand for a tensor."""

from __future__ import annotations

from typing import Any

from burn import Tensor
from burn.dtypes import default_dtype, is_float
from burn_import.source.trace import Apply, Symbol
from burn_ir.dim import Poly


def is_number(arg: Any) -> bool:
    """Whether an operand is one number, known by now."""
    if isinstance(arg, Tensor):
        return number_in(arg.data) is not None
    return isinstance(arg, int | float | Poly)


def number_in(symbol: Symbol) -> Any:
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
    tensors = [other.data for other in others if number_in(other.data) is None]
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
    typed = any(isinstance(a, Tensor) and number_in(a.data) is None for a in branches)
    return typed or known.dtype in (object, default_dtype(known.item()))

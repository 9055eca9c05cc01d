"""Elementwise and reduction semantics of NumPy calls."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from burn.backend.cpu.jit.functions import (
    REDUCTIONS,
    can_convert,
    result_of,
    types_of,
)
from burn.ops.support import Array
from burn.structs import Struct

#: The names of operations that no NumPy function computes, such as a copy.
COPY, SELECT = "copy", "select"


class KernelCall(Struct):
    """A function of operands: arrays, numbers and nested calls without a target.

    ``axes`` are the reduced axes, None for an elementwise call. ``types`` are the
    dtypes to which operands are converted.
    """

    name: str
    operands: tuple[Any, ...]
    types: tuple[np.dtype[Any], ...]
    target: Array | None
    axes: tuple[int, ...] | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The iteration shape of the call."""
        if self.axes is None and self.target is not None:
            return shape_of(self.target)
        return np.broadcast_shapes(*map(shape_of, self.operands))


#: The operations of a NumPy call.
Operations: TypeAlias = list[KernelCall]


def shape_of(operand: Any) -> tuple[int, ...]:
    """Return the shape of an operand of a call."""
    shape: tuple[int, ...] = getattr(operand, "shape", ())
    return shape


def parse_call(call: Callable[[], Any]) -> Operations | None:
    """Return the operations of a captured call, or None if no kernel supports it."""
    if type(call) is not partial:
        return None
    function, args, named = call.func, call.args, dict(call.keywords)
    calls = None
    if function is np.copyto:
        calls = _parse_copy(args, named)
    elif function is np.concatenate:
        calls = _parse_concatenation(args, named)
    elif getattr(function, "__name__", "") == "fill" and not named:
        calls = _parse_copy((getattr(function, "__self__", None), *args), {})
    elif function in (np.vecdot, np.einsum):
        calls = _parse_dot_product(function, args, named)
    elif isinstance(function, np.ufunc):
        calls = _parse_elementwise(function, args, named)
    elif isinstance(getattr(function, "__self__", None), np.ufunc):
        calls = _parse_reduction(function, args, named)
    return calls if calls and all(map(_is_whole, calls)) else None


def _is_whole(call: KernelCall) -> bool:
    """Return whether kernels can read the operands and write the result."""
    if not all(map(_is_supported, call.operands, call.types)):
        return False
    if call.target is None:
        return True
    result, dtype = result_of(call.name, call.types), call.target.dtype
    return can_convert(result, dtype)


def _is_supported(operand: Any, dtype: np.dtype[Any]) -> bool:
    if isinstance(operand, KernelCall):
        return _is_whole(operand)
    if type(operand) is not np.ndarray:
        return isinstance(operand, bool | int | float | np.generic)
    return operand.flags.aligned and can_convert(operand.dtype, dtype)


def _parse_elementwise(
    function: np.ufunc, args: Any, named: Any
) -> list[KernelCall] | None:
    target = named.pop("out", None)
    if named or target is None or len(args) != function.nin:
        return None
    types = types_of(function, args)
    if types is None:
        return None
    return [KernelCall(function.__name__, tuple(args), types, target)]


def _parse_reduction(function: Any, args: Any, named: Any) -> list[KernelCall] | None:
    ufunc, target = function.__self__, named.pop("out", None)
    if function.__name__ != "reduce" or ufunc.__name__ not in REDUCTIONS:
        return None
    axis = args[1] if len(args) > 1 else named.pop("axis", 0)
    named.pop("keepdims", None)
    if named.pop("dtype", None) is not None or named or len(args) > 2:
        return None
    return _sum_calls(ufunc.__name__, args[0], axis, target)


def _sum_calls(name: str, x: Any, axis: Any, target: Any) -> list[KernelCall] | None:
    if target is None or not isinstance(target, np.ndarray):
        return None
    dtype = x.types[0] if isinstance(x, KernelCall) else getattr(x, "dtype", None)
    if dtype != target.dtype or dtype not in REDUCTIONS[name]:
        return None
    rank = len(shape_of(x))
    axes = range(rank) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    whole = tuple(sorted(a % rank for a in axes))
    return [KernelCall(name, (x,), (target.dtype,), target, whole)] if whole else None


def _parse_dot_product(function: Any, args: Any, named: Any) -> list[KernelCall] | None:
    """Return the sum of products of two arrays of equal shape over some axes."""
    target = named.pop("out", None)
    if function is np.einsum:
        if len(args) != 5 or any(type(part) is not list for part in args[1::2]):
            return None
        x, every, y, also, outer = args
        if every != also or every != list(range(len(every))) or outer != sorted(outer):
            return None
        axes = tuple(a for a in every if a not in outer)
    else:
        (x, y), axes = args, (-1,)
    if named or shape_of(x) != shape_of(y) or not axes or not shape_of(x):
        return None
    types = types_of(np.multiply, (x, y))
    if types is None or not all(type(a) is np.ndarray for a in (x, y)):
        return None
    return _sum_calls("add", KernelCall("multiply", (x, y), types, None), axes, target)


def _parse_copy(args: Any, named: Any) -> list[KernelCall] | None:
    target, source = args
    where = named.pop("where", None)
    named.pop("casting", None)
    if named or not isinstance(target, np.ndarray):
        return None
    kind = (target.dtype,)
    if where is None:
        return [KernelCall(COPY, (source,), kind, target)]
    if not isinstance(where, np.ndarray):
        return None
    types = (np.dtype(np.bool_), *kind, *kind)
    return [KernelCall(SELECT, (where, source, target), types, target)]


def _parse_concatenation(args: Any, named: Any) -> list[KernelCall] | None:
    """Return copies to the parts of the result of a concatenation."""
    target, axis = named.pop("out", None), named.pop("axis", 0)
    if len(args) == 2:
        args, axis = args[:1], args[1]
    if named or len(args) != 1 or target is None or axis is None:
        return None
    start, calls = 0, []
    for part in args[0]:
        if type(part) is not np.ndarray:
            return None
        end = start + part.shape[axis]
        key = [slice(None)] * target.ndim
        key[axis] = slice(start, end)
        calls.append(KernelCall(COPY, (part,), (target.dtype,), target[tuple(key)]))
        start = end
    return calls

"""Symbolic execution of elementwise kernels.

A generic kernel runs once on arrays that have a shape and a dtype and no elements, and
that note which of NumPy's functions are called with them.
"""

from typing import Any

import numpy as np

from burn.backend.arrays import ignoring_errors
from burn.ops.elements import COPY, SELECT, Element, Expression, Operand
from burn.plan.plan_ir import slots_in
from burn.primitive import Primitive


class NotElementwiseError(Exception):
    """A kernel is not an elementwise function."""


class SymbolicArray(np.ndarray[Any, Any]):
    """A symbolic array: shape, dtype and an expression for its elements."""

    expression: Expression

    def __array_finalize__(self, source: Any) -> None:
        self.expression = getattr(source, "expression", 0)

    def __array_ufunc__(
        self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **options: Any
    ) -> Any:
        plain = method == "__call__" and ufunc.signature is None and not options
        if not plain or ufunc.nout != 1:
            raise NotElementwiseError(f"{ufunc.__name__}.{method}")
        kinds = [_kind(value) for value in inputs]
        dtypes = ufunc.resolve_dtypes((*kinds, None))
        shape = np.broadcast_shapes(*(np.shape(value) for value in inputs))
        operands = tuple(map(_expression, inputs))
        element = Element(ufunc.__name__, dtypes[:-1], dtypes[-1], operands)
        if out is None:
            return symbolic_array(shape, dtypes[-1], element)
        (target,) = out
        if type(target) is not SymbolicArray or target.shape != shape:
            raise NotElementwiseError("the result goes to another array")
        target.expression = _convert(element, target.dtype)
        return target

    def __array_function__(
        self, function: Any, types: Any, args: Any, kwargs: Any
    ) -> Any:
        if function is np.where and len(args) == 3 and not kwargs:
            return _where(*args)
        if function in (np.shape, np.ndim, np.size):
            return function(self.view(np.ndarray))
        raise NotElementwiseError(function.__name__)

    def astype(  # type: ignore[override]
        self, dtype: Any, *args: Any, copy: bool = True, **options: Any
    ) -> Any:
        """Return the converted array, like ``numpy.ndarray.astype``."""
        dtype = np.dtype(dtype)
        return symbolic_array(self.shape, dtype, _convert(self.expression, dtype))

    def copy(self, order: Any = "C") -> Any:
        """Return this array, like ``numpy.ndarray.copy``."""
        return self.astype(self.dtype)

    def _refuse(self, *args: Any, **options: Any) -> Any:
        raise NotElementwiseError("a method that describes no elements")

    __bool__ = __int__ = __float__ = __index__ = __getitem__ = __setitem__ = _refuse
    all = any = argmax = argmin = clip = cumsum = dot = fill = flatten = _refuse
    item = max = mean = min = nonzero = prod = ravel = repeat = reshape = _refuse
    round = sort = squeeze = sum = swapaxes = take = tolist = transpose = _refuse


#: The fill values of symbolic arrays in the two executions of a kernel.
_FILLS = (0, -5)


def symbolic_array(
    shape: tuple[int, ...], dtype: Any, expression: Expression, fill: int = 0
) -> SymbolicArray:
    """Return a symbolic array whose elements are ``expression``."""
    memory = np.array(fill).astype(dtype)
    array = np.broadcast_to(memory, shape).view(SymbolicArray)
    array.expression = expression
    return array


def element_of(
    primitive: Primitive[..., Any],
    args: tuple[Any, ...],
    static: dict[str, Any],
    forms: list[tuple[tuple[int, ...], Any]],
) -> tuple[Element, tuple[int, ...]] | None:
    """Return the element expression of ``primitive`` and the shape of its result.

    ``args`` have operands instead of arrays; ``forms`` are the shapes and dtypes of the
    operands. Return None if the primitive is not elementwise.
    """
    if not primitive.traceable or not primitive.plain:
        return None
    if slots_in(args):
        return None  # operands in a list
    results = [_executed(primitive, args, static, forms, fill) for fill in _FILLS]
    # NumPy converts symbolic arrays to plain ones without a call that they can refuse
    # (numpy.asarray): a value that a kernel reads from memory then is not constant.
    return results[0] if results[0] == results[1] else None


def _executed(
    primitive: Primitive[..., Any],
    args: tuple[Any, ...],
    static: dict[str, Any],
    forms: list[tuple[tuple[int, ...], Any]],
    fill: int,
) -> tuple[Element, tuple[int, ...]] | None:
    """Return the result of a kernel on symbolic arrays with ``fill`` in memory."""
    operands = [
        (
            symbolic_array(*forms[arg.number], arg, fill)
            if isinstance(arg, Operand)
            else arg
        )
        for arg in args
    ]
    try:
        with ignoring_errors():
            result = primitive.kernel(*operands, **static)
    except (NotElementwiseError, TypeError, ValueError, LookupError, AttributeError):
        return None
    if type(result) is not SymbolicArray or not isinstance(result.expression, Element):
        return None
    return result.expression, result.shape


def _where(condition: Any, x: Any, y: Any) -> Any:
    dtype = np.result_type(*(getattr(v, "dtype", v) for v in (x, y)))
    if np.dtype(_kind(condition)) != np.bool_:
        raise NotElementwiseError("a condition that is no bool")
    shape = np.broadcast_shapes(*map(np.shape, (condition, x, y)))
    operands = tuple(map(_expression, (condition, x, y)))
    types = (np.dtype(np.bool_), dtype, dtype)
    return symbolic_array(shape, dtype, Element(SELECT, types, dtype, operands))


def _convert(expression: Any, dtype: Any) -> Expression:
    """Return ``expression`` converted to ``dtype``."""
    if expression.dtype == dtype:
        whole: Expression = expression
        return whole
    return Element(COPY, (expression.dtype,), dtype, (expression,))


def _kind(value: Any) -> Any:
    """Return the dtype of an operand, or the type of a Python number (weakly typed)."""
    return type(value) if type(value) in (bool, int, float) else value.dtype


def _expression(value: Any) -> Expression:
    if type(value) is SymbolicArray:
        return value.expression
    if type(value) in (bool, int, float):
        number: Expression = value
        return number
    if isinstance(value, np.generic | np.ndarray) and np.ndim(value) == 0:
        item = np.asarray(value).item()
        if isinstance(item, bool | int | float):
            return item
    raise NotElementwiseError("an array of constants")

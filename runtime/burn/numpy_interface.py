"""NumPy's protocols: functions of NumPy that are called with tensors or parameters.

Operators that mix an array and a tensor give a tensor (``array * x`` is ``x * array``).
All other functions of NumPy compute with the elements and return arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

#: The special method of each ufunc that is an operator, without its underscores.
_OPERATORS = {
    "add": "add",
    "subtract": "sub",
    "multiply": "mul",
    "divide": "truediv",
    "floor_divide": "floordiv",
    "remainder": "mod",
    "power": "pow",
    "matmul": "matmul",
    "equal": "eq",
    "not_equal": "ne",
    "less": "lt",
    "less_equal": "le",
    "greater": "gt",
    "greater_equal": "ge",
    "bitwise_and": "and",
    "bitwise_or": "or",
    "bitwise_xor": "xor",
}
#: The operator with exchanged operands, where it is none with an ``r`` in front.
_REFLECTED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_REFLECTED |= {name: name for name in ("eq", "ne", "and", "or", "xor")}


class NumpyInterface:
    """The methods that NumPy calls; a subclass has ``numpy`` and operators."""

    __slots__ = ()

    def numpy(self) -> np.ndarray[Any, Any]:
        """Return the elements as a read-only array."""
        raise NotImplementedError

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        array = self.numpy()
        if dtype is not None and dtype != array.dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: Any, options: Any
    ) -> Any:
        """Return ``function`` of the elements; NumPy calls this."""
        return function(*_as_arrays(args), **_as_arrays(options))

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any
    ) -> Any:
        """Return a tensor for an operator, else the ufunc of the elements.

        Raises:
            TypeError: an operand has a gradient history, which arrays do not have.
        """
        name = _OPERATORS.get(ufunc.__name__)
        if name is not None and method == "__call__" and not options:
            first, second = inputs
            if isinstance(first, NumpyInterface):
                return getattr(first, f"__{name}__")(second)
            return getattr(second, f"__{_REFLECTED.get(name, f'r{name}')}__")(first)
        if any(getattr(value, "node", None) is not None for value in inputs):
            raise TypeError(
                f"numpy.{ufunc.__name__} has no gradient; use that of burn.ops, or"
                f" numpy.{ufunc.__name__}(x.numpy()), which has no history"
            )
        return getattr(ufunc, method)(*_as_arrays(inputs), **_as_arrays(options))


def _as_arrays(value: Any) -> Any:
    """Return ``value`` with an array for each tensor, inside of containers too."""
    if isinstance(value, NumpyInterface):
        return value.numpy()
    if type(value) in (list, tuple):
        return type(value)(map(_as_arrays, value))
    if type(value) is dict:
        return {key: _as_arrays(item) for key, item in value.items()}
    return value

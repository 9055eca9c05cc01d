"""Functions of elements as data: what chains of elementwise operations compute.

An :class:`Element` is made of operands by one of NumPy's functions. Devices print it
in the language of their kernels; the generic kernel evaluates it with NumPy.
"""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from burn.ops.support import Array, namespace
from burn.primitive import Primitive, primitive

#: The names of a conversion and of a choice, which are no functions of NumPy's.
COPY, SELECT = "copy", "select"


@dataclass(frozen=True)
class Operand:
    """The element of the operand with this number."""

    number: int
    dtype: Any


@dataclass(frozen=True)
class Element:
    """A function, by NumPy's name, of operands that are taken in ``types``.

    A primitive in the place of a name is one that devices have a formula for, with its
    ``numbers``.
    """

    name: str | Primitive[..., Any]
    types: tuple[Any, ...]
    dtype: Any
    operands: "tuple[Expression, ...]"
    numbers: tuple[tuple[str, Any], ...] = ()

    @property
    def size(self) -> int:
        """How many functions there are in it."""
        return 1 + sum(o.size for o in self.operands if isinstance(o, Element))


#: What an element is made of: an operand, another element or a number.
Expression: TypeAlias = Operand | Element | bool | int | float


@primitive(removable=True)
def elements(x: Array, *others: Array, element: Element) -> Array:
    """``element`` of the operands, which are broadcast together."""
    return evaluated(element, (x, *others))


elements.no_gradient("plans without gradients alone are made of it")


def evaluated(expression: Expression, arrays: tuple[Array, ...]) -> Array:
    """``expression`` of ``arrays``, function by function."""
    if isinstance(expression, Operand):
        return arrays[expression.number]
    if not isinstance(expression, Element):
        return expression
    taken = [
        _taken(evaluated(operand, arrays), dtype)
        for operand, dtype in zip(expression.operands, expression.types, strict=True)
    ]
    name = expression.name
    if isinstance(name, Primitive):
        return name.kernel(*taken, **dict(expression.numbers))
    xp = namespace(arrays[0])
    if name == COPY:
        return taken[0].astype(expression.dtype, copy=False)
    if name == SELECT:
        return xp.where(*taken)
    return getattr(np, name)(*taken)


def _taken(value: Any, dtype: Any) -> Any:
    """``value`` in ``dtype``; numbers take part in any."""
    if isinstance(value, bool | int | float):
        return np.dtype(dtype).type(value)
    return value.astype(dtype, copy=False)

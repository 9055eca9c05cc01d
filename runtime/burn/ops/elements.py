"""Expression trees of elementwise functions, for generated kernels.

An :class:`Element` applies a NumPy function to operands. Devices print it in the
language of their kernels; the generic kernel evaluates it with NumPy.
"""

from math import copysign
from typing import Any, TypeAlias

import numpy as np

from burn.ops.support import Array, namespace
from burn.primitive import PLAN_ONLY, Primitive, primitive
from burn.structs import FrozenStruct

#: The names of a cast and a selection, which are not NumPy functions.
COPY, SELECT = "copy", "select"


class Operand(FrozenStruct):
    """An operand, by its number."""

    number: int
    dtype: Any


class Element(FrozenStruct):
    """A function, by its NumPy name, of operands that are converted to ``types``.

    A primitive in place of a name has a formula on the device, with ``numbers`` as its
    parameters.
    """

    name: str | Primitive[..., Any]
    types: tuple[Any, ...]
    dtype: Any
    operands: "tuple[Expression, ...]"
    numbers: tuple[tuple[str, Any], ...] = ()

    @property
    def size(self) -> int:
        """The number of functions in the expression."""
        return 1 + sum(o.size for o in self.operands if isinstance(o, Element))

    def _values(self) -> tuple[Any, ...]:
        # 0.0 and -0.0 are equal, and the results of functions of them are not.
        zeros = [o for o in self.operands if isinstance(o, float) and o == 0.0]
        return (*super()._values(), *(copysign(1.0, zero) for zero in zeros))


#: A node of the tree: an operand, another element or a number.
Expression: TypeAlias = Operand | Element | bool | int | float


@primitive(removable=True, no_gradient=PLAN_ONLY)
def elements(x: Array, *others: Array, element: Element) -> Array:
    """Return ``element`` of the operands, which are broadcast."""
    return evaluated(element, (x, *others))


@primitive(outputs=0, removable=True, no_gradient=PLAN_ONLY)
def elements_of_many(
    *operands: Array | list[Array], element: Element
) -> tuple[Array, ...]:
    """Return ``element`` of each of several tuples of operands.

    An operand is a list, with an array for each result and of its shape, or an array of
    one element that all results share.
    """
    count = max(len(operand) for operand in operands if isinstance(operand, list))
    return tuple(
        evaluated(
            element,
            tuple(
                operand[number] if isinstance(operand, list) else operand
                for operand in operands
            ),
        )
        for number in range(count)
    )


def evaluated(expression: Expression, arrays: tuple[Array, ...]) -> Array:
    """Return ``expression`` evaluated on ``arrays``, function by function."""
    if isinstance(expression, Operand):
        return arrays[expression.number]
    if not isinstance(expression, Element):
        return expression
    values = [
        _taken(evaluated(operand, arrays), dtype)
        for operand, dtype in zip(expression.operands, expression.types, strict=True)
    ]
    name = expression.name
    if isinstance(name, Primitive):
        return name.kernel(*values, **dict(expression.numbers))
    xp = namespace(arrays[0])
    if name == COPY:
        return values[0].astype(expression.dtype, copy=False)
    if name == SELECT:
        return xp.where(*values)
    return getattr(np, name)(*values)


def _taken(value: Any, dtype: Any) -> Any:
    """Return ``value`` in ``dtype``; Python numbers are unchanged."""
    if isinstance(value, bool | int | float):
        return np.dtype(dtype).type(value)
    return value.astype(dtype, copy=False)

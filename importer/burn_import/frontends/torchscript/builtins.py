"""Functions that are not rules: what numbers tensors and loops have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from burn_import.frontends.torch_export.builder import FLOAT64, kind_of, promoted
from burn_import.frontends.torchscript.dtypes import scalar_number, scalar_type
from burn_import.frontends.torchscript.node_writer import Place
from burn_import.frontends.torchscript.values import DEVICE, Held, Thing
from burn_ir import UnsupportedModel

if TYPE_CHECKING:
    from burn_import.frontends.torchscript.operators import Operators


def _dim(operators: Operators, place: Place, x: Held) -> Thing:
    if x.value.dims is None:
        raise UnsupportedModel("the rank of a tensor that has no known one")
    return len(x.value.dims)


def _numel(operators: Operators, place: Place, x: Held) -> Thing:
    total: Thing = 1
    for extent in operators.size(place, x):
        total = operators.call("mul", [total, extent], {}, place)
    return total


def _length(operators: Operators, place: Place, x: Held) -> Thing:
    return operators.size(place, x, 0)


def _item(operators: Operators, place: Place, x: Held) -> Thing:
    return operators.as_number(x, place)


def _tensor(
    operators: Operators, place: Place, x: Thing, dtype: Any = None, **rest: Any
) -> Thing:
    return operators.tensor(x, place, None if dtype is None else scalar_type(dtype))


def _is_floating(operators: Operators, place: Place, x: Held) -> Thing:
    return kind_of(x.value.dtype) == kind_of(FLOAT64)


def _not(operators: Operators, place: Place, x: Thing) -> Thing:
    if isinstance(x, Held):
        return operators.operator("logical_not", [x], {}, place)
    return operators.number("_operator.eq", [x, False], place)


def _range_length(
    operators: Operators, place: Place, low: Thing, high: Thing, step: Thing
) -> Thing:
    """How many rounds a loop from ``low`` to ``high`` has, where one of them varies."""
    if not isinstance(step, int) or step == 0:
        raise UnsupportedModel("a loop whose steps vary")
    ends, step = ([high, low], step) if step > 0 else ([low, high], -step)
    span = operators.call("sub", ends, {}, place)
    if step > 1:
        span = operators.call("add", [span, step - 1], {}, place)
        span = operators.call("floordiv", [span, step], {}, place)
    return span  # a loop of fewer than no rounds has none


def _derive_index(
    operators: Operators, place: Place, index: Thing, start: Thing, step: Thing
) -> Thing:
    """The number that a loop counts, in round ``index``."""
    if step != 1:
        index = operators.call("mul", [index, step], {}, place)
    return operators.call("add", [start, index], {}, place)


def scalar_of(x: Held) -> int:
    """The number that the code has for the dtype of a tensor."""
    return scalar_number(x.value.dtype)


def _promoted_type(operators: Operators, place: Place, *operands: Thing) -> int:
    """The number of the dtype that tensors and numbers promote to."""
    known = [x.value if isinstance(x, Held) else x for x in operands]
    return scalar_number(promoted(known))


#: By the names that the code has for them.
SPECIAL: Mapping[str, Callable[..., Thing]] = {
    "size": lambda operators, place, *args, **named: operators.size(
        place, *args, **named
    ),
    "dim": _dim,
    "numel": _numel,
    "len": _length,
    "item": _item,
    "tensor": _tensor,
    "is_floating_point": _is_floating,
    "device": lambda operators, place, name: DEVICE,
    "result_type": _promoted_type,
    "is_autocast_enabled": lambda operators, place: False,
    "is_grad_enabled": lambda operators, place: True,
    "__not__": _not,
    "__range_length": _range_length,
    "__derive_index": _derive_index,
}

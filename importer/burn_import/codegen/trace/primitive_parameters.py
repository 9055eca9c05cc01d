"""The parameters of a primitive, for the emission of its calls."""

from collections.abc import Sequence
from functools import cache
from inspect import Parameter, signature
from typing import Any

from burn import Tensor
from burn.primitive import Composite, Primitive
from burn_import.tracing.identifiers import literal
from burn_import.tracing.trace import Apply


def last_tensor(call: Apply) -> int:
    """Return the last position that must be positional, that of a tensor."""
    if isinstance(call.primitive, Composite):
        return 0
    positions = [i for i, arg in enumerate(call.args) if isinstance(arg, Tensor)]
    return max(positions, default=0)


@cache
def parameters(primitive: Primitive[..., Any]) -> tuple[Parameter, ...]:
    """Return the parameters of a primitive's kernel."""
    return tuple(signature(primitive.kernel, eval_str=True).parameters.values())


def default(declared: Sequence[Parameter], position: int) -> str | None:
    """Return the default of a positional parameter, or None."""
    if position >= len(declared):
        return None
    value = declared[position].default
    return None if value is Parameter.empty else literal(value)


def same_default(declared: Sequence[Parameter], name: str, value: Any) -> bool:
    """Return whether ``value`` is the default of the parameter ``name``."""
    for parameter in declared:
        if parameter.name == name and parameter.default is not Parameter.empty:
            default_value = parameter.default
            return type(default_value) is type(value) and bool(default_value == value)
    return False

"""Forms that are derived from the operators' own ``lower``.

``lower`` expresses an operator as calls of primitives. If it is a single call with the
node's operands, the node is a form of the primitive. The mapping of attributes to
arguments is found by experiment: a changed attribute changes one argument.
"""

import inspect
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, get_args, get_origin

from burn import dtypes
from burn.primitive import Primitive
from burn.tensor import Tensor
from burn_import.tracing.trace import Apply, Block, Tracer
from burn_ir.errors import InvalidOperand, Undecided
from burn_ir.op import Op, hints, operators
from burn_ir.types import Type

#: Operators that newer ones replaced.
_DEPRECATED = {"Scatter", "Upsample"}


#: Exceptions of a ``lower`` that needs constants, or operands of a certain rank.
_NOT_FOR_SYMBOLS = (
    *(AttributeError, LookupError, TypeError, ValueError),
    *(InvalidOperand, Undecided),
)


@dataclass(frozen=True)
class Inverse:
    """An ONNX node that computes one call of a primitive.

    ``operands`` are the arguments that are the node's inputs, in order,
    ``attributes`` maps other arguments to attributes, and ``fixed`` has required
    argument values. ``since`` is the first opset with the operator.
    """

    op_type: str
    since: int
    operands: tuple[str, ...]
    attributes: dict[str, str]
    fixed: dict[str, Any]


def bound(primitive: Primitive[..., Any], args: Any, static: Any) -> dict[str, Any]:
    """Return the arguments of a call by name."""
    signature = inspect.signature(primitive.kernel)
    bound_arguments = signature.bind(*args, **static)
    values: dict[str, Any] = {}
    for name, value in bound_arguments.arguments.items():
        if signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
            values |= value
        elif value is not None:
            values[name] = value
    return values


def default_of(primitive: Primitive[..., Any], name: str) -> Any:
    """Return the default of an argument, or None."""
    parameter = inspect.signature(primitive.kernel).parameters.get(name)
    if parameter is None or parameter.default is parameter.empty:
        return None
    return parameter.default


@cache
def inverses() -> dict[str, list[Inverse]]:
    """Return the forms by primitive name, the oldest operators first."""
    table: dict[str, list[Inverse]] = {}
    for (domain, name), operator in sorted(operators().items()):
        if domain or name in _DEPRECATED:
            continue
        for count in _operand_counts(operator):
            for dtype in (dtypes.float32, dtypes.bool_, dtypes.int64):
                inverse = _inverse(operator, count, dtype)
                if inverse is not None and inverse[1] not in table.get(inverse[0], ()):
                    table.setdefault(inverse[0], []).append(inverse[1])
    for forms in table.values():
        forms.sort(key=lambda form: form.since)
    return table


def _operand_counts(operator: type[Op]) -> range:
    """Return the numbers of operands that ``lower`` accepts."""
    parameters = list(inspect.signature(operator.lower).parameters.values())[1:]
    plain = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    if len(plain) != len(parameters):
        return range(0)
    required = sum(p.default is p.empty for p in plain)
    return range(max(required, 1), len(plain) + 1)


def _inverse(operator: type[Op], count: int, dtype: Any) -> tuple[str, Inverse] | None:
    base = _single_lowered_call(operator, count, dtype, {})
    if base is None:
        return None
    primitive, values, operands = base
    attributes: dict[str, str] = {}
    for name, hint in hints(operator).items():
        for other in _other_values(hint, getattr(operator, name, None)):
            changed = _single_lowered_call(operator, count, dtype, {name: other})
            if changed is None or changed[0] is not primitive:
                continue
            different = _differences(primitive, values, changed[1], operands)
            if len(different) == 1 and changed[1].get(different[0]) == other:
                attributes[different[0]] = name
                break
    rest = {k: v for k, v in values.items() if k not in {*operands, *attributes}}
    since = min(operator.versions)
    return primitive.name, Inverse(operator.onnx, since, operands, attributes, rest)


def _single_lowered_call(
    operator: type[Op], count: int, dtype: Any, attrs: dict[str, Any]
) -> tuple[Primitive[..., Any], dict[str, Any], tuple[str, ...]] | None:
    """Return the only primitive call of ``lower``, its arguments and its operands."""
    tracer, block = Tracer(), Block()
    tracer.blocks.append(block)
    symbols = [tracer.symbol(Type(dtype, (2, 3))) for _ in range(count)]
    try:
        tracer.lower(operator(**attrs), symbols)
    except _NOT_FOR_SYMBOLS:
        return None  # it needs more than operands, so it has no inverse
    if len(block.statements) != 1 or not isinstance(block.statements[0], Apply):
        return None
    call = block.statements[0]
    values = bound(call.primitive, call.args, call.static)
    by_identity = {id(v): name for name, v in values.items() if type(v) is Tensor}
    if len(by_identity) != count or any(id(s) not in by_identity for s in symbols):
        return None
    operands = tuple(by_identity[id(symbol)] for symbol in symbols)
    return call.primitive, values, operands


def _differences(
    primitive: Primitive[..., Any],
    a: dict[str, Any],
    b: dict[str, Any],
    operands: tuple[str, ...],
) -> list[str]:
    names = (a.keys() | b.keys()) - set(operands)
    return sorted(
        n
        for n in names
        if a.get(n, default_of(primitive, n)) != b.get(n, default_of(primitive, n))
    )


def _other_values(hint: Any, default: Any) -> list[Any]:
    """Return values for an attribute, to find the argument it sets."""
    if get_origin(hint) is Literal:
        return [value for value in get_args(hint) if value != default]
    if hint is float:
        return [0.375]
    return [1, (1,)] if "int" in str(hint) else []

"""Pattern matching on steps: nested expressions with names for values."""

from collections.abc import Iterator
from itertools import permutations
from typing import Any, TypeAlias

from burn.ops.elementwise import add, mul
from burn.plan.passes.graph import FLOAT32, Graph
from burn.plan.plan_ir import Slot, Step
from burn.primitive import Primitive

#: A name, a number, or a primitive with patterns of its arguments.
Pattern: TypeAlias = Any
#: The values bound to names.
Values: TypeAlias = dict[str, Any]


def matches(pattern: Pattern, step: Any, graph: Graph) -> Iterator[Values]:
    """Yield the bindings of names for which ``step`` computes ``pattern``.

    Inner results must be float32 and have no other consumer. Operands of commutative
    primitives match in either order.
    """
    return _calls(pattern, step, graph, {})


def _calls(
    pattern: Pattern, step: Any, graph: Graph, bindings: Values
) -> Iterator[Values]:
    primitive, *wanted = pattern
    if not _is_call(primitive, step) or len(step.args) != len(wanted):
        return
    orders = permutations(wanted) if primitive in (add, mul) else [wanted]
    for order in orders:
        yield from _values(order, step.args, graph, bindings)


def _is_call(primitive: Primitive[..., Any], step: Any) -> bool:
    if not isinstance(step, Step) or step.primitive is not primitive:
        return False
    return step.dtypes == (FLOAT32,) and not step.static


def _values(
    patterns: Any, args: Any, graph: Graph, bindings: Values
) -> Iterator[Values]:
    """Yield the bindings for which each argument matches its pattern."""
    if not patterns:
        yield bindings
        return
    pattern, arg = patterns[0], args[0]
    if isinstance(pattern, tuple):
        matches = _calls(pattern, graph.only_use(arg), graph, bindings)
    elif isinstance(pattern, str):
        same = type(arg) is Slot and bindings.get(pattern, arg) == arg
        matches = iter([{**bindings, pattern: arg}] if same else [])
    else:
        equal = type(arg) is type(pattern) and arg == pattern
        matches = iter([bindings] if equal else [])
    for values in matches:
        yield from _values(patterns[1:], args[1:], graph, values)

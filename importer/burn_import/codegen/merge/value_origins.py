"""Statements that compute values, by body, while bodies are unified."""

from collections.abc import Callable, Hashable

from burn_import.codegen.merge.list_calls import list_call
from burn_import.codegen.merge.unified_body import Unification
from burn_import.tracing.trace import Apply, ModuleCall, Statement, Symbol


def origin_of(run: Unification, index: int, symbol: Symbol) -> Hashable:
    """Return a key of the statement that computes a value, without its operands."""
    kind = run.kind(index, symbol)
    if kind == "carried":
        return kind, run.carried[symbol]
    if kind == "constant" and symbol.constant:
        return kind, run.bodies[index].attribute(symbol.constant)
    if kind != "statement":
        return kind
    _, statement = run.makers[index][symbol]
    call = list_call(statement)
    if call is not None:
        return "call", call.path
    if isinstance(statement, ModuleCall):
        return "call", statement.path
    name = statement.primitive.name if isinstance(statement, Apply) else ""
    return type(statement), name


def makers_of(run: Unification, index: int) -> Callable[[Symbol], Statement | None]:
    """Return the function from values of one body to what computes them."""
    return lambda symbol: run.makers[index].get(symbol, (0, None))[1]


def optional_call(run: Unification, index: int, symbol: Symbol) -> ModuleCall | None:
    """Return the call of a module that some bodies lack if it computes a value."""
    call = makers_of(run, index)(symbol)
    is_call = isinstance(call, ModuleCall) and call.path[0] in run.optional
    if not is_call or not isinstance(call, ModuleCall) or call.results is not None:
        return None
    is_single = len(call.args) == len(call.targets) == len(call.path) == 1
    return call if is_single else None

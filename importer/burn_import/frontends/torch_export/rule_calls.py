"""Rules of calls: which rule an operator has, and how it receives the arguments."""

import inspect
from collections.abc import Sequence
from keyword import iskeyword
from typing import Any

from burn.record.errors import shown
from burn_import.frontends.torch_export.aten import COMPLEX, RULES
from burn_import.frontends.torch_export.builder import Builder
from burn_import.frontends.torch_export.complex_as_real import is_complex
from burn_import.frontends.torch_export.registry import Entry
from burn_import.frontends.torch_export.unsupported import refusal_reason
from burn_ir import UnsupportedModel


def rule_of(target: str, values: Sequence[Any]) -> Entry:
    """Return the rule of a call whose operands and results are ``values``.

    Raises:
        UnsupportedModel: there is no rule; gives the reason.
    """
    with_pairs = any(map(is_complex, values))
    table = COMPLEX if with_pairs else RULES
    if target in table:
        return table[target]
    if target in RULES or target in COMPLEX:
        kinds = ("real", "complex") if with_pairs else ("complex", "real")
        raise UnsupportedModel("expected {} numbers, got {} ones".format(*kinds))
    raise UnsupportedModel(refusal_reason(target))


def call_rule(entry: Entry, builder: Builder, args: Sequence[tuple[str, Any]]) -> Any:
    """Return the result of a rule for a call.

    Raises:
        UnsupportedModel: the rule does not support an argument.
    """
    parameters = inspect.signature(entry.rule).parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return entry.rule(builder)
    names = list(parameters)[1:]
    positional = [value for key, value in args if not key]
    named = {f"{key}_" if iskeyword(key) else key: x for key, x in args if key}
    if entry.mutates == "self" and names and "self" not in names and "self" in named:
        named[names[0]] = named.pop("self")  # the functional form calls it otherwise
    unknown = sorted(set(named) - set(names))
    ignored = [key for key in unknown if key in WITHOUT_EFFECT or named[key] is None]
    if set(unknown) - set(ignored):
        raise UnsupportedModel(f"expected arguments {names}, got {shown(unknown)}")
    supported = {key: value for key, value in named.items() if key not in ignored}
    return entry.rule(builder, *positional, **supported)


#: Arguments that change no value.
WITHOUT_EFFECT = frozenset(
    {
        *("device", "layout", "pin_memory", "memory_format", "non_blocking", "copy"),
        *("cudnn_enable", "cudnn_enabled", "requires_grad", "generator"),
    }
)

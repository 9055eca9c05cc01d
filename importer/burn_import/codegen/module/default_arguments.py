"""Defaults of constructor parameters that most calls give one value."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from burn_import.codegen import syntax
from burn_import.codegen.class_text import ClassText
from burn_import.codegen.module.constructor_calls import Constructor

#: Options of convolutions, and the value that they have unless it is given.
WINDOW_DEFAULTS = {"stride": "1", "dilation": "1", "groups": "1"}
#: Minimum number of calls that leave an argument out.
FEWEST = 3


def with_default_arguments(texts: Sequence[ClassText]) -> list[ClassText]:
    """Return the classes with defaults for flags and for options of convolutions.

    A flag is by default what most calls pass; a stride, a dilation and groups are 1, as
    in ``nn.Conv2d``, if at least half of the calls pass that. Calls leave out arguments
    that equal the default.
    """
    if not any(map(_may_have_defaults, texts)):
        return list(texts)
    constructors = [Constructor.of(text) for text in texts]
    calls: dict[str, list[ast.Call]] = {}
    for constructor in constructors:
        for call in _calls(constructor):
            calls.setdefault(syntax.called_name(call), []).append(call)
    steps = " ".join(text.steps for text in texts)
    for constructor in constructors[1:]:
        name = constructor.text.name
        if f"{name}(" not in steps and "=" not in constructor.text.constructor:
            _set_defaults(constructor, calls.get(name, []))
    return list(map(_written, constructors))


def _may_have_defaults(text: ClassText) -> bool:
    """Return whether a constructor may have parameters with usual values."""
    words = (": bool", *(f"{name}: int" for name in WINDOW_DEFAULTS))
    return any(word in text.constructor for word in words)


def _calls(constructor: Constructor) -> Iterator[ast.Call]:
    for statement in constructor.statements:
        yield from (n for n in ast.walk(statement) if isinstance(n, ast.Call))


def _set_defaults(constructor: Constructor, calls: Sequence[ast.Call]) -> None:
    """Give parameters their defaults, and remove equal arguments of ``calls``."""
    for parameter in constructor.parameters:
        arguments = [_keyword(call, parameter.name) for call in calls]
        given = [one for one in arguments if one is not None]
        if len(given) < len(calls):  # a call passes it by position
            continue
        values = Counter(ast.unparse(one.value) for one in given)
        if parameter.kind == "bool":
            default, count = next(iter(values.most_common(1)), ("", 0))
            is_usual = default in ("True", "False") and 2 * count > len(calls)
        else:
            default = WINDOW_DEFAULTS.get(parameter.name, "")
            count = values[default]
            is_usual = bool(default) and 2 * count >= len(calls)
        if is_usual and count >= FEWEST:
            parameter.default = default
            _remove(calls, parameter.name, default)
    # Parameters with defaults are the last.
    constructor.parameters.sort(key=lambda parameter: parameter.default != "")


def _keyword(call: ast.Call, name: str) -> ast.keyword | None:
    return next((one for one in call.keywords if one.arg == name), None)


def _remove(calls: Sequence[ast.Call], name: str, value: str) -> None:
    for call in calls:
        call.keywords = [
            one
            for one in call.keywords
            if one.arg != name or ast.unparse(one.value) != value
        ]


def _written(constructor: Constructor) -> ClassText:
    """Return the class; without new defaults its signature stays as it is."""
    written = constructor.written()
    if any(parameter.default for parameter in constructor.parameters):
        return written
    return replace(written, constructor=constructor.text.constructor)

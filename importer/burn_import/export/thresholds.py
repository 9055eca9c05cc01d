"""Sizes at which a module's code may choose between extents."""

from __future__ import annotations

import ast
import inspect
import textwrap
from functools import cache
from typing import Any

from burn.nn import Module

_CHOICES = frozenset({"max", "min"})


def sizes_beyond(model: Any) -> tuple[int, ...]:
    """Return sizes above all numbers in ``max`` and ``min`` of a model's code.

    Runs with them show whether an extent that was equal in smaller runs grows. The
    result is () for code without such calls.
    """
    codes = {model}
    if isinstance(model, Module):
        codes = {type(model), *(type(module) for _, module in model.modules())}
    numbers = [number for code in codes for number in _numbers(code)]
    if not numbers:
        return ()
    most = max(numbers)
    # A quotient by this number steps between the sizes of a pair.
    return 2 * most - 1, 2 * most, 5 * most - 1, 5 * most


@cache
def _numbers(code: Any) -> tuple[int, ...]:
    """Return the integers in calls of ``max`` and ``min`` of a class or function."""
    if str(getattr(code, "__module__", "")).partition(".")[0] == "burn":
        return ()
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(code)))
    except (OSError, TypeError, SyntaxError):
        return ()
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in _CHOICES
    ]
    inner = (one for call in calls for one in ast.walk(call))
    constants = [one.value for one in inner if isinstance(one, ast.Constant)]
    numbers = [abs(n) for n in constants if isinstance(n, int) and n is not True]
    return tuple(numbers) if numbers or not calls else (1,)

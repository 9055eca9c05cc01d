"""Options that do not fit: themselves, each other, or the model."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from burn_ir.errors import ModelError, Problem

_SHOWN = 3


class WrongOptions(ModelError):  # noqa: N818  named like the other kinds of problems
    """Options that cannot be applied to this model; all reasons are listed."""


def unknown(kind: str, name: str, valid: Iterable[str]) -> Problem:
    """The problem that there is no ``kind`` called ``name``, with names like it."""
    names = [one for one in valid if one]
    near = difflib.get_close_matches(name, names, _SHOWN, 0.65)
    # The end of a long path is what people remember of it.
    near += [one for one in names if len(name) > 2 and one.endswith(name)]
    hint = ", ".join(map(repr, dict.fromkeys(near[: 2 * _SHOWN])))
    if hint:
        hint = f"did you mean {hint}?"
    elif len(names) <= 2 * _SHOWN:
        hint = f"there are {', '.join(map(repr, names))}"
    return Problem(f"expected the name of {kind}, got {name!r}", hint=hint)

"""Errors about options: invalid, contradictory, or not applicable to the model."""

import difflib
from collections.abc import Iterable

from burn_ir.errors import ModelError, Problem

_SHOWN = 3


class WrongOptions(ModelError):  # noqa: N818  named like the other kinds of errors
    """Raised when options cannot be applied to a model; lists all reasons."""


def unknown(kind: str, name: str, valid: Iterable[str]) -> Problem:
    """Return the problem that no ``kind`` is called ``name``, with similar names."""
    names = [choice for choice in valid if choice]
    near = difflib.get_close_matches(name, names, _SHOWN, 0.65)
    # Users tend to remember the last segment of a long path.
    near += [choice for choice in names if len(name) > 2 and choice.endswith(name)]
    hint = ", ".join(map(repr, dict.fromkeys(near[: 2 * _SHOWN])))
    if hint:
        hint = f"did you mean {hint}?"
    elif len(names) <= 2 * _SHOWN:
        hint = f"there are {', '.join(map(repr, names))}"
    return Problem(f"expected the name of {kind}, got {name!r}", hint=hint)

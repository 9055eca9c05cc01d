"""What is wrong with inputs of a model, or with the sizes of their extents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from burn.dtypes import DType
from burn_ir.dim import Dim


class InputsError(ValueError):
    """Inputs that do not fit the model, or that cannot be drawn at random.

    Args:
        message: What is wrong.
        hint: What to do, "" where the message says that.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


def check_sizes(
    sizes: Mapping[str, int], types: Mapping[str, tuple[DType, Sequence[Dim | str]]]
) -> None:
    """Return if every name in ``sizes`` is that of an extent.

    Raises:
        InputsError: one is not; lists the names that there are.
    """
    names = named_extents(types)
    if unknown := sorted(sizes.keys() - names):
        raise InputsError(
            f"no extent is called {', '.join(map(repr, unknown))}",
            (
                f"There are {', '.join(sorted(names))}."
                if names
                else "All extents of the inputs are fixed."
            ),
        )


def named_extents(
    types: Mapping[str, tuple[DType, Sequence[Dim | str]]],
) -> set[str]:
    """Return the names of extents that may be any number, and those in multiples."""
    texts = {
        str(n) for _, shape in types.values() for n in shape if not isinstance(n, int)
    }
    return texts | {text.rpartition(" * ")[2] for text in texts}

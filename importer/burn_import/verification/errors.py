"""Errors about inputs of a model, or about the sizes of their dimensions."""

from collections.abc import Mapping, Sequence

from burn.dtypes import DType
from burn_ir.dim import Dim


class InputsError(ValueError):
    """Inputs that do not fit the model, or that cannot be drawn at random.

    Args:
        message: The problem.
        hint: A remedy, "" if the message contains it.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


def check_sizes(
    sizes: Mapping[str, int], types: Mapping[str, tuple[DType, Sequence[Dim | str]]]
) -> None:
    """Check that every name in ``sizes`` is a dimension.

    Raises:
        InputsError: one is not; lists the existing names.
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


def named_extents(types: Mapping[str, tuple[DType, Sequence[Dim | str]]]) -> set[str]:
    """Return the names of dimensions, also of those that occur only in multiples."""
    texts = {
        str(n) for _, shape in types.values() for n in shape if not isinstance(n, int)
    }
    return texts | {text.rpartition(" * ")[2] for text in texts}

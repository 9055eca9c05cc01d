"""The one error of this package, and how untrusted names are shown in it."""


class RecordError(ValueError):
    """A record that cannot be read or written as asked.

    The message names the file, the tensor, what was expected and what was
    found. Errors of the operating system (a missing file, a full disk) stay
    ``OSError``.
    """


#: Values in a header of JSON: 100 000 tensors of rank 3 have as many.
MOST_VALUES = 1_000_000
LONGEST_SHOWN = 80
MOST_SHOWN = 10


def check_values(text: bytes, label: str) -> None:
    """Refuse JSON that would become more objects than a header or index needs.

    Raises:
        RecordError: ``text``, which the message calls ``label``, has more values.
    """
    if text.count(b",") + text.count(b":") > MOST_VALUES:
        raise RecordError(f"{label} has more than {MOST_VALUES} values")


def shown(value: object) -> str:
    """The ASCII literal of a value read from a file, cut to 80 characters.

    Names in a file may hold terminal escapes or bidirectional marks, so they
    are printed as escaped ASCII only.
    """
    text = ascii(value[:LONGEST_SHOWN] if isinstance(value, str) else value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 3]}..."


def joined(problems: list[str]) -> str:
    """The problems as one message: one on its line, several as a list."""
    if len(problems) == 1:
        return problems[0]
    lines = [f"{len(problems)} defects", *problems[:MOST_SHOWN]]
    if len(problems) > MOST_SHOWN:
        lines.append(f"and {len(problems) - MOST_SHOWN} more")
    return "\n  ".join(lines)

"""The error of this package, and escaping of untrusted names in messages."""


class RecordError(ValueError):
    """A record cannot be read or written as requested.

    The message names the file, the tensor, the expected and the actual value. Errors of
    the operating system (a missing file, a full disk) remain ``OSError``.
    """


#: The maximum number of values in a JSON header, enough for 100 000 tensors.
MOST_VALUES = 1_000_000
LONGEST_SHOWN = 80
MOST_SHOWN = 10


def check_values(text: bytes, label: str) -> None:
    """Reject JSON with more values than a header or index needs.

    Raises:
        RecordError: ``text``, which the message calls ``label``, has more values.
    """
    if text.count(b",") + text.count(b":") > MOST_VALUES:
        raise RecordError(f"{label} has more than {MOST_VALUES} values")


def shown(value: object) -> str:
    """Return an ASCII literal of a value from a file, cut to 80 characters.

    Names in a file may contain terminal escapes or bidirectional marks, so they are
    printed as escaped ASCII.
    """
    text = ascii(value[:LONGEST_SHOWN] if isinstance(value, str) else value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 3]}..."


def joined(problems: list[str]) -> str:
    """Return the problems as one message: one inline, several as a list."""
    if len(problems) == 1:
        return problems[0]
    lines = [f"{len(problems)} defects", *problems[:MOST_SHOWN]]
    if len(problems) > MOST_SHOWN:
        lines.append(f"and {len(problems) - MOST_SHOWN} more")
    return "\n  ".join(lines)

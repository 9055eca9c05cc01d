"""Formatting of generated source by black, statement by statement where that suffices.

Emitted modules have one statement a line and the blank lines that black asks for. Only
lines that black may change are passed to it, which takes a sixth of the time of whole
modules.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

#: Maximum width of a line.
WIDTH = 88
#: Text that black may rewrite in a line that is short enough: quotes, exponents,
#: operators whose spaces depend on the operands, and redundant parentheses.
_UNSETTLED = re.compile(
    r"'|\d[eE]\+|\dE|\*\*|;|\\|\blambda\b|\[[^\]]*:|,\s*(?:[\])}=]|in\b)|return .*,$"
    r"|(?:\breturn|\bin|\bnot|\bdel|\bfor|\bif|\bwhile|=|\(|\bassert) ?\("
)
_COMPOUND = re.compile(r"(?:for|if|while|with|def|class)\b")
_CHECKS = "    @nn.check_inputs("
_QUOTES = '"""'
_SURPLUS = re.compile(r"\n{4,}(?=class |def |@)")
#: Docstrings that black may rewrite, their quotes in other strings, and whitespace
#: that it removes.
_IRREGULAR = re.compile(
    r'[ \t]$|\t|^ *"""[ "\\]|[ "\\]"""$|^.{86,}"""$|^ *[^ "\n].*"""(?!$)', re.MULTILINE
)


def format_source(text: str) -> str:
    """Return ``text`` formatted by black."""
    return _format(text, WIDTH)


def format_emitted(text: str) -> str:
    """Return the text of an emitted module as ``formatted`` returns it."""
    from black.parsing import InvalidInput

    text = _SURPLUS.sub("\n\n\n", text.rstrip("\n") + "\n")
    if _IRREGULAR.search(text):
        return format_source(text)
    try:
        return "\n".join(_format_lines(text.split("\n")))
    except InvalidInput:  # a line that is no statement of its own, such as an elif
        return format_source(text)


def _format_lines(lines: list[str]) -> Iterator[str]:
    """Yield the lines of a module as black writes them."""
    rows = iter(lines)
    is_text = False
    for line in rows:
        marks = line.count(_QUOTES)
        if line == _CHECKS:
            yield from _format_checks(rows)
        elif is_text or marks or not _is_unsettled(line):
            yield line
        else:
            yield from _format_line(line)
        is_text ^= marks % 2 == 1


def _is_unsettled(line: str) -> bool:
    return len(line) > WIDTH or _UNSETTLED.search(line) is not None


def _format_checks(rows: Iterator[str]) -> Iterator[str]:
    """Yield the decorator whose remaining lines are the next of ``rows``."""
    call = [_CHECKS.strip()]
    while call[-1] != ")":
        call.append(next(rows).strip())
    line = "".join(call[:1] + [" ".join(call[1:-1])] + call[-1:])
    if "#" not in line and len(_CHECKS) - len(call[0]) + len(line) <= WIDTH:
        yield from _format_line(f"    {line}")
        return
    yield from _indented(_format_statement("\n".join(call), WIDTH - 4), "    ")


def _format_line(line: str) -> Iterator[str]:
    statement = line.lstrip()
    indent = line[: len(line) - len(statement)]
    return _indented(_format_statement(statement, WIDTH - len(indent)), indent)


def _indented(lines: tuple[str, ...], indent: str) -> Iterator[str]:
    return (indent + line if line else line for line in lines)


@lru_cache(maxsize=1 << 12)
def _format_statement(statement: str, width: int) -> tuple[str, ...]:
    """Return the lines of a statement without its body, in ``width`` columns."""
    body = "pass"
    if statement.startswith("@"):
        text = _format(f"{statement}\ndef f():\n    {body}\n", width)
        return tuple(text.rstrip("\n").split("\n")[:-2])
    if not _COMPOUND.match(statement):
        return tuple(_format(statement, width).rstrip("\n").split("\n"))
    text = _format(f"{statement}\n    {body}\n", width)
    return tuple(text.rstrip("\n").split("\n")[:-1])


def _format(text: str, width: int) -> str:
    from black import format_str
    from black.mode import Mode, TargetVersion

    mode = Mode(line_length=width, target_versions={TargetVersion.PY311})
    return format_str(text, mode=mode)

"""The code of a page, as units that are executed one by one."""

import re
from pathlib import Path
from typing import NamedTuple

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
#: Other languages (YAML, rST) are not executed.
LANGUAGES = ("python", "output", "toml", "sh", "console")


class Unit(NamedTuple):
    """A block of Python, TOML or expected output, or one command of a shell."""

    page: str
    line: int
    language: str
    text: str

    @property
    def place(self) -> str:
        """Return where the unit is, for messages."""
        return f"{self.page}:{self.line}"


def units(root: Path, page: str) -> list[Unit]:
    """Return what a page executes, in its order."""
    text = (root / page).read_text("utf-8")
    found = []
    for block in BLOCK.finditer(text):
        language, content = block.groups()
        line = text.count("\n", 0, block.start()) + 2
        if language in ("sh", "console"):
            found += _commands(page, line, language, content)
        elif language in LANGUAGES:
            found.append(Unit(page, line, language, content))
    return found


def _commands(page: str, line: int, language: str, content: str) -> list[Unit]:
    """Return each command; one of a console has its output on the lines after it."""
    if language == "console":
        return [
            Unit(page, line, language, command)
            for command in re.split(r"^\$ ", content, flags=re.MULTILINE)[1:]
        ]
    joined = content.replace("\\\n", " ").splitlines()
    return [Unit(page, line, language, c) for c in joined if c.strip()]

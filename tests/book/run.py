"""Executes the code of one page in the working folder: ``python -m tests.book.run``.

It runs in a process of its own, since pages register operators, rules and passes.
"""

import contextlib
import importlib
import io
import re
import shlex
import sys
import tomllib
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from burn_import.cli.command import burn_import
from tests.book.blocks import Unit, units
from tests.book.fixtures import prepare
from tests.book.reasons import reason_against
from tests.test_house import ROOT

#: A block that begins so is the content of a file beside the program.
FILE = re.compile(r"# ([\w./]+\.py)\n")

#: A comment behind a command that is meant to fail.
EXIT_CODE = re.compile(r"# exit code (\d+)")


class Page:
    """The names and the printed text that blocks of a page share."""

    def __init__(self, names: dict[str, Any]) -> None:
        self.names = names
        self.printed = ""

    def run(self, unit: Unit) -> None:
        """Execute a unit.

        Raises:
            AssertionError: a command failed, or printed something else.
        """
        getattr(self, f"_run_{unit.language}")(unit)

    def _run_python(self, unit: Unit) -> None:
        output = io.StringIO()
        file = FILE.match(unit.text)
        with contextlib.redirect_stdout(output):
            if file and "/" in file[1]:
                _run_excerpt(unit, file[1])
            elif file:
                Path(file[1]).write_text(unit.text, "utf-8")
                self._run_program(file[1])
            else:
                _execute(unit, self.names)
        self.printed = output.getvalue()

    def _run_output(self, unit: Unit) -> None:
        assert self.printed == unit.text, f"expected\n{unit.text}got\n{self.printed}"

    def _run_toml(self, unit: Unit) -> None:
        tomllib.loads(unit.text)

    def _run_sh(self, unit: Unit) -> None:
        words = shlex.split(unit.text, comments=True)
        assert words[0] == "burn-import", f"{unit.text}: no such command here"
        answer = CliRunner().invoke(burn_import, words[1:])
        named = EXIT_CODE.search(unit.text)
        expected = int(named[1]) if named else 0
        assert answer.exit_code == expected, f"{unit.text}\n{answer.output}"
        self.printed = answer.output

    def _run_program(self, file: str) -> None:
        importlib.invalidate_caches()
        self.names.update(vars(importlib.import_module(Path(file).stem)))

    def _run_console(self, unit: Unit) -> None:
        command, _, expected = unit.text.partition("\n")
        self._run_sh(unit._replace(text=command))
        assert not expected or self.printed == expected, self.printed


def _execute(unit: Unit, names: dict[str, Any]) -> None:
    text = "\n" * (unit.line - 1) + unit.text
    exec(compile(text, unit.page, "exec"), names)


def _run_excerpt(unit: Unit, path: str) -> None:
    """Execute what a page adds to a file, unless the file has it already."""
    _, body = unit.text.split("\n", 1)
    file = ROOT / path
    if not file.is_file():
        _execute(unit, {"__name__": "page"})
    elif _unindented(body) not in _unindented(file.read_text("utf-8")):
        package = re.sub(r"^(importer|ir|templates|runtime)/", "", path)
        module = importlib.import_module(package.removesuffix(".py").replace("/", "."))
        _execute(unit, dict(vars(module)))


def _unindented(text: str) -> str:
    return "\n".join(line.strip() for line in text.splitlines())


def main(name: str) -> None:
    """Run a page and print how many units were executed."""
    sys.path.insert(0, "")
    page = Page({"__name__": "page", **prepare(name)})
    count = 0
    for unit in units(ROOT, name):
        if reason_against(unit) is None:
            try:
                page.run(unit)
            except AssertionError as error:
                raise AssertionError(f"{unit.place}: {error}") from None
            count += 1
    print(f"{count} executed")


if __name__ == "__main__":
    main(sys.argv[1])

"""The README: its first screen is real, and its table of extras is complete."""

import re
import tomllib
from pathlib import Path

import onnx
from click.testing import CliRunner

from burn_import.cli.command import burn_import
from burn_import.options import Options
from burn_import.pipeline import import_model
from tests.test_house import ROOT

README = (ROOT / "README.md").read_text("utf-8")
DIGITS = ROOT / "models" / "digits" / "digits.onnx"
SCREEN = README[: README.index("</table>")]


def block(language: str) -> str:
    """Return the only code block of a language within the table."""
    (code,) = re.findall(rf"<td>\n\n```{language}\n(.*?)```", SCREEN, re.DOTALL)
    return str(code)


def statements(text: str) -> list[str]:
    """Return the lines of a source without docstrings."""
    return [line for line in text.splitlines() if line.strip() and '"""' not in line]


def test_the_class_is_what_the_importer_writes() -> None:
    source = import_model(DIGITS, Options(class_name="Net", stem="net")).text
    classes = source[source.index("class Net(") :]
    assert statements(block("python")) == statements(classes)


def test_the_graph_is_that_of_the_file() -> None:
    graph = onnx.load(DIGITS).graph
    nodes = [node for node in graph.node if node.op_type != "Constant"]
    shown = block("").splitlines()
    assert [line.split()[0] for line in shown[1:-1]] == [node.op_type for node in nodes]
    stored = {tensor.name for tensor in graph.initializer}
    for line, node in zip(shown[1:-1], nodes, strict=True):
        weights = [name for name in node.input if name in stored]
        listed = line.split(maxsplit=1)[1:]
        names = listed[0].removesuffix(", ...").split(", ") if listed else []
        assert names == weights[: len(names)] and bool(names) == bool(weights)


def test_the_commands_of_the_first_screen(tmp_path: Path) -> None:
    (line,) = re.findall(r"```sh\nburn-import (.*)\n```", SCREEN)
    options = [word.replace("app/", f"{tmp_path}/app/") for word in line.split()]
    options[0] = str(ROOT / options[0])
    answer = CliRunner().invoke(burn_import, options)
    assert answer.exit_code == 0, answer.output
    assert (tmp_path / "app" / "net.safetensors").is_file()


def test_the_table_lists_every_extra_of_the_runtime() -> None:
    project = tomllib.loads((ROOT / "runtime" / "pyproject.toml").read_text("utf-8"))
    table = README[README.index("| extra |") :].partition("\n\n")[0]
    cells = [row.split("|")[1] for row in table.splitlines()[2:]]
    listed = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]
    assert sorted(listed) == sorted(project["project"]["optional-dependencies"])
    assert cells == sorted(cells)

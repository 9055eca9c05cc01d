"""Each example has a page whose commands exist and whose picture is shown."""

import re
from pathlib import Path

import pytest

from tests.book.blocks import units
from tests.test_house import ROOT, tracked

EXAMPLES = sorted(path.parent for path in tracked("examples/*/run.py"))
PICTURES = ("web", "faces", "voice", "operator")
OPTION = re.compile(r"(?<=\s)--[a-z]+\b")


def commands(folder: Path) -> list[str]:
    """Return the commands on the page of an example."""
    page = (folder / "README.md").relative_to(ROOT).as_posix()
    return [unit.text for unit in units(ROOT, page) if unit.language == "sh"]


@pytest.mark.parametrize("folder", EXAMPLES, ids=lambda folder: folder.name)
def test_the_page_says_how_to_run_the_example(folder: Path) -> None:
    program = f"python examples/{folder.name}/run.py"
    calls = [command for command in commands(folder) if program in command]
    assert calls
    text = (folder / "run.py").read_text("utf-8")
    for option in OPTION.findall(" ".join(calls)):
        assert f'"{option}"' in text, option
    assert (folder / "README.md").read_text("utf-8").startswith(f"# {folder.name}\n")


def test_the_index_lists_every_example_once() -> None:
    index = (ROOT / "examples" / "README.md").read_text("utf-8")
    listed = re.findall(r"^- \[(\w+)\]\((\w+)/README\.md\): ", index, re.MULTILINE)
    assert sorted(listed) == [(folder.name, folder.name) for folder in EXAMPLES]


@pytest.mark.parametrize("name", PICTURES)
def test_the_page_shows_the_picture(name: str) -> None:
    text = (ROOT / "examples" / name / "README.md").read_text("utf-8")
    assert f"](../../docs/images/{name}.png)" in text

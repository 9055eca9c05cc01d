"""Files, folders and Python names that the documentation mentions exist."""

import re
from functools import cache
from pathlib import Path

import pytest

from tests.test_house import PACKAGES, ROOT, tracked

PAGES = sorted(tracked("*.md"))
#: Pages about one package name its files without the folders around them.
PATH = re.compile(r"`((?:[\w.-]+/)+(?:[\w-]+\.(?:py|md|json|toml|txt))?|[\w-]+\.py)`")
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)\s#]*)(#[^)\s]*)?\)")
TEST = re.compile(r"`(test_\w+)`")
NAME = re.compile(r"`((?:burn|burn_ir|burn_import)(?:\.\w+)+)[`(]")
CODE_BLOCK = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
#: Names of files that examples write or that a reader creates.
EXAMPLES = frozenset(
    {
        "numpy.py",
        "burn.py",
        "generated/",
        "net.py",
        "net/",
        "app/net.py",
        "model.py",
        "my_operators.py",
        "docs/",
        "app/",
    }
)


@cache
def code_paths() -> frozenset[str]:
    """Return every path, and every ending of it, of a tracked file or its folders."""
    paths = set()
    for file in tracked():
        parts = file.relative_to(ROOT).parts
        whole = ["/".join(parts)]
        whole += ["/".join(parts[:length]) + "/" for length in range(1, len(parts))]
        for path in whole:
            pieces = path.rstrip("/").split("/")
            ending = "/" if path.endswith("/") else ""
            paths |= {"/".join(pieces[i:]) + ending for i in range(len(pieces))}
    return frozenset(paths)


def module_file(dotted: str) -> tuple[Path, list[str]] | None:
    """Return the file of the longest module in a dotted name, and what remains."""
    package, *parts = dotted.split(".")
    for length in range(len(parts), -1, -1):
        base = PACKAGES[package].joinpath(*parts[:length])
        for path in (base.with_suffix(".py"), base / "__init__.py"):
            if path.is_file():
                return path, parts[length:]
    return None


def missing_paths(text: str) -> list[str]:
    """Return the paths in backticks that are no file or folder."""
    prose = CODE_BLOCK.sub("", text)
    return [
        path
        for path in PATH.findall(prose)
        if path not in code_paths() and path not in EXAMPLES
    ]


def missing_names(text: str) -> list[str]:
    """Return the dotted names in backticks that their module does not mention."""
    missing = []
    for dotted in NAME.findall(CODE_BLOCK.sub("", text)):
        if dotted in EXAMPLES:
            continue
        module = module_file(dotted)
        assert module is not None, dotted
        path, rest = module
        if rest and not re.search(rf"\b{rest[0]}\b", path.read_text("utf-8")):
            missing.append(dotted)
    return missing


@cache
def all_test_functions() -> frozenset[str]:
    """Return the names of all test functions."""
    texts = (path.read_text("utf-8") for path in tracked("tests/*.py"))
    pattern = re.compile(r"^ *def (test_\w+)", re.MULTILINE)
    return frozenset(name for text in texts for name in pattern.findall(text))


def anchors(path: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", path.read_text("utf-8"), re.MULTILINE)
    words = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {"#" + heading.replace(" ", "-") for heading in words}


def broken_links(path: Path) -> list[str]:
    """Return the relative links of a page that lead nowhere."""
    broken = []
    for target, anchor in LINK.findall(path.read_text("utf-8")):
        file = path.parent / target if target else path
        is_page = file.suffix == ".md" and file.is_file()
        if not file.exists() or (is_page and anchor and anchor not in anchors(file)):
            broken.append(target + anchor)
    return broken


def page_id(path: Path) -> str:
    """Return the path of a page in the repository."""
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_paths_in_pages_exist(page: Path) -> None:
    assert not missing_paths(page.read_text("utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_names_in_pages_exist(page: Path) -> None:
    assert not missing_names(page.read_text("utf-8"))


def test_tests_in_pages_exist() -> None:
    named = {n for page in PAGES for n in TEST.findall(page.read_text("utf-8"))}
    assert len(named) > 20 and named - all_test_functions() == set()


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_links_in_pages_lead_somewhere(page: Path) -> None:
    assert not broken_links(page)


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("`passes/cleanup/cse.py` and `burn_ir/ops/`", []),
        ("`passes/merge.py` and `emit/`", ["passes/merge.py", "emit/"]),
        ("```\n`passes/merge.py`\n```", []),
    ],
)
def test_missing_paths_are_found(text: str, missing: list[str]) -> None:
    assert missing_paths(text) == missing


def test_missing_names_are_found() -> None:
    assert missing_names("`burn.nn.Conv2d` and `burn.ops.conv(x)`") == []
    assert missing_names("`burn.nn.Conv2e`") == ["burn.nn.Conv2e"]

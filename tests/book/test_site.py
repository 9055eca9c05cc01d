"""The book is built without a warning, and its links lead somewhere."""

import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.test_house import ROOT, tracked

HREF = re.compile(r'<a [^>]*href="([^"]*)"')
IDENTIFIER = re.compile(r'\bid="([^"]+)"')


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the pages; a warning of Sphinx is a failure."""
    for module in ("sphinx", "furo", "myst_parser"):
        pytest.importorskip(module)
    folder = tmp_path_factory.mktemp("book")
    command = ["-m", "sphinx", "-q", "-W", "--keep-going", "-c", f"{ROOT}/docs"]
    # Without Sphinx's own lists of the objects on each page: a quarter of the time.
    command += ["-D", "toc_object_entries=0"]
    answer = subprocess.run(
        [sys.executable, *command, str(ROOT), str(folder)],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert answer.returncode == 0, answer.stderr
    return folder


@cache
def identifiers(page: Path) -> frozenset[str]:
    """Return the identifiers in an HTML page, which many links lead to."""
    return frozenset(IDENTIFIER.findall(page.read_text("utf-8")))


def broken_links(page: Path) -> list[str]:
    """Return the local links of an HTML page that lead to no file or anchor."""
    broken = []
    for link in HREF.findall(page.read_text("utf-8")):
        parts = urlsplit(link)
        if parts.scheme:
            continue
        target = page.parent / unquote(parts.path) if parts.path else page
        anchor = unquote(parts.fragment)
        if not target.is_file() or (anchor and anchor not in identifiers(target)):
            broken.append(link)
    return broken


@pytest.mark.thorough
def test_the_book_is_whole(site: Path) -> None:
    """One test, so that only one process of pytest-xdist builds the book."""
    pages = [path.relative_to(ROOT).with_suffix(".html") for path in tracked("*.md")]
    assert [page for page in pages if not (site / page).is_file()] == []
    assert 'url=docs/README.html"' in (site / "index.html").read_text("utf-8")
    broken = {page.name: broken_links(page) for page in site.rglob("*.html")}
    assert {name: links for name, links in broken.items() if links} == {}
    reference = (site / "docs" / "api" / "nn.html").read_text("utf-8")
    assert 'id="burn.nn.Conv2d"' in reference
    assert len(re.findall(r'<dt class="sig', reference)) > 100


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "a.html"
    page.write_text('<a href="#x">x</a><a href="b.html">b</a><p id="y">', "utf-8")
    assert broken_links(page) == ["#x", "b.html"]

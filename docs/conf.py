"""Settings of Sphinx for the book: ``sphinx-build -W -c docs . FOLDER``."""

import re
import runpy
from pathlib import Path

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx
from sphinx.highlighting import lexers

ROOT = Path(__file__).parents[1]
#: The page of contents, and a page with contents of its own.
CONTENTS = "docs/README"
EXAMPLES = "examples/README"

project = "burn-import"
author = copyright = "The burn-import authors"
release = runpy.run_path(str(ROOT / "runtime/burn/version.py"))["__version__"]

root_doc = CONTENTS
include_patterns = ["*.md", "*/README.md", "*/*/README.md", "docs/**"]
exclude_patterns = [".*", "**/generated", "docs/theme"]
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
nitpicky = False

myst_heading_anchors = 4
myst_all_links_external = False
autodoc_member_order = "groupwise"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True

html_theme = "furo"
html_title = f"burn-import {release}"
templates_path = ["theme"]
html_static_path = ["theme/site.css"]
html_css_files = ["site.css"]
html_additional_pages = {"index": "redirect.html"}
html_copy_source = False

# Pygments has no lexer for Ninja's files, which other renderers highlight.
lexers["ninja"] = TextLexer()

SECTION = re.compile(r"^## (.*)\n((?:.*\n)*?)(?=^## |\Z)", re.MULTILINE)
LINK = re.compile(r"^- \[([^]]*)\]\(([^)#]*\.md)\)", re.MULTILINE)


def add_toctrees(app: Sphinx, page: str, source: list[str]) -> None:
    """Add to each section of the contents a navigation entry for every link in it."""
    if page in (CONTENTS, EXAMPLES):
        source[0] = SECTION.sub(_with_toctree, source[0])


def _with_toctree(section: re.Match[str]) -> str:
    entries = "".join(f"{title} <{path}>\n" for title, path in LINK.findall(section[0]))
    options = f":hidden:\n:caption: {section[1]}\n"
    return f"{section[0]}\n```{{toctree}}\n{options}\n{entries}```\n\n"


def setup(app: Sphinx) -> None:
    """Register the hook of the contents."""
    app.connect("source-read", add_toctrees)

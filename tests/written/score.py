"""``python -m tests.written.score``: what a reviewer would count in generated sources.

The models are those under ``tests/golden`` and, where it is at hand, those of the zoo.
One line a model and the totals are printed. Sources are kept in a folder, by default a
temporary one of this state of the importer, so that a second call only measures:

    python -m tests.written.score --models 'arch/*dynamo*' --worst twins
    python -m tests.written.score --totals --list floats
    python -m tests.written.score --sources before
"""

from __future__ import annotations

import argparse
import ast
from collections.abc import Iterator, Sequence
from dataclasses import fields
from fnmatch import fnmatch
from hashlib import sha256
from pathlib import Path
from tempfile import gettempdir

import burn_import
import burn_ir
import burn_templates
from burn_import.options import Options
from burn_import.pipeline import import_model
from burn_ir import ModelError
from tests.written.measures import LISTED, Measures, measure

ROOT = Path(__file__).parent.parent.parent
GOLDEN = ROOT / "tests" / "golden"
ZOO = ROOT.parent / "shared" / "zoo"
#: Folders of the zoo with models; the others have files that are wrong.
FOLDERS = ("arch", "real", "quant", "pytorch", "sklearn")
SUFFIXES = frozenset({".onnx", ".pt", ".pt2", ".pth", ".safetensors", ".bin"})
#: What is kept of a model that cannot be imported.
REFUSED = "# refused: "
NAMES = tuple(one.name for one in fields(Measures))


def models(zoo: Path, pattern: str) -> Iterator[tuple[str, Path]]:
    """Yield the models that are at hand, by name."""
    for path in sorted(GOLDEN.glob("*/model.onnx")):
        name = f"golden/{path.parent.name}"
        if fnmatch(name, pattern):
            yield name, path
    for folder in FOLDERS:
        for path in sorted((zoo / folder).rglob("*")):
            name = path.relative_to(zoo).as_posix()
            if path.suffix in SUFFIXES and fnmatch(name, pattern):
                yield name, path


def state() -> str:
    """Return what tells this state of the importer from others."""
    digest = sha256()
    for package in (burn_import, burn_ir, burn_templates):
        for path in sorted(Path(package.__path__[0]).rglob("*")):
            if path.suffix in (".py", ".jinja", ".j2"):
                digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def source(name: str, model: Path, folder: Path) -> str:
    """Return the source of a model, kept in ``folder``; a refusal is a comment."""
    path = folder / f"{name.replace('/', '__')}.py"
    if not path.is_file():
        try:
            text = import_model(model, Options(stem="net")).text
        except ModelError as error:
            text = f"{REFUSED}{str(error).splitlines()[0]}\n"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return path.read_text("utf-8")


def share(measures: Measures) -> str:
    """Return the share of locals that are letters, in per cent."""
    return f"{100 * measures.letters / max(measures.locals, 1):.0f}%"


def row(name: str, measures: Measures) -> str:
    """Return one line of the table."""
    cells = (f"{getattr(measures, one):>9}" for one in NAMES)
    return f"{name:<52}{''.join(cells)}{share(measures):>6}"


def table(measured: Sequence[tuple[str, Measures]]) -> Iterator[str]:
    """Yield the lines of the table, the last with the totals."""
    yield f"{'model':<52}{''.join(f'{one:>9}' for one in NAMES)} share"
    yield from (row(name, measures) for name, measures in measured)
    total = sum((measures for _, measures in measured), Measures())
    yield row(f"{len(measured)} models", total)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table of the chosen models."""
    parser = argparse.ArgumentParser(prog="python -m tests.written.score")
    parser.add_argument("--models", default="*", metavar="PATTERN")
    parser.add_argument("--zoo", type=Path, default=ZOO, metavar="FOLDER")
    parser.add_argument("--sources", type=Path, metavar="FOLDER")
    parser.add_argument("--worst", choices=NAMES, help="sort by this, highest first")
    parser.add_argument("--list", choices=LISTED, help="print what this one counts")
    parser.add_argument("--totals", action="store_true", help="print the totals alone")
    options = parser.parse_args(arguments)
    folder = options.sources or Path(gettempdir()) / f"burn-import-score-{state()}"
    measured = []
    refused = []
    for name, path in models(options.zoo, options.models):
        text = source(name, path, folder)
        if text.startswith(REFUSED):
            refused.append(name)
        else:
            measured.append((name, measure(text)))
            for one in LISTED[options.list](ast.parse(text)) if options.list else ():
                print(f"{name:<52}{one}")
    if options.worst:
        measured.sort(key=lambda one: -getattr(one[1], options.worst))
    lines = list(table(measured))
    print("\n".join([lines[0], lines[-1]] if options.totals else lines))
    print(f"{len(refused)} refused; sources: {folder}")


if __name__ == "__main__":
    main()

"""No name in the source of well-known networks is one that an exporter made up.

``python -m tests.zoo.sources.test_nouns ZOO`` prints how many names end in a digit, of
those that are ours: inputs have the names of the file.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from burn_import.compiler import compile_graph
from burn_import.frontends.onnx import read
from burn_import.options import Options
from burn_import.provenance.exporter_names import is_leftover
from burn_ir import build
from tests.written_modules import Modules
from tests.zoo.recorded import zoo_cases

#: The beginnings of their names in the zoo.
NETWORKS = ("bert", "gpt2", "llama", "vit.", "convnext", "whisper", "t5", "segformer")
#: So many names of these end in a digit: as few as were ever reached.
NUMBERED = 0
#: Words that are an operator's and an author's.
WORDS = frozenset({"x", "attention", "cos", "sin", "mean", "size", "values"})
#: Feature maps of several image sizes, which authors number too.
FEATURE_MAP = re.compile(r"features_\d")


def source(path: Path) -> str:
    """Return the module for the file at ``path``."""
    return compile_graph(build(read(path)), Options("Net"), "net.safetensors").text


def names(text: str) -> Iterator[str]:
    """Yield names of locals and parameters, but for inputs and feature maps."""
    yield from (one for one in _names(text) if not FEATURE_MAP.fullmatch(one))


def _names(text: str) -> Iterator[str]:
    classes = [n for n in ast.parse(text).body if isinstance(n, ast.ClassDef)]
    given: set[str] = set()
    for cls in classes:
        for node in cls.body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                given.add(node.target.id)
            if isinstance(node, ast.FunctionDef) and node.name == "__call__":
                if cls.name == "Net":
                    given |= {arg.arg for arg in node.args.args}
                yield from set(_stored(node)) - given


def fields(text: str) -> Iterator[str]:
    """Return the fields of the tuple that a module returns."""
    for cls in ast.parse(text).body:
        for node in cls.body if isinstance(cls, ast.ClassDef) else ():
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                yield node.target.id


def _stored(function: ast.FunctionDef) -> Iterator[str]:
    yield from (arg.arg for arg in function.args.args)
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def networks(zoo: Path) -> Iterator[Path]:
    """Return the files of the networks that everybody knows."""
    if (zoo / "manifest.json").is_file():
        for case in zoo_cases(zoo):
            if case.name.startswith(tuple(f"arch/{name}" for name in NETWORKS)):
                yield case.path


@pytest.mark.thorough
def test_names_say_something(request: pytest.FixtureRequest, modules: Modules) -> None:
    results = list(networks(request.config.getoption("--zoo")))
    if not results:
        pytest.skip("the zoo is not here")
    texts = {path.stem: modules.text(path) for path in results}
    bad = {
        model: sorted(
            name
            for name in {*names(text), *fields(text)} - WORDS
            if is_leftover(name) or re.search(r"\d{2}$", name)
        )
        for model, text in texts.items()
    }
    assert {model: words for model, words in bad.items() if words} == {}
    numbered = {
        f"{model}: {name}"
        for model, text in texts.items()
        for name in names(text)
        if name[-1].isdigit()
    }
    assert len(numbered) <= NUMBERED, sorted(numbered)


if __name__ == "__main__":
    total = 0
    for case in zoo_cases(Path(sys.argv[1])):
        if case.name.startswith("arch/"):
            found = sorted(n for n in names(source(case.path)) if n[-1].isdigit())
            total += len(found)
            print(f"{case.name:40} {len(found):3}  {' '.join(found)}")
    print(f"{total} names end in a digit")

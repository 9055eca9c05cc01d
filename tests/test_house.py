"""The rules of the house, held over every source file."""

import ast
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = {
    "burn_import": ROOT / "importer" / "burn_import",
    "burn_ir": ROOT / "ir" / "burn_ir",
    "burn_templates": ROOT / "templates" / "burn_templates",
    "burn": ROOT / "runtime" / "burn",
}
MAY_IMPORT = {
    "burn_import": {"burn_templates", "burn_ir", "burn"},
    "burn_ir": {"burn"},
    "burn_templates": set[str](),
    "burn": set[str](),
}
# What ``burn.plan`` may not know of: devices bind plans, not the other way round.
ENGINE = re.compile(
    r"^burn\.backend\.(cpu|cuda)\b|onednn|^burn\.backend\.(Cpu|Cuda|Engine|engine)$"
)
NOT_IN_RUNTIME = {"onnx", "google", "jinja2", "black", "click"}
TOP_FOLDERS = (
    *("importer", "ir", "templates", "runtime"),
    *("tests", "models", "examples", "benchmarks"),
)
FILE_LINES = 400
FOLDER_FILES = 25
#: Folders with more Python files, and why. Only remove.
LARGE_FOLDERS = {
    "ir/burn_ir/ops": "one file for each family of operators",
    "runtime/burn/ops": "one file for each family of primitives",
}
#: Lines of a function without its docstring.
FUNCTION_LINES = 30
#: Functions with more lines, by folder, and the longest one. Only lower.
LONG_FUNCTIONS = {
    "benchmarks": 8,
    "examples": 1,
    "importer": 50,
    "ir": 10,
    "runtime": 67,
    "templates": 7,
    "tests": 76,
}
LONGEST_FUNCTION = 45
README_LINES = 80
# An absolute path below a folder that only one machine has, and the hosts of package
# registries: neither means anything to a reader elsewhere.
MACHINE_PATH = re.compile(
    r"(?<![\w./~-])/(?:home|root|tmp|work|Users|opt)/\w|\b[A-Z]:\\Users\\"
)
REGISTRY_HOST = re.compile(
    r"\b(?:test\.)?py[p]i\.(?:org|python\.org)|\bfiles\.pytho[n]hosted\.org|"
    r"\b[\w-]+\.jfrog\.io|\bpypi\.nvidia\.com"
)


@cache
def tracked(*patterns: str) -> tuple[Path, ...]:
    """Return the files git tracks, or would after ``git add .``, that match."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "-co", "--exclude-standard", "--", *patterns],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    names = listing.stdout.decode().split("\0")
    return tuple(path for name in names if name and (path := ROOT / name).is_file())


#: Fields of statements with expressions that no test reads.
UNREAD = (
    *("value", "targets", "target", "annotation", "iter", "items", "subject"),
    *("args", "returns", "decorator_list", "bases", "keywords", "exc", "cause"),
)


def python_files() -> tuple[Path, ...]:
    """Return every Python file of the repository."""
    files = tracked("*.py")
    assert files, "git lists no Python file"
    return files


@cache
def parse(path: Path) -> ast.Module:
    """Return the statements and docstrings of one file, without other expressions.

    Every test shares them, so that each file is parsed once.
    """
    tree = ast.parse(path.read_text("utf-8"), str(path))
    for node in statements(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        for field in UNREAD:
            node.__dict__.pop(field, None)
    return tree


def place(path: Path, line: int) -> str:
    """Return ``path:line`` as an editor understands it."""
    return f"{path.relative_to(ROOT)}:{line}"


def inner_statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements, handlers and cases directly in a statement."""
    for field in ("body", "handlers", "orelse", "finalbody", "cases"):
        yield from getattr(node, field, ())


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield every statement, handler and case below a node, but no expressions."""
    for node in inner_statements(tree):
        yield node
        yield from statements(node)


def imports(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Return each imported top-level package and its line, lazy imports too.

    A relative import counts as ``.``.
    """
    for node in statements(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name.partition(".")[0], node.lineno
        elif isinstance(node, ast.ImportFrom):
            name = "." if node.level else (node.module or "")
            yield name.partition(".")[0] or ".", node.lineno


def wrong_imports(package: str, tree: ast.Module) -> list[tuple[str, int]]:
    """Return the imports in ``tree`` that ``package`` may not make."""
    banned = PACKAGES.keys() - MAY_IMPORT[package] - {package} | {"."}
    if package == "burn":
        banned |= NOT_IN_RUNTIME
    return [(name, line) for name, line in imports(tree) if name in banned]


def may_be_broad(text: str) -> bool:
    """Return whether source may have broad handlers, without the time of a parser."""
    return "except:" in text or "Exception" in text


def broad_handlers(tree: ast.Module) -> list[int]:
    """Return the lines of bare ``except`` and of ``except Exception``."""
    broad = {"Exception", "BaseException"}
    lines = []
    for node in statements(tree):
        if not isinstance(node, ast.ExceptHandler):
            continue
        caught = ast.walk(node.type) if node.type else ()
        names = {name.id for name in caught if isinstance(name, ast.Name)}
        if node.type is None or names & broad:
            lines.append(node.lineno)
    return lines


def docstring_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the number of lines of the docstring of a function."""
    first = node.body[0]
    text = getattr(getattr(first, "value", None), "value", None)
    if not isinstance(first, ast.Expr) or not isinstance(text, str):
        return 0
    return (first.end_lineno or first.lineno) - first.lineno + 1


def long_functions(tree: ast.Module) -> list[tuple[str, int, int]]:
    """Return name, line and length of each function above the limit."""
    results = []
    for node in statements(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            length -= docstring_lines(node)
            if length > FUNCTION_LINES:
                results.append((node.name, node.lineno, length))
    return results


class Findings(NamedTuple):
    """What is refused in one file, so that no test keeps its syntax tree."""

    functions: list[tuple[str, int, int]]
    handlers: list[int]


@cache
def findings(path: Path) -> Findings:
    """Return the long functions and the broad handlers of one file."""
    tree = parse(path)
    return Findings(long_functions(tree), broad_handlers(tree))


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_import_only_what_they_may(package: str) -> None:
    wrong = [
        f"{place(path, line)}: {package} may not import {name}"
        for path in sorted(PACKAGES[package].rglob("*.py"))
        for name, line in wrong_imports(package, parse(path))
    ]
    assert not wrong, "\n".join(wrong)


def engine_imports(tree: ast.Module) -> list[tuple[str, int]]:
    """Return the imports of what only the CPU knows of, and their lines."""
    results = []
    for node in statements(tree):
        if isinstance(node, ast.Import):
            results += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            results += [(f"{node.module}.{a.name}", node.lineno) for a in node.names]
    return [(name, line) for name, line in results if ENGINE.search(name)]


def test_plans_know_of_no_device() -> None:
    wrong = [
        f"{place(path, line)}: plans may not import {name}"
        for path in sorted((PACKAGES["burn"] / "plan").rglob("*.py"))
        for name, line in engine_imports(parse(path))
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("source", "wrong"),
    [
        ("from burn.backend.cpu import Cpu", 1),
        ("from burn.backend.cpu.bind.arena import Arena", 1),
        ("def f():\n    import burn.backend.cpu.onednn.binding.engine", 1),
        ("from burn.backend import Autodiff, Cuda, engine", 2),
        ("from burn.defaults import host\nimport numpy", 0),
    ],
)
def test_imports_of_engines_are_found(source: str, wrong: int) -> None:
    assert len(engine_imports(ast.parse(source))) == wrong


@pytest.mark.parametrize(
    ("package", "source", "wrong"),
    [
        ("burn", "def f():\n    from burn_ir import ops", [("burn_ir", 2)]),
        ("burn", "import numpy, onnx.helper", [("onnx", 1)]),
        ("burn", "from google.protobuf import message", [("google", 1)]),
        ("burn", "from burn.ops import relu", []),
        ("burn_ir", "import burn\nimport burn_import.cli", [("burn_import", 2)]),
        ("burn_ir", "from . import ops", [(".", 1)]),
        ("burn_templates", "import jinja2\nimport burn", [("burn", 2)]),
        ("burn_import", "import burn, burn_ir, burn_templates", []),
    ],
)
def test_wrong_imports_are_found(
    package: str, source: str, wrong: list[tuple[str, int]]
) -> None:
    assert wrong_imports(package, ast.parse(source)) == wrong


def test_files_are_short() -> None:
    lengths = {path: len(path.read_bytes().splitlines()) for path in python_files()}
    long = [place(path, n) for path, n in lengths.items() if n > FILE_LINES]
    assert not long, "\n".join(long)


def test_pytest_collects_every_folder_of_tests(pytestconfig: pytest.Config) -> None:
    patterns = pytestconfig.getini("norecursedirs")
    folders = {path.parent.relative_to(ROOT) for path in tracked("tests/**/test_*.py")}
    names = {name for folder in folders for name in folder.parts}
    assert not [n for n in names if any(fnmatch(n, one) for one in patterns)]


def test_folders_are_small() -> None:
    counts = Counter(
        path.parent.relative_to(ROOT).as_posix() for path in python_files()
    )
    large = {folder: n for folder, n in counts.items() if n > FOLDER_FILES}
    assert large.keys() == LARGE_FOLDERS.keys(), large


def test_functions_are_short() -> None:
    counts, long = Counter[str](), []
    for path in python_files():
        for name, line, length in findings(path).functions:
            counts[path.relative_to(ROOT).parts[0]] += 1
            long.append(f"{length} lines: {place(path, line)}: {name}")
    more = counts - Counter(LONG_FUNCTIONS)
    assert not more, "\n".join([str(more), *sorted(long)])
    assert max(int(text.split()[0]) for text in long) <= LONGEST_FUNCTION


def test_long_functions_are_found() -> None:
    body = "    pass\n" * FUNCTION_LINES
    for docstring in ("", '    """Two\n\n    lines."""\n'):
        assert long_functions(ast.parse(f"def f():\n{docstring}{body}")) == [
            ("f", 1, FUNCTION_LINES + 1)
        ]
    assert not long_functions(ast.parse("def f():\n" + body[: -len("    pass\n")]))


def test_no_broad_except() -> None:
    broad = [
        place(path, line)
        for path in python_files()
        if may_be_broad(path.read_text("utf-8"))
        for line in findings(path).handlers
    ]
    assert not broad, "\n".join(broad)


@pytest.mark.parametrize("clause", ["", " Exception", " (KeyError, BaseException)"])
def test_broad_except_is_found(clause: str) -> None:
    source = f"try:\n    pass\nexcept{clause}:\n    pass"
    assert may_be_broad(source)
    assert broad_handlers(ast.parse(source)) == [3]


@pytest.mark.parametrize("folder", TOP_FOLDERS)
def test_top_folders_have_a_short_readme(folder: str) -> None:
    lines = (ROOT / folder / "README.md").read_text("utf-8").splitlines()
    assert 3 <= len(lines) <= README_LINES


def test_text_names_no_machine_and_no_registry() -> None:
    actual = []
    for path in tracked():
        if b"\0" in (data := path.read_bytes()):
            continue
        text = data.decode("utf-8", "replace")
        if not (MACHINE_PATH.search(text) or REGISTRY_HOST.search(text)):
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if MACHINE_PATH.search(line) or REGISTRY_HOST.search(line):
                actual.append(f"{place(path, number)}: {line.strip()}")
    assert not actual, "\n".join(actual)


@pytest.mark.parametrize("folder", ["home/ann", "root/x", "tmp/out", "Users/ann"])
def test_machine_paths_are_found(folder: str) -> None:
    assert MACHINE_PATH.search(f"open('/{folder}/model.onnx')")
    assert not MACHINE_PATH.search(f"models/{folder}/model.onnx")

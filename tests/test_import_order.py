"""The order of layers inside each package, and no circles between files.

A layer is a folder or a file; the most specific entry of ``ORDER`` decides. A layer
imports from rows that come before its own, not from other layers of the same row.
Imports under ``TYPE_CHECKING`` are held to the same order; their exceptions are listed
separately, because they cannot fail at run time. Both lists may only shrink: an
exception that is needed no longer fails the test.
"""

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter

import pytest

from tests.import_order import ORDER, RUN_TIME, TYPE_ONLY
from tests.test_house import PACKAGES, inner_statements, parse

Edge = tuple[str, str]


def import_statements(tree: ast.Module) -> Iterator[tuple[ast.stmt, bool]]:
    """Yield each import statement, and whether it is only for type checkers."""
    pending: list[tuple[ast.AST, bool]] = [(tree, False)]
    while pending:
        node, is_typing = pending.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node, is_typing
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            pending += [(child, True) for child in node.body]
            pending += [(child, is_typing) for child in node.orelse]
        else:
            pending += [(child, is_typing) for child in inner_statements(node)]


def imported_modules(
    tree: ast.Module, modules: Mapping[str, object]
) -> dict[str, bool]:
    """Return the imported modules among ``modules``: True if only for typing."""
    targets: dict[str, bool] = {}
    for statement, is_typing in import_statements(tree):
        names = []
        if isinstance(statement, ast.Import):
            names = [alias.name for alias in statement.names]
        elif isinstance(statement, ast.ImportFrom) and statement.module:
            for alias in statement.names:
                inner = f"{statement.module}.{alias.name}"
                names.append(inner if inner in modules else statement.module)
        for name in names:
            if name in modules:
                targets[name] = targets.get(name, True) and is_typing
    return targets


@cache
def edges(package: str) -> dict[Edge, bool]:
    """Return each import between files of a package: True if only for typing.

    Files are named by their paths in the package, without ``.py``.
    """
    root = PACKAGES[package]
    files = {}
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).with_suffix("").as_posix()
        dotted = f"{package}.{name.replace('/', '.')}".removesuffix(".__init__")
        files[dotted] = (name, path)
    return {
        (name, files[target][0]): is_typing
        for name, path in files.values()
        for target, is_typing in imported_modules(parse(path), files).items()
        if files[target][0] != name
    }


def levels(package: str) -> dict[str, int]:
    """Return the row of each layer of a package."""
    rows = enumerate(ORDER[package])
    return {layer: number for number, row in rows for layer in row.split()}


def layer_of(file: str, layers: Mapping[str, int]) -> str:
    """Return the most specific layer of a file."""
    parts = file.split("/")
    names = ["/".join(parts[:length]) for length in range(len(parts), 0, -1)]
    return next((name for name in names if name in layers), "")


def upward(package: str) -> set[Edge]:
    """Return the imports against the order of layers."""
    layers = levels(package)
    wrong = set()
    for importer, imported in edges(package):
        upper, lower = layer_of(importer, layers), layer_of(imported, layers)
        if upper != lower and layers[upper] <= layers[lower]:
            wrong.add((importer, imported))
    return wrong


def find_circle(imports: set[Edge]) -> list[str]:
    """Return the files of one circle, an empty list if there is none."""
    sorter: TopologicalSorter[str] = TopologicalSorter()
    for importer, imported in sorted(imports):
        sorter.add(importer, imported)
    try:
        sorter.prepare()
    except CycleError as error:
        return list(error.args[1][::-1])
    return []


def exceptions(package: str) -> set[Edge]:
    """Return the listed imports of a package."""
    return {*RUN_TIME.get(package, {}), *TYPE_ONLY.get(package, {})}


@pytest.mark.parametrize("package", ORDER)
def test_every_file_is_in_a_room(package: str) -> None:
    layers = levels(package)
    root = PACKAGES[package]
    files = [
        path.relative_to(root).with_suffix("").as_posix() for path in root.rglob("*.py")
    ]
    homeless = sorted(file for file in files if not layer_of(file, layers))
    assert not homeless, f"{package}: add to ORDER: {homeless}"
    empty = layers.keys() - {layer_of(file, layers) for file in files}
    assert not empty, f"{package}: ORDER names layers without files: {sorted(empty)}"


@pytest.mark.parametrize("package", ORDER)
def test_imports_follow_the_order_of_layers(package: str) -> None:
    wrong = sorted(upward(package) - exceptions(package))
    assert not wrong, "\n".join(
        f"{package}: {importer}.py may not import {imported}.py, which is not in an "
        "earlier row of ORDER"
        for importer, imported in wrong
    )


@pytest.mark.parametrize("package", ORDER)
def test_files_import_in_no_circle(package: str) -> None:
    circle = find_circle(set(edges(package)) - exceptions(package))
    assert not circle, f"{package}: circle of imports: {' -> '.join(circle)}"


@pytest.mark.parametrize("package", ORDER)
def test_exceptions_are_needed(package: str) -> None:
    kinds = edges(package)
    allowed = set(kinds) - exceptions(package)
    against = upward(package)
    for listed, is_typing in ((RUN_TIME, False), (TYPE_ONLY, True)):
        for edge in listed.get(package, {}):
            assert kinds.get(edge) is is_typing, f"{edge} is not imported in this way"
            needed = edge in against or find_circle(allowed | {edge})
            assert needed, f"{package}: remove {edge} from the exceptions"


@pytest.mark.parametrize(
    ("source", "targets"),
    [
        (
            "import p.a\nfrom p import b, other",
            {"p.a": False, "p.b": False, "p": False},
        ),
        ("def f():\n    from p.a import x", {"p.a": False}),
        ("if TYPE_CHECKING:\n    from p.a import x", {"p.a": True}),
        ("if TYPE_CHECKING:\n    import p.a\nelse:\n    import p.a", {"p.a": False}),
        ("import numpy", {}),
    ],
)
def test_imports_are_read(source: str, targets: dict[str, bool]) -> None:
    modules = {"p": None, "p.a": None, "p.b": None}
    assert imported_modules(ast.parse(source), modules) == targets


def test_circles_are_found() -> None:
    assert not find_circle({("a", "b"), ("a", "c"), ("b", "c")})
    circle = find_circle({("a", "b"), ("b", "c"), ("c", "a")})
    assert len(circle) == 4
    assert set(circle) == {"a", "b", "c"}

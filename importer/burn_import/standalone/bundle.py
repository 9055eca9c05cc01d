"""Standalone modules: generated source with the used parts of the runtime."""

import ast
import builtins
import keyword
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from textwrap import dedent

from burn.version import VERSION
from burn_import.codegen.module import formatting
from burn_import.internal import InternalError
from burn_import.standalone.dependencies import Dependencies
from burn_import.standalone.library import (
    Definition,
    External,
    Library,
    Meaning,
    ModuleName,
    library_of_runtime,
)
from burn_import.standalone.order import in_order
from burn_import.standalone.pieces import summary
from burn_import.standalone.references import Names, names_in
from burn_ir import UnsupportedModel

_TAKEN = frozenset(dir(builtins)) | frozenset(keyword.kwlist)


def flat_names(
    definitions: Iterable[Definition],
    reserved: Iterable[str],
    readers: Mapping[Definition, set[str]],
) -> dict[tuple[Definition, str], str]:
    """Return a name for each name of each definition, made unique by underscores.

    ``reserved`` are names with other meanings in the file. ``readers`` has the local
    names of all readers of a definition, which must not shadow it.
    """
    used = set(reserved) | _TAKEN
    result: dict[tuple[Definition, str], str] = {}
    for definition in definitions:
        hidden = readers.get(definition, set())
        for name in definition.names:
            new = name
            while new in used or new in hidden:
                new += "_"
            used.add(new)
            result[definition, name] = new
    return result


#: Modules outside the standard library.
_PACKAGES = ("ml_dtypes", "numpy")


def import_lines(externals: Iterable[External]) -> str:
    """Return the import statements of ``externals``, sorted as ruff sorts them.

    Raises:
        InternalError: two of them bind one name.
    """
    externals = list(externals)
    bound = {external.name: external.statement for external in externals}
    for external in externals:
        if bound[external.name] != external.statement:
            pair = f"{external.statement!r} and {bound[external.name]!r}"
            raise InternalError(f"expected one meaning of {external.name}, got {pair}")
    statements = {external.statement for external in externals}
    statements.add("from types import SimpleNamespace")
    groups: list[list[str]] = [[], []]
    members: dict[str, set[str]] = {}
    for statement in sorted(statements):
        module = statement.split()[1]
        if statement.startswith("from "):
            members.setdefault(module, set()).add(statement.partition(" import ")[2])
        else:
            groups[_is_package(module)].append(statement)
    for module, names in sorted(members.items()):
        shown = ", ".join(sorted(names, key=_kind))
        groups[_is_package(module)].append(f"from {module} import {shown}")
    return "\n\n".join("\n".join(group) for group in groups if group)


def _is_package(module: str) -> bool:
    return module.partition(".")[0] in _PACKAGES


def _kind(name: str) -> tuple[int, str]:
    """Return a sort key: constants first, then classes, then other names."""
    if name.isupper() and len(name) > 1:
        return 0, name
    return (1 if name[0].isupper() else 2), name


#: The runtime modules that generated source names.
_NAMESPACES = ("burn", "nn", "ops")
#: Runtime functions for users of the module, beside the model itself.
_TENSORS = ("Tensor", "tensor", "from_numpy")
_ML_DTYPES = "import ml_dtypes"
#: The dtypes of ml_dtypes.
NARROW = re.compile(r"\b(?:bfloat16|float[48]_\w+|u?int[24])\b")
_NOTE = """\
A standalone module, for inference: it needs {packages} alone. The
operations and layers that it uses are those of burn {version}, without gradients.
"""
_LICENCE = """\
# The parts of burn {version} that the model uses.
# Copyright (c) 2026 The burn-import authors. License: MIT OR Apache-2.0.
# mypy: ignore-errors
"""


@dataclass(frozen=True)
class _Model:
    """Generated source, split into its docstring, imports and the rest."""

    docstring: str
    body: str
    nodes: list[ast.stmt]
    imports: dict[str, Meaning]

    @property
    def top_names(self) -> set[str]:
        """Return the names of classes, functions and constants."""
        kinds = (ast.ClassDef, ast.FunctionDef)
        names = {node.name for node in self.nodes if isinstance(node, kinds)}
        return names | {"WEIGHTS"}


def standalone(text: str) -> str:
    """Return generated source as a module that needs only NumPy.

    Raises:
        UnsupportedModel: an operation needs more than NumPy; all of them are listed.
    """
    model = _parsed(text)
    narrow = NARROW.search(text) is not None
    deps, names = _needed_runtime(model, library_of_runtime(narrow))
    if not narrow and _ML_DTYPES in deps.externals:
        narrow = True
        deps, names = _needed_runtime(model, library_of_runtime(True))
    _check(deps)
    runtime = in_order(deps)
    flat = _new_names(deps, runtime, model)
    sections = [
        _add_note(model.docstring, narrow),
        "from __future__ import annotations",
        import_lines([*deps.externals.values(), *_externals(model)]),
        _LICENCE.format(version=VERSION),
        *_runtime(deps, runtime, flat),
        *_namespaces(names, flat),
        model.body,
    ]
    return formatting.format_source("\n\n".join(sections) + "\n")


def _check(deps: Dependencies) -> None:
    """Check that the standard library and NumPy suffice.

    Raises:
        UnsupportedModel: they do not; has a line for each operation.
    """
    lines = [
        f"{name}: expected an operation that needs NumPy alone, got one that "
        f"needs {package}"
        for name, package in sorted(set(deps.requirements()))
    ]
    if lines:
        raise UnsupportedModel("\n".join(lines), "leave out --standalone")


def _add_note(docstring: str, narrow: bool) -> str:
    """Return the docstring with a note after its first line."""
    title, _, rest = docstring.partition("\n")
    packages = "NumPy and ml_dtypes" if narrow else "NumPy"
    note = _NOTE.format(packages=packages, version=VERSION)
    return f"{title}\n\n{note}\n{rest.lstrip()}"


def _parsed(text: str) -> _Model:
    tree = ast.parse(text)
    lines = text.split("\n")
    docstring, *rest = tree.body
    imports: dict[str, Meaning] = {}
    for node in rest:
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports |= dict(_imported(node))
    nodes = [n for n in rest if not _is_about_the_runtime(n)]
    first = max(n.end_lineno or 0 for n in rest if n not in nodes)
    return _Model(
        "\n".join(lines[: docstring.end_lineno]),
        "\n".join(lines[first:]).strip("\n"),
        nodes,
        imports,
    )


def _is_about_the_runtime(node: ast.stmt) -> bool:
    """Return whether a statement imports, or checks the version of the runtime."""
    is_check = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    return is_check or isinstance(node, ast.Import | ast.ImportFrom)


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, Meaning]]:
    for alias in node.names:
        if isinstance(node, ast.Import):
            is_ours = alias.name in _NAMESPACES
            statement = External(f"import {alias.name}", alias.name)
            yield alias.name, ModuleName(alias.name) if is_ours else statement
        elif node.module != "burn":
            line = f"from {node.module} import {alias.name}"
            yield alias.name, External(line, alias.name)
        elif alias.name in _NAMESPACES:
            yield alias.name, ModuleName(f"burn.{alias.name}")


def _externals(model: _Model) -> Iterator[External]:
    for meaning in model.imports.values():
        if isinstance(meaning, External):
            yield meaning


def _needed_runtime(model: _Model, library: Library) -> tuple[Dependencies, Names]:
    """Return the runtime code that a model needs, and the names in the model."""

    def meaning(name: str) -> Meaning | None:
        if name in _TENSORS:
            return library.meaning("burn.tensor", name)
        return model.imports.get(name)

    names = names_in(model.nodes, meaning, library)
    public = [ast.Name(name, ast.Load()) for name in _TENSORS]
    deps = Dependencies(library)
    deps.follow(names_in([*model.nodes, *public], meaning, library))
    return deps, names


def _new_names(
    deps: Dependencies, runtime: list[Definition], model: _Model
) -> dict[tuple[Definition, str], str]:
    """Return the new name of each definition of the runtime."""
    readers: dict[Definition, set[str]] = {}
    for definition in runtime:
        for piece in deps.pieces(definition):
            for reference in piece.names.references:
                if isinstance(reference.meaning, Definition):
                    hidden = readers.setdefault(reference.meaning, set())
                    hidden |= piece.names.locals
    externals = {external.name for external in deps.externals.values()}
    externals |= {external.name for external in _externals(model)}
    reserved = externals | model.top_names | set(_NAMESPACES)
    first = [d for d in runtime if d.names[0] in _TENSORS]
    rest = [d for d in runtime if d not in first]
    return flat_names([*first, *rest], reserved, readers)


def _runtime(
    deps: Dependencies,
    runtime: list[Definition],
    flat: dict[tuple[Definition, str], str],
) -> Iterator[str]:
    module = ""
    for definition in runtime:
        if definition.module != module:
            module = definition.module
            yield f"# {module.replace('.', '/')}"
        yield _definition_text(deps, definition, flat)


def _definition_text(
    deps: Dependencies, definition: Definition, flat: dict[tuple[Definition, str], str]
) -> str:
    """Return the source of a definition, with the used members of a class."""
    piece = deps.piece(definition.node, definition)
    if definition.is_type:
        name, _, value = dedent(piece.text(flat)).partition(" = ")
        return f"{name} = {value!r}"
    if not isinstance(definition.node, ast.ClassDef | ast.FunctionDef):
        return piece.text(flat)
    text = piece.with_name(flat[definition, definition.names[0]], flat)
    if not definition.is_class:
        return text
    members = [deps.piece(m.node, m).text(flat) for m in deps.members(definition)]
    document = ast.get_docstring(definition.node, clean=False)
    parts = [f"    {summary(document, 4)}"] if document else []
    parts += members
    return "\n\n".join([text, *(parts or ["    pass"])])


def _namespaces(names: Names, flat: dict[tuple[Definition, str], str]) -> Iterator[str]:
    """Yield namespace objects for the runtime modules that the model names."""
    for namespace in _NAMESPACES:
        used: dict[str, str] = {}
        for reference in names.references:
            shown = ast.unparse(reference.node)
            if shown.startswith(f"{namespace}."):
                assert isinstance(reference.meaning, Definition)
                used[reference.name] = flat[reference.meaning, reference.name]
        if used:
            items = ", ".join(f"{name}={used[name]}" for name in sorted(used))
            yield f"{namespace} = SimpleNamespace({items})"

"""The runtime's source as definitions, and the resolution of names in it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib.util import find_spec

from burn_import.internal import InternalError

THIN = "burn_import.standalone.thin"
#: Modules of the runtime with replaced definitions, and the replacing modules.
REPLACED = {
    "burn.backend.base": f"{THIN}.backend",
    "burn.box": f"{THIN}.box",
    "burn.dtypes": f"{THIN}.dtypes",
    "burn.nn.init": f"{THIN}.init",
    "burn.nn.inputs": f"{THIN}.inputs",
    "burn.nn.module": f"{THIN}.module",
    "burn.ops.casting": f"{THIN}.casting",
    "burn.primitive": f"{THIN}.primitive",
    "burn.record.reader": f"{THIN}.records",
    "burn.record.dtypes": f"{THIN}.record_dtypes",
    "burn.tensor": f"{THIN}.tensor",
}
#: Replacements that do not apply where dtypes of ml_dtypes are needed.
WITHOUT_ML_DTYPES = ("burn.dtypes", "burn.ops.casting", "burn.record.dtypes")
#: Members of replaced classes that are kept from the runtime.
TAKEN = {
    ("burn.nn.module", "Module"): ("record_names", "record_prefix", "children", "boxes")
}


@dataclass(frozen=True)
class External:
    """A name from a module that is not part of the runtime."""

    #: The import statement: ``from math import prod``.
    statement: str
    #: The name that the statement binds.
    name: str


@dataclass(frozen=True)
class ModuleName:
    """A module of the runtime."""

    name: str


@dataclass(frozen=True, eq=False)
class Member:
    """A statement in the body of a class, with its file."""

    name: str
    node: ast.stmt
    file: SourceFile


@dataclass(frozen=True, eq=False)
class Definition:
    """A statement of a module that binds names."""

    module: str
    names: tuple[str, ...]
    node: ast.stmt
    file: SourceFile
    #: The members of a class.
    members: tuple[Member, ...] = ()
    #: Whether it is for type checkers only.
    is_type: bool = False

    @property
    def is_class(self) -> bool:
        """Whether the definition is a class."""
        return isinstance(self.node, ast.ClassDef)

    @cached_property
    def decorators(self) -> tuple[str, ...]:
        """The names of the decorators."""
        if not isinstance(self.node, ast.FunctionDef | ast.ClassDef):
            return ()
        return tuple(decorator_name(node) for node in self.node.decorator_list)


Meaning = Definition | External | ModuleName


def decorator_name(node: ast.expr) -> str:
    """The name of a decorator, without its arguments: ``primitive``, ``conv.vjp``."""
    return ast.unparse(node.func if isinstance(node, ast.Call) else node)


@dataclass(eq=False)
class SourceFile:
    """A module's source: its definitions, and its imports by bound name."""

    module: str
    text: str
    definitions: list[Definition] = field(default_factory=list)
    by_name: dict[str, Definition] = field(default_factory=dict)
    imports: dict[str, tuple[str, str | None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for statement in ast.parse(self.text).body:
            self._add(statement)

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the text, without line ends."""
        return self.text.split("\n")

    def _add(self, statement: ast.stmt, is_type: bool = False) -> None:
        if isinstance(statement, ast.If):  # TYPE_CHECKING
            for inner in statement.body:
                self._add(inner, is_type=True)
        elif isinstance(statement, ast.Import | ast.ImportFrom):
            self._import(statement)
        else:
            names = tuple(bound_names(statement))
            if names and not _registers(statement):
                members = tuple(self._members(statement))
                definition = Definition(
                    self.module, names, statement, self, members, is_type
                )
                self.definitions.append(definition)
                self.by_name.update(dict.fromkeys(names, definition))

    def _members(self, statement: ast.stmt) -> Iterator[Member]:
        if not isinstance(statement, ast.ClassDef):
            return
        for node in statement.body:
            decorators = getattr(node, "decorator_list", [])
            if "overload" not in map(decorator_name, decorators):
                yield from (Member(name, node, self) for name in bound_names(node))

    def _import(self, statement: ast.Import | ast.ImportFrom) -> None:
        for alias in statement.names:
            name = alias.asname or alias.name
            if isinstance(statement, ast.Import):
                self.imports[name] = (alias.name, None)
            else:
                self.imports[name] = (statement.module or "", alias.name)


def bound_names(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement binds in its own scope."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        yield statement.name
    elif isinstance(statement, ast.Assign | ast.AnnAssign):
        targets = getattr(statement, "targets", None) or [statement.target]  # type: ignore[union-attr]
        for node in (n for target in targets for n in ast.walk(target)):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id


def _registers(statement: ast.stmt) -> bool:
    """Return whether a function only registers a gradient rule."""
    return isinstance(statement, ast.FunctionDef) and statement.name == "_"


class Library:
    """The modules of the runtime, with some definitions replaced.

    With ``ml_dtypes``, the dtypes of that package are available.
    """

    def __init__(self, ml_dtypes: bool) -> None:
        self.ml_dtypes = ml_dtypes
        left_out = WITHOUT_ML_DTYPES if ml_dtypes else ()
        self.replaced = {k: v for k, v in REPLACED.items() if k not in left_out}
        self.originals = {thin: name for name, thin in REPLACED.items()}
        self._merged: dict[tuple[str, str], Definition] = {}

    def meaning(self, module: str, name: str) -> Meaning | None:
        """Return the referent of a global ``name`` of a module; None for a builtin."""
        module = self.originals.get(module, module)
        thin = source_file(self.replaced[module]) if module in self.replaced else None
        own = source_file(module)
        for file in (thin, own):
            if file is not None and name in file.by_name:
                return self._definition(file.by_name[name], own)
        for file in (thin, own):
            if file is not None and name in file.imports:
                return self._imported(name, *file.imports[name])
        if is_module(f"{module}.{name}"):
            return ModuleName(f"{module}.{name}")
        return None

    def _imported(self, name: str, module: str, item: str | None) -> Meaning:
        if module.partition(".")[0] not in ("burn", "burn_import"):
            if item is None:
                suffix = f" as {name}" if name != module else ""
                return External(f"import {module}{suffix}", name)
            suffix = f" as {name}" if name != item else ""
            return External(f"from {module} import {item}{suffix}", name)
        if item is None or is_module(f"{module}.{item}"):
            return ModuleName(f"{module}.{item}" if item else module)
        meaning = self.meaning(module, item)
        if meaning is None:
            raise InternalError(f"expected {item!r} in the source of {module}")
        return meaning

    def _definition(self, definition: Definition, own: SourceFile) -> Definition:
        """Return a definition of a module, or its replacement."""
        key = (own.module, definition.names[0])
        if key not in self._merged:
            members = definition.members
            if key in TAKEN:
                original = own.by_name[definition.names[0]].members
                selected = [m for m in original if m.name in TAKEN[key]]
                members = (*selected, *members)
            self._merged[key] = replace(definition, module=own.module, members=members)
        return self._merged[key]


@cache
def library_of_runtime(ml_dtypes: bool) -> Library:
    """Return the library with or without ml_dtypes, one object in a process."""
    return Library(ml_dtypes)


@cache
def source_file(module: str) -> SourceFile:
    """Return the source of a module, parsed once."""
    spec = find_spec(module)
    text = spec.loader.get_source(module) if spec and spec.loader else None  # type: ignore[attr-defined]
    if text is None:
        raise InternalError(f"expected the source of {module}, found none")
    return SourceFile(module, text)


@cache
def is_module(name: str) -> bool:
    """Return whether the runtime has a module with this name."""
    parent, _, last = name.rpartition(".")
    if not last.isidentifier() or not parent.startswith("burn"):
        return False
    spec = find_spec(parent)
    if spec is None or spec.submodule_search_locations is None:
        return False
    return find_spec(name) is not None

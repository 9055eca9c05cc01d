"""Static types of modules in the source of classes: which class an expression has.

``self.layers[0].attention`` is resolved by the constructors of the classes. Variables
get the types of what a method assigns to them, or iterates over.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from burn_import.codegen.class_text import ClassText
from burn_import.codegen.syntax import LISTS, called_name, fields_of, listed_values

#: Functions that iterate over lists of modules.
_ITERATORS = frozenset({"zip", "enumerate", "reversed"})


@dataclass(frozen=True)
class ModuleType:
    """The classes that a module may have; those of its elements if it is a list."""

    names: frozenset[str]
    elements: ModuleType | None = None

    def __or__(self, other: ModuleType) -> ModuleType:
        lists = [one for one in (self.elements, other.elements) if one is not None]
        return ModuleType(self.names | other.names, _union(lists))

    def has(self, name: str) -> bool:
        """Return whether this is a list that may have modules of the class ``name``."""
        inner = self.elements
        return inner is not None and (name in inner.names or inner.has(name))


Fields = Mapping[str, Mapping[str, ModuleType]]


def field_types(texts: Sequence[ClassText]) -> Fields:
    """Return the types of the modules in each class's fields, by class and name."""
    return {text.name: dict(_typed_fields(text)) for text in texts}


def _typed_fields(text: ClassText) -> Iterator[tuple[str, ModuleType]]:
    for name, value in fields_of(text):
        kind = constructed_type(value)
        if kind is not None:
            yield name, kind


def constructed_type(value: ast.expr) -> ModuleType | None:
    """Return the type of the module that an expression constructs."""
    if isinstance(value, ast.IfExp):
        sides = [constructed_type(value.body), constructed_type(value.orelse)]
        return sides[0] | sides[1] if sides[0] and sides[1] else None
    if not isinstance(value, ast.Call):
        return None
    name = called_name(value)
    if name not in LISTS:
        return ModuleType(frozenset({name}))
    kinds = [constructed_type(call) for call in listed_values(value)]
    elements = _union([kind for kind in kinds if kind is not None])
    return ModuleType(frozenset({name}), elements)


class ExpressionTypes:
    """The types of module expressions in one block of statements of a class."""

    def __init__(self, owner: str, fields: Fields, tree: ast.AST) -> None:
        self.owner, self.fields = owner, fields
        self.variables: dict[str, ModuleType] = {"self": ModuleType(frozenset({owner}))}
        #: Expressions whose uses this class follows, by identity.
        self.followed: set[int] = set()
        for node in ast.walk(tree):
            self._bind_statement(node)

    def of(self, node: ast.AST) -> ModuleType | None:
        """Return the type of an expression; None if it is no module."""
        if isinstance(node, ast.Name):
            return self.variables.get(node.id)
        if isinstance(node, ast.Attribute):
            around = self.of(node.value)
            kinds = [
                self.fields.get(name, {}).get(node.attr)
                for name in (around.names if around else ())
            ]
            known = [kind for kind in kinds if kind is not None]
            return _union(known)
        if isinstance(node, ast.Subscript):
            listed = self.of(node.value)
            if listed is None or listed.elements is None:
                return None
            is_slice = isinstance(node.slice, ast.Slice)
            return listed if is_slice else listed.elements
        return None

    def _bind_statement(self, node: ast.AST) -> None:
        """Record the types of the variables that a statement or loop assigns."""
        if isinstance(node, ast.For | ast.comprehension):
            self._bind(node.target, self._iterated(node.iter))
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            kind = self.of(node.value)
            if kind is not None:
                self.followed.add(id(node.value))
                self._bind(node.targets[0], kind)

    def _bind(
        self, target: ast.expr, kind: ModuleType | list[ModuleType | None] | None
    ) -> None:
        if isinstance(kind, list) and isinstance(target, ast.Tuple):
            for inner, one in zip(target.elts, kind, strict=False):
                self._bind(inner, one)
        elif isinstance(kind, ModuleType) and isinstance(target, ast.Name):
            known = self.variables.get(target.id)
            self.variables[target.id] = kind | known if known else kind

    def _iterated(self, node: ast.expr) -> ModuleType | list[ModuleType | None] | None:
        """Return the types of the elements that an iteration yields."""
        self.followed.add(id(node))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id not in _ITERATORS:
                return None
            inner = [self._iterated(argument) for argument in node.args]
            if node.func.id == "reversed":
                return inner[0]
            offset = [None] if node.func.id == "enumerate" else []
            return [*offset, *inner]  # type: ignore[list-item]
        listed = self.of(node)
        return None if listed is None else listed.elements


def _union(kinds: Sequence[ModuleType]) -> ModuleType | None:
    """Return the type of a module that has one of several types."""
    if not kinds:
        return None
    first, *others = kinds
    for other in others:
        first = first | other
    return first

"""Merging of classes by their fields, which differ only in numbers."""

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from burn_import.codegen.class_text import ClassText
from burn_import.codegen.merge.constructor_parameters import constructor
from burn_import.codegen.merge.expression_slots import DifferError
from burn_import.codegen.merge.field_lines import with_annotation
from burn_import.codegen.merge.init_fields import Column, slot, unite_fields
from burn_import.codegen.merge.merge_classes import (
    Families,
    class_heights,
    without_numbers,
)
from burn_import.codegen.syntax import LISTS, called_name, default_calls, replace_nodes
from burn_import.tracing.unparse import unparse_expression


@dataclass
class Shared:
    """The merged classes, with the original classes of each."""

    #: Whether classes with a body stay unmerged.
    holders_only: bool = False
    texts: dict[str, ClassText] = field(default_factory=dict)
    members: dict[str, list[str]] = field(default_factory=dict)
    families: Families = field(default_factory=Families)
    #: The original fields of classes.
    own: dict[str, list[str]] = field(default_factory=dict)

    def settle(self, texts: Sequence[ClassText]) -> None:
        """Merge the classes of one level."""
        for text in map(self.with_calls, texts):
            fixed = self.holders_only and bool(text.body or text.constructor)
            for name in () if fixed else list(self.members):
                if self.joins(name, text):
                    break
            else:
                self.texts[text.name] = text
                self.members[text.name] = [text.name]

    def with_calls(self, text: ClassText) -> ClassText:
        """Return ``text`` with the current constructor calls of its modules."""

        def with_new_calls(line: str) -> str:
            calls = [(c, self.families.call(name)) for c, name in default_calls(line)]
            return with_annotation(as_module_lists(replace_nodes(line, calls)))

        return replace(
            text,
            fields=list(map(with_new_calls, text.fields)),
            steps=with_new_calls(text.steps),
        )

    def joins(self, name: str, text: ClassText) -> bool:
        """Merge ``text`` into the class ``name``; return whether it was possible."""
        first = self.texts[name]
        have_equal_names = without_numbers(name) == without_numbers(text.name)
        are_equal = first.plain == text.plain and have_equal_names
        if not are_equal or first.root or text.root or not text.fields:
            return False
        is_parametric = bool(first.constructor) and len(self.members[name]) == 1
        if self.holders_only and (first.body or is_parametric):
            return False
        if first.record_names != text.record_names:
            return False
        rows = [*self.rows(name), text.fields]
        columns: list[Column] = []
        try:
            families = self.families
            fields = unite_fields(rows, families.labels, columns, families.guards)
            init = constructor(columns, fields)
        except DifferError:
            return False
        if not all(all(one.having) for one in fields):
            return False
        self.own[text.name] = text.fields
        self.members[name].append(text.name)
        lines = [f"self.{one.name} = {one.text}" for one in fields]
        for number in reversed(range(len(columns))):
            lines = [line.replace(slot(number), init.texts[number]) for line in lines]
        self.texts[name] = replace(first, fields=lines, constructor=init.signature)
        self.families.labels[name] = [p.name for p in init.parameters]
        self.families.guards[name] = init.guards
        for index, member in enumerate(self.members[name]):
            self.families.calls[member] = init.call(name, index)
        return True

    def rows(self, name: str) -> list[list[str]]:
        """Return the fields of each original class of ``name``."""
        self.own.setdefault(name, self.texts[name].fields)
        return [self.own[member] for member in self.members[name]]


def as_module_lists(line: str) -> str:
    """Return ``line`` with tuples of one class as ``nn.ModuleList``."""
    if "nn.ModuleTuple(" not in line:
        return line
    return unparse_expression(_Lists().visit(ast.parse(line)))


class _Lists(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.AST:  # noqa: N802
        self.generic_visit(node)
        heads = set(map(called_name, node.args))
        if called_name(node) != "nn.ModuleTuple" or len(heads) != 1:
            return node
        if not heads.isdisjoint(LISTS | {""}):
            return node
        node.func = ast.Name("nn.ModuleList")
        node.args = [ast.List(node.args, ast.Load())]
        return node


def share(
    texts: Sequence[ClassText],
    holders_only: bool = False,
    previous: Families | None = None,
) -> Shared:
    """Return the merged classes of ``texts``, merging from the inside out.

    ``previous`` has the constructor parameters that classes already have.
    """
    contents = {
        text.name: {name for one in text.sources for _, name in default_calls(one)}
        for text in texts
    }
    inner_classes = {name: inner & set(contents) for name, inner in contents.items()}
    rank = class_heights(inner_classes)
    families = Families()
    if previous is not None:
        families = Families(labels={**previous.labels}, guards={**previous.guards})
    shared = Shared(holders_only, families=families)
    for level in sorted(set(rank.values())):
        shared.settle([text for text in texts if rank[text.name] == level])
    return shared

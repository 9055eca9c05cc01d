"""Classes of which the fields alone count, and differ in numbers, become one."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from burn_import.codegen.class_text import ClassText
from burn_import.codegen.merge.constructor_parameters import constructor
from burn_import.codegen.merge.expression_slots import DifferError
from burn_import.codegen.merge.init_fields import Column, slot, unite_fields
from burn_import.codegen.merge.merge_classes import Families, heights, stem
from burn_import.tracing.unparse import unparsed

_CLASS = re.compile(r"(?<![\w.])([A-Z]\w*)\(\)")


@dataclass
class Shared:
    """The classes that stay, and which classes each stands for, itself included."""

    #: Whether classes with a program stay as they are.
    holders_only: bool = False
    texts: dict[str, ClassText] = field(default_factory=dict)
    members: dict[str, list[str]] = field(default_factory=dict)
    known: Families = field(default_factory=Families)
    #: The fields of classes as they are by themselves.
    own: dict[str, list[str]] = field(default_factory=dict)

    def settle(self, texts: Sequence[ClassText]) -> None:
        """Unite classes that hold only what is settled."""
        for text in map(self.with_calls, texts):
            fixed = self.holders_only and bool(text.body)
            for name in () if fixed else list(self.members):
                if self.joins(name, text):
                    break
            else:
                self.texts[text.name] = text
                self.members[text.name] = [text.name]

    def with_calls(self, text: ClassText) -> ClassText:
        """``text`` with the calls of the classes that its modules are now."""

        def made(line: str) -> str:
            return listed(_CLASS.sub(lambda match: self.known.call(match[1]), line))

        return replace(
            text, fields=list(map(made, text.fields)), steps=made(text.steps)
        )

    def joins(self, name: str, text: ClassText) -> bool:
        """Whether the class is one with those that ``name`` stands for."""
        first = self.texts[name]
        alike = first.plain == text.plain and stem(name) == stem(text.name)
        if not alike or first.root or text.root or not text.fields:
            return False
        if self.holders_only and first.body:
            return False
        rows = [*self.rows(name), text.fields]
        columns: list[Column] = []
        try:
            fields = unite_fields(rows, self.known.labels, columns)
            made = constructor(columns, fields)
        except DifferError:
            return False
        if not all(all(one.having) for one in fields):
            return False
        self.own[text.name] = text.fields
        self.members[name].append(text.name)
        lines = [f"self.{one.name} = {one.text}" for one in fields]
        for number in reversed(range(len(columns))):
            lines = [line.replace(slot(number), made.texts[number]) for line in lines]
        self.texts[name] = replace(first, fields=lines, constructor=made.signature)
        self.known.labels[name] = [p.name for p in made.parameters]
        for place, member in enumerate(self.members[name]):
            self.known.calls[member] = made.call(name, place)
        return True

    def rows(self, name: str) -> list[list[str]]:
        """The fields of each class that ``name`` stands for."""
        self.own.setdefault(name, self.texts[name].fields)
        return [self.own[member] for member in self.members[name]]


def listed(line: str) -> str:
    """``line`` with an ``nn.ModuleList`` where all in a tuple are of one class now."""
    if "nn.ModuleTuple(" not in line:
        return line
    return unparsed(_Lists().visit(ast.parse(line)))


class _Lists(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.AST:  # noqa: N802
        self.generic_visit(node)
        heads = {ast.unparse(a.func) for a in node.args if isinstance(a, ast.Call)}
        several = all(isinstance(arg, ast.Call) for arg in node.args)
        holders = heads & {"nn.ModuleList", "nn.ModuleTuple", "nn.Sequential"}
        if ast.unparse(node.func) != "nn.ModuleTuple" or holders:
            return node
        if len(heads) != 1 or not several:
            return node
        node.func = ast.Name("nn.ModuleList")
        node.args = [ast.List(node.args, ast.Load())]
        return node


def share(texts: Sequence[ClassText], holders_only: bool = False) -> Shared:
    """The classes of ``texts`` that stay, those that hold no others first united."""
    held = {
        text.name: {
            n for line in (*text.fields, text.steps) for n in _CLASS.findall(line)
        }
        for text in texts
    }
    known = {name: inner & set(held) for name, inner in held.items()}
    rank = heights(known)
    found = Shared(holders_only)
    for level in sorted(set(rank.values())):
        found.settle([text for text in texts if rank[text.name] == level])
    return found

"""Constructors of merged classes: parameters and the sources of their numbers."""

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from burn_import.codegen.merge.parameter_names import is_width
from burn_import.tracing.identifiers import literal

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Parameter:
    """A constructor parameter, and its value in each class."""

    name: str
    kind: str
    values: Row


@dataclass
class Constructor:
    """The parameters of a constructor, and each column's source in terms of them."""

    parameters: list[Parameter] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    #: The condition for each optional field, by name.
    conditions: dict[str, str] = field(default_factory=dict)
    #: By parameter, the one that is None in classes that do not read it.
    guards: dict[str, str] = field(default_factory=dict)

    def call(self, name: str, member: int) -> str:
        """Return a member's constructor call: ``Block(8, 16, stride=2)``.

        Up to two arguments have no names; of more only widths, which come first.
        """
        plain = [p for p in self.parameters if p.kind != "bool"]
        args = []
        for index, parameter in enumerate(self.parameters):
            text = literal(parameter.values[member])
            is_positional = index < 2 and is_width(parameter.name)
            named = parameter not in plain or (len(plain) > 2 and not is_positional)
            args.append(f"{parameter.name}={text}" if named else text)
        return f"{name}({', '.join(args)})"

    def number_sizes(self) -> None:
        """Number the parameters that are sizes in their order."""
        own = [p.name for p in self.parameters if is_size_name(p.name)]
        names = dict(
            zip(own, sorted(own, key=lambda name: (len(name), name)), strict=True)
        )

        def renamed(text: str) -> str:
            return _with_names(text, names)

        self.parameters = [replace(p, name=renamed(p.name)) for p in self.parameters]
        self.texts = list(map(renamed, self.texts))
        self.conditions = {k: renamed(text) for k, text in self.conditions.items()}
        self.guards = {renamed(k): renamed(text) for k, text in self.guards.items()}

    @property
    def thirds(self) -> int:
        """The number of columns that are a third of a parameter: of a packed width."""
        return sum(text.endswith(" // 3") for text in self.texts)

    @property
    def signature(self) -> str:
        """The parameters after ``self``."""
        return "".join(f", {p.name}: {p.kind}" for p in self.parameters)


def _with_names(text: str, names: Mapping[str, str]) -> str:
    """Return an expression with some of its variables renamed; text may be empty."""
    tree = ast.walk(ast.parse(text, mode="eval")) if text else ()
    variables = [node for node in tree if isinstance(node, ast.Name)]
    for node in sorted(variables, key=lambda node: node.col_offset, reverse=True):
        name = names.get(node.id, node.id)
        text = text[: node.col_offset] + name + text[node.end_col_offset :]
    return text


def is_size_name(name: str) -> bool:
    """Return whether a name is that of an extent without another name."""
    return re.fullmatch(r"size\d*", name) is not None

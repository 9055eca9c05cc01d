"""Uses of the modules of one class in the source of the other classes, and edits."""

import ast
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

from burn_import.codegen.class_text import ClassText
from burn_import.codegen.module.module_types import ExpressionTypes, Fields, field_types

_IDENTITY = "nn.Identity"


@dataclass
class Block:
    """Statements of a class: its fields, or the body of a function."""

    owner: str
    lines: Sequence[str]
    edits: list[tuple[int, int, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        #: A header makes indented statements parse.
        first = next((line for line in self.lines if line.strip()), "")
        is_indented = first.startswith(" ")
        self.header = "if True:\n" if is_indented else ""
        self.source = (self.header + "\n".join(self.lines)).encode()
        self.tree = ast.parse(self.source)
        self.starts = [0]
        for line in self.source.split(b"\n"):
            self.starts.append(self.starts[-1] + len(line) + 1)

    def end(self, node: ast.expr) -> int:
        """Return the offset behind an expression."""
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self.starts[node.end_lineno - 1] + node.end_col_offset

    def replace(self, node: ast.expr, text: str) -> None:
        """Replace an expression."""
        start = self.starts[node.lineno - 1] + node.col_offset
        self.edits.append((start, self.end(node), text))

    def replace_between(self, inner: ast.expr, outer: ast.expr, text: str) -> None:
        """Replace what ``outer`` adds to ``inner``, the expression it begins with."""
        self.edits.append((self.end(inner), self.end(outer), text))

    def edited(self) -> list[str]:
        """Return the lines with all edits applied."""
        source = self.source
        for start, end, text in sorted(set(self.edits), reverse=True):
            source = source[:start] + text.encode() + source[end:]
        lines = source.decode().removeprefix(self.header).split("\n")
        joined = iter(lines)
        return [
            "\n".join(next(joined) for _ in range(line.count("\n") + 1))
            for line in self.lines
        ]


@dataclass(frozen=True)
class Read:
    """An expression ``module`` of the class, and the attribute that is read of it."""

    block: Block
    module: ast.expr
    attribute: ast.Attribute
    #: The index behind the attribute: ``module.attribute[0]``.
    element: ast.Subscript | None


class ModuleReads:
    """All uses of the modules of class ``name`` in ``texts``, the other classes.

    ``is_complete`` is false if some use is neither a call nor a read of an attribute.
    """

    def __init__(self, name: str, texts: Sequence[ClassText], own: ClassText) -> None:
        self.name, self.texts = name, texts
        self.fields: Fields = field_types([*texts, own])
        #: The fields of any class that have modules of the class.
        self.attributes = {
            attribute
            for own_fields in self.fields.values()
            for attribute, kind in own_fields.items()
            if name in kind.names or kind.has(name)
        }
        self.blocks = [block for text in texts for block in blocks(text)]
        self.reads: list[Read] = []
        self.calls = 0
        self.is_complete = True
        self._types = [
            ExpressionTypes(block.owner, self.fields, block.tree)
            for block in self.blocks
        ]
        for block, types in zip(self.blocks, self._types, strict=True):
            self._visit(block, types)

    def rename(self, owners: Collection[str], attribute: str, name: str) -> bool:
        """Call a field of the classes ``owners`` by another name.

        Return whether it was possible: no expression reads the field of a module that
        may be of one of the classes or of another one.
        """
        reads: list[tuple[Block, ast.Attribute]] = []
        for block, types in zip(self.blocks, self._types, strict=True):
            for node in ast.walk(block.tree):
                if isinstance(node, ast.Attribute) and node.attr == attribute:
                    around = types.of(node.value)
                    if around is None or around.names.isdisjoint(owners):
                        continue
                    if not around.names <= {*owners, _IDENTITY}:
                        return False
                    reads.append((block, node))
        for block, node in reads:
            block.replace_between(node.value, node, f".{name}")
        return True

    def edited(self) -> list[ClassText]:
        """Return the classes with the edits of their blocks applied."""
        edited = iter(self.blocks)
        return [with_lines(text, edited) for text in self.texts]

    def _visit(self, block: Block, types: ExpressionTypes) -> None:
        parents = {
            id(child): node
            for node in ast.walk(block.tree)
            for child in ast.iter_child_nodes(node)
        }
        for node in ast.walk(block.tree):
            if not isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
                continue
            kind, parent = types.of(node), parents[id(node)]
            if isinstance(node, ast.Attribute) and node.attr in self.attributes:
                self.is_complete &= types.of(node.value) is not None
            if kind is None or not isinstance(node.ctx, ast.Load):
                continue
            is_list = kind.has(self.name)
            if not is_list and self.name not in kind.names:
                continue
            if id(node) in types.followed:
                continue
            if is_list:
                is_known = isinstance(parent, ast.Subscript) or _is_called(node, parent)
                self.is_complete &= is_known
                continue
            self.is_complete &= kind.names <= {self.name, _IDENTITY}
            self._use(block, node, parent, parents)

    def _use(
        self, block: Block, node: ast.expr, parent: ast.AST, parents: dict[int, ast.AST]
    ) -> None:
        if _is_called(node, parent):
            self.calls += 1
        elif isinstance(parent, ast.Attribute):
            outer = parents[id(parent)]
            is_element = isinstance(outer, ast.Subscript) and outer.value is parent
            element = outer if is_element else None
            self.reads.append(Read(block, node, parent, element))  # type: ignore[arg-type]
        else:
            self.is_complete = False


def _is_called(node: ast.expr, parent: ast.AST) -> bool:
    return isinstance(parent, ast.Call) and parent.func is node


def blocks(text: ClassText) -> Iterator[Block]:
    """Yield the statements of a class: its fields, its body, those of its methods."""
    yield Block(text.name, text.fields)
    yield from code_blocks(text)


def code_blocks(text: ClassText) -> Iterator[Block]:
    """Yield the statements of a class that compute: its body, those of its methods."""
    yield Block(text.name, text.body)
    for method in text.methods:
        yield Block(text.name, method.body)


def with_lines(text: ClassText, edited: Iterator[Block]) -> ClassText:
    """Return ``text`` with the lines of its blocks, the next of ``edited``."""
    fields, body = next(edited).edited(), next(edited).edited()
    methods = [replace(m, body=next(edited).edited()) for m in text.methods]
    return replace(text, fields=fields, body=body, methods=methods)

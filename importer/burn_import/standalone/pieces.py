"""Statements of the runtime's source, reduced to the code that inference needs."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise

from burn_import.standalone.library import (
    Definition,
    Library,
    SourceFile,
    decorator_name,
)
from burn_import.standalone.references import Names, names_in

#: Decorators for printing, differentiating or checking definitions, which inference
#: does not need.
_DROPPED = frozenset(
    {"composite", "infix", "prefix", "method", "_spelt", "refuse_containers"}
)
#: Attributes that are always false in inference.
_FALSE = frozenset({"tracks_gradients", "_is_trained"})
_PRAGMA = re.compile(r"\s*# type: ignore\b.*$")
#: Pragma comments at the end of lines.
_WIDTH = 88
_PARAGRAPH = "\n\n"
_NAMESPACE = ("burn.ops.support", "namespace")

Position = tuple[int, int]


@dataclass(frozen=True)
class Edit:
    """A replacement of the text between two positions (line from 1, column)."""

    start: Position
    end: Position
    text: str

    def covers(self, other: Edit) -> bool:
        """Return whether ``other`` lies within this edit."""
        return self is not other and self.start <= other.start <= other.end <= self.end


class Piece:
    """A statement of the runtime: its reduced text and the names in it."""

    def __init__(self, node: ast.stmt, file: SourceFile, library: Library) -> None:
        self.file = file
        self.first, self.last = _lines_of(node, file)
        pruner = _Pruner(file.module, library)
        nodes: list[ast.AST]
        if isinstance(node, ast.ClassDef):
            self.last = _header_end(node, file)
            decorators = [
                d for d in node.decorator_list if decorator_name(d) not in _DROPPED
            ]
            nodes = [*decorators, *node.bases, *node.keywords]
        else:
            pruned = pruner.visit(copy.deepcopy(node))
            nodes = [pruned]
        self.edits = pruner.edits
        #: Packages that its code imports when it runs.
        self.packages = sorted(_packages(nodes))
        self.nodes = nodes
        self.names: Names = names_in(
            nodes, partial(library.meaning, file.module), library
        )
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            self.own = (node.name, _name_position(node, file))
        else:
            self.own = ("", (0, 0))

    def text(self, names: Mapping[tuple[Definition, str], str]) -> str:
        """Return the text with definitions renamed by ``names``."""
        edits = list(self.edits)
        for reference in self.names.references:
            if isinstance(reference.meaning, Definition):
                node = reference.node
                new = names[reference.meaning, reference.name]
                edits.append(Edit(_start(node), _end(node), new))
        return self._apply_edits(
            [e for e in edits if not any(o.covers(e) for o in edits)]
        )

    def renamed(self, new: str) -> Edit:
        """Return the edit that renames the statement's definition to ``new``."""
        name, (line, column) = self.own
        return Edit((line, column), (line, column + len(name)), new)

    def with_name(self, new: str, names: Mapping[tuple[Definition, str], str]) -> str:
        """Return :meth:`text` with the function or class itself renamed to ``new``."""
        self.edits.append(self.renamed(new))
        try:
            return self.text(names)
        finally:
            self.edits.pop()

    def _apply_edits(self, edits: list[Edit]) -> str:
        lines = self.file.lines[self.first - 1 : self.last]
        for edit in sorted(edits, key=lambda e: e.start, reverse=True):
            (first, start), (last, end) = edit.start, edit.end
            first, last = first - self.first, last - self.first
            joined = lines[first][:start] + edit.text + lines[last][end:]
            lines[first : last + 1] = [joined]
        return "\n".join(_PRAGMA.sub("", line) for line in lines)


@cache
def piece_of(node: ast.stmt, file: SourceFile, library: Library) -> Piece:
    """Return the piece of a statement, which is the same for every model."""
    return Piece(node, file, library)


class _Pruner(ast.NodeTransformer):
    """Transformer that removes unneeded code and records the text edits."""

    def __init__(self, module: str, library: Library) -> None:
        self.module, self.library = module, library
        self.edits: list[Edit] = []

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:  # noqa: N802
        decorators = []
        for decorator in node.decorator_list:
            name = decorator_name(decorator)
            if name in _DROPPED:
                line, column = _start(decorator)
                self.edits.append(Edit((line, column - 1), _end(decorator), ""))
            elif name == "primitive":
                decorators.append(self.primitive(decorator))
            else:
                decorators.append(decorator)
        node.decorator_list = decorators
        arguments = node.args
        for argument in (
            *arguments.posonlyargs,
            *arguments.args,
            *arguments.kwonlyargs,
        ):
            argument.annotation = self.unquoted(argument.annotation)
        node.returns = self.unquoted(node.returns)
        self.summarize(node)
        node.body = self.block(node.body)
        return super().generic_visit(node)

    def summarize(self, node: ast.FunctionDef) -> None:
        """Reduce a docstring to its first paragraph."""
        document = ast.get_docstring(node, clean=False)
        if document is not None:
            first = node.body[0]
            text = summary(document, first.col_offset)
            self.edits.append(Edit(_start(first), _end(first), text))

    def unquoted(self, node: ast.expr | None) -> ast.expr | None:
        """Return a type without quotes: standalone modules never evaluate types."""
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            return node
        (line, start), (_, end) = _start(node), _end(node)
        self.edits.append(Edit((line, start), (line, start + 1), ""))
        self.edits.append(Edit((line, end - 1), (line, end), ""))
        inner = ast.parse(node.value, mode="eval").body
        for part in ast.walk(inner):
            if isinstance(part, ast.expr):
                part.lineno = part.end_lineno = line
                part.col_offset += start + 1
                part.end_col_offset = (part.end_col_offset or 0) + start + 1
        return inner

    def primitive(self, decorator: ast.expr) -> ast.expr:
        """Return a decorator without the arguments for plans and gradients."""
        if not isinstance(decorator, ast.Call):
            return decorator
        keywords = [k for k in decorator.keywords if k.arg == "outputs"]
        shown = ", ".join(ast.unparse(keyword) for keyword in keywords)
        text = f"primitive({shown})" if keywords else "primitive"
        function = decorator.func
        self.edits.append(Edit(_end(function), _end(decorator), text[9:]))
        return function

    def block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        """Return statements without unreachable ones."""
        result: list[ast.stmt] = []
        for number, statement in enumerate(statements):
            truth = (
                _truth_value(statement.test) if isinstance(statement, ast.If) else None
            )
            if truth is None or not isinstance(statement, ast.If):
                result.append(statement)
                continue
            branch = statement.body if truth else statement.orelse
            if not branch:
                self.edits.append(Edit(_start(statement), _end(statement), ""))
                continue
            after = statements[number + 1 :]
            is_last = isinstance(branch[-1], ast.Return | ast.Raise)
            end = _end(after[-1] if after and is_last else statement)
            lines = "\n".join(map(ast.unparse, branch)).split("\n")
            text = f"\n{' ' * statement.col_offset}".join(lines)
            self.edits.append(Edit(_start(statement), end, text))
            result += branch
            if is_last:
                break
        return result

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:  # noqa: N802
        neutral = isinstance(node.op, ast.And)
        values = [value for value in node.values if _truth_value(value) is not neutral]
        if len(values) == len(node.values) or len(values) < 2:
            return super().generic_visit(node)
        first, second, *_ = node.values
        if first not in values:
            self.edits.append(Edit(_start(first), _start(second), ""))
        for before, value in pairwise(node.values):
            if value not in values:
                self.edits.append(Edit(_end(before), _end(value), ""))
        node.values = values
        return super().generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:  # noqa: N802
        if isinstance(node.func, ast.Name) and node.func.id == "namespace":
            meaning = self.library.meaning(self.module, "namespace")
            if isinstance(meaning, Definition):
                assert (meaning.module, meaning.names[0]) == _NAMESPACE
                self.edits.append(Edit(_start(node), _end(node), "np"))
                return ast.copy_location(ast.Name("np", ast.Load()), node)
        return super().generic_visit(node)


def summary(document: str, indent: int) -> str:
    """Return the first paragraph of a docstring, as a docstring."""
    text = f'"""{document.partition(_PARAGRAPH)[0].rstrip()}"""'
    first, *more = text.split("\n")
    if len((more or [" " * indent + first])[-1]) > _WIDTH:
        text, _, word = text.rpartition(" ")
        text += "\n" + " " * indent + word
    return text


def _truth_value(test: ast.expr) -> bool | None:
    """Return the constant value of a condition in inference, or None."""
    if isinstance(test, ast.Attribute):
        return False if test.attr in _FALSE else None
    if isinstance(test, ast.Compare) and _is_namespace(test.left):
        return isinstance(test.ops[0], ast.Is)  # of NumPy
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = _truth_value(test.operand)
        return None if inner is None else not inner
    if isinstance(test, ast.BoolOp):
        decisive = isinstance(test.op, ast.Or)
        if any(_truth_value(value) is decisive for value in test.values):
            return decisive
    return None


def _packages(nodes: list[ast.AST]) -> Iterator[str]:
    for node in (inner for outer in nodes for inner in ast.walk(outer)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def _is_namespace(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "namespace"


def _lines_of(node: ast.stmt, file: SourceFile) -> tuple[int, int]:
    """Return the line range of a statement, with decorators and comments above."""
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
    while file.lines[first - 2].lstrip().startswith("#"):
        first -= 1
    return first, node.end_lineno or node.lineno


def _header_end(node: ast.ClassDef, file: SourceFile) -> int:
    """Return the last line of ``class X(Base):``."""
    line = max([node.lineno, *(base.end_lineno or 0 for base in node.bases)])
    while not file.lines[line - 1].endswith(":"):
        line += 1
    return line


def _name_position(node: ast.FunctionDef | ast.ClassDef, file: SourceFile) -> Position:
    line = file.lines[node.lineno - 1]
    word = "class" if isinstance(node, ast.ClassDef) else "def"
    return node.lineno, line.index(f"{word} {node.name}") + len(word) + 1


def _start(node: ast.AST) -> Position:
    return node.lineno, node.col_offset  # type: ignore[attr-defined]


def _end(node: ast.AST) -> Position:
    return node.end_lineno, node.end_col_offset  # type: ignore[attr-defined]

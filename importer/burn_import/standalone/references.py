"""References to global names in the runtime's source."""

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from burn_import.internal import InternalError
from burn_import.standalone.library import (
    Definition,
    External,
    Library,
    Meaning,
    ModuleName,
)

_SCOPES = (ast.FunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
#: Method names of operators.
_BINARY = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "truediv",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.MatMult: "matmul",
    ast.Pow: "pow",
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.BitXor: "xor",
}
_WITHOUT_REFLECTION = {"and", "or", "xor"}
_UNARY = {ast.USub: "neg", ast.Invert: "invert"}
#: Reflected comparisons, for a number on the left.
_COMPARED = {
    ast.Lt: {"__lt__", "__gt__"},
    ast.LtE: {"__le__", "__ge__"},
    ast.Gt: {"__gt__", "__lt__"},
    ast.GtE: {"__ge__", "__le__"},
    ast.Eq: {"__eq__"},
    ast.NotEq: {"__ne__"},
}


@dataclass(frozen=True)
class Reference:
    """A reference to a global, with module attributes: ``dtypes.float32``.

    ``is_kernel`` is set if only its attribute ``kernel`` is read: the function on
    arrays of a primitive.
    """

    node: ast.expr
    meaning: Definition | External
    name: str
    is_kernel: bool = False


@dataclass
class Names:
    """Globals, locals, attributes and operator methods that source reads."""

    references: list[Reference]
    locals: set[str]
    attributes: set[str]
    operators: set[str]


def names_in(
    nodes: Iterable[ast.AST], meaning: Callable[[str], Meaning | None], library: Library
) -> Names:
    """Return the names in pieces of source; ``meaning`` resolves globals."""
    walk = _Walk(meaning, library)
    for node in nodes:
        walk.visit(node)
    return Names(walk.references, walk.locals, walk.attributes, walk.operators)


class _Walk(ast.NodeVisitor):
    def __init__(
        self, meaning: Callable[[str], Meaning | None], library: Library
    ) -> None:
        self.meaning, self.library = meaning, library
        self.references: list[Reference] = []
        self.locals: set[str] = set()
        self.attributes: set[str] = set()
        self.operators: set[str] = set()
        self.scopes: list[frozenset[str]] = []

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, _SCOPES):
            self.on_scope(node)
        elif isinstance(node, ast.AnnAssign):
            self.on_annotation(node.annotation)
            for part in (node.target, node.value):
                if part is not None:
                    self.visit(part)
        elif isinstance(node, _COMPREHENSIONS):
            targets = _targets(g.target for g in node.generators)
            self.enter(targets, ast.iter_child_nodes(node))
        else:
            self.on_operator(node)
            if not (isinstance(node, ast.Name | ast.Attribute) and self.refer(node)):
                super().generic_visit(node)

    def on_scope(self, node: ast.FunctionDef | ast.Lambda | ast.ClassDef) -> None:
        """Visit the outer expressions of a scope, then its body."""
        if isinstance(node, ast.ClassDef):
            for outer in (*node.decorator_list, *node.bases, *node.body):
                self.visit(outer)
            return
        arguments = node.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        every += [a for a in (arguments.vararg, arguments.kwarg) if a]
        outside: list[ast.AST | None] = [*arguments.defaults, *arguments.kw_defaults]
        annotations = [argument.annotation for argument in every]
        inside: list[ast.AST] = [node.body] if isinstance(node, ast.Lambda) else []
        if isinstance(node, ast.FunctionDef):
            outside += node.decorator_list
            annotations.append(node.returns)
            inside = [*node.body]
        for item in outside:
            if item is not None:
                self.visit(item)
        for item in annotations:
            if item is not None:
                self.on_annotation(item)
        self.enter({a.arg for a in every} | set(_assigned_names(inside)), inside)

    def on_annotation(self, node: ast.expr) -> None:
        """Record the globals in a type, whose operators compute nothing."""
        attributes, operators = set(self.attributes), set(self.operators)
        self.visit(node)
        self.attributes, self.operators = attributes, operators

    def enter(self, names: set[str], nodes: Iterable[ast.AST]) -> None:
        """Visit nodes in which ``names`` are local."""
        self.locals |= names
        self.scopes.append(frozenset(names))
        for node in nodes:
            self.visit(node)
        self.scopes.pop()

    def refer(self, node: ast.Name | ast.Attribute) -> bool:
        """Record a global; return False if the node is not one."""
        path: list[str] = []
        inner: ast.expr = node
        while isinstance(inner, ast.Attribute):
            path.insert(0, inner.attr)
            inner = inner.value
        if not isinstance(inner, ast.Name) or any(inner.id in s for s in self.scopes):
            self.attributes.update(path[-1:])
            return False
        name = inner.id
        meaning: Meaning | None = self.meaning(name)
        if meaning is None:
            self.attributes.update(path)
            return True
        expression: ast.expr = inner
        while isinstance(meaning, ModuleName):
            if not path:
                raise InternalError(f"expected an attribute of the module {name}")
            name = path.pop(0)
            attribute = self.library.meaning(meaning.name, name)
            if attribute is None:
                raise InternalError(f"expected {name!r} in {meaning.name}")
            meaning = attribute
            expression = _strip_attributes(node, len(path))
        if isinstance(meaning, Definition):
            self.attributes.update(path)
            if name not in meaning.names:  # imported as something else
                (name,) = meaning.names
        is_kernel = path[:1] == ["kernel"]
        self.references.append(Reference(expression, meaning, name, is_kernel))
        return True

    def on_operator(self, node: ast.AST) -> None:
        """Record the method that an operator calls on a tensor."""
        if isinstance(node, ast.BinOp | ast.AugAssign):
            name = _BINARY.get(type(node.op))
            if name is not None:
                self.operators |= {f"__{name}__"}
                if name not in _WITHOUT_REFLECTION:
                    self.operators |= {f"__r{name}__"}
        elif isinstance(node, ast.UnaryOp) and type(node.op) in _UNARY:
            self.operators.add(f"__{_UNARY[type(node.op)]}__")
        elif isinstance(node, ast.Compare):
            self.operators.update(*(_COMPARED.get(type(op), ()) for op in node.ops))
        elif isinstance(node, ast.Subscript) and not _is_shape(node.value):
            self.operators.add("__getitem__")


def _is_shape(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "shape"


def _strip_attributes(node: ast.expr, rest: int) -> ast.expr:
    """Return ``a.b`` of ``a.b.c`` for a rest of 1."""
    for _ in range(rest):
        assert isinstance(node, ast.Attribute)
        node = node.value
    return node


def _targets(nodes: Iterable[ast.AST]) -> set[str]:
    return {
        inner.id
        for node in nodes
        for inner in ast.walk(node)
        if isinstance(inner, ast.Name)
    }


def _assigned_names(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the names that statements bind in their own scope."""
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
            continue
        elif isinstance(node, ast.ExceptHandler) and node.name:
            yield node.name
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.Lambda):
            continue
        elif isinstance(node, _COMPREHENSIONS):
            walrus = (n for n in ast.walk(node) if isinstance(n, ast.NamedExpr))
            yield from (n.target.id for n in walrus)
            continue
        yield from _assigned_names(ast.iter_child_nodes(node))

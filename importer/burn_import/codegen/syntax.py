"""The source of constructors as syntax trees: fields, parameters, lists of modules."""

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from burn_import.codegen.class_text import ClassText

#: Modules whose arguments are their children, numbered from 0.
LISTS = frozenset({"nn.ModuleList", "nn.ModuleTuple", "nn.Sequential"})
#: Modules of PyTorch by the names that generated source imports them as.
_IMPORTED = frozenset({"F", "nn", "torch"})
#: The type of an array by the function that makes it.
ARRAYS = {"nn.buffer": "nn.Buffer", "nn.parameter": "nn.Parameter"}


def expression_of(text: str) -> ast.expr:
    """Return the expression that ``text`` consists of."""
    return ast.parse(text, mode="eval").body


def statement_of(line: str) -> ast.stmt:
    """Return the statement that a line of a constructor consists of."""
    return ast.parse(line).body[0]


def fields_of(text: ClassText) -> Iterator[tuple[str, ast.expr]]:
    """Yield the fields of a class: attribute and value. Ties are no fields."""
    for line in text.fields:
        name, value = assigned_field(statement_of(line))
        if value is not None:
            yield name, value


def assigned_field(statement: ast.stmt) -> tuple[str, ast.expr | None]:
    """Return the name and value of a field; "" if the statement assigns no field."""
    target = value = None
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target, value = statement.targets[0], statement.value
    elif isinstance(statement, ast.AnnAssign):
        target, value = statement.target, statement.value
    is_field = isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name)
    return (target.attr, value) if is_field else ("", None)  # type: ignore[union-attr]


def parameters_of(signature: str) -> dict[str, str]:
    """Return the parameters after ``self``, with the sources of their types."""
    function = statement_of(f"def f(self{signature}): ...")
    assert isinstance(function, ast.FunctionDef)
    arguments = [*function.args.args[1:], *function.args.kwonlyargs]
    return {
        one.arg: ast.unparse(one.annotation) if one.annotation else ""
        for one in arguments
    }


def called_name(node: ast.AST | None) -> str:
    """Return the source of what an expression calls: ``nn.Linear``; "" if it is no
    call.
    """
    return ast.unparse(node.func) if isinstance(node, ast.Call) else ""


def names_in(tree: ast.AST) -> set[str]:
    """Return the names that a tree reads or binds, without attributes."""
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def constructor_calls(texts: Iterable[ClassText], name: str) -> list[ast.Call]:
    """Return the calls of the class ``name`` in the constructors of classes."""
    trees = [ast.parse(source) for text in texts for source in text.sources]
    return [call for tree in trees for call in calls_in(tree, name)]


def calls_in(tree: ast.AST, name: str) -> list[ast.Call]:
    """Return the calls of the class ``name`` in a syntax tree."""
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return [node for node in nodes if called_name(node) == name]


def default_calls(source: str) -> list[tuple[ast.Call, str]]:
    """Return the calls without arguments in statements, with the called names.

    Names of a module, like ``nn.Identity``, are left out.
    """
    return [
        (node, node.func.id)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        if not node.args and not node.keywords
    ]


def called_classes(line: str) -> list[str]:
    """Return the names without a module that a statement calls, as they are written."""
    calls = [
        node for node in ast.walk(statement_of(line)) if isinstance(node, ast.Call)
    ]
    names = [call.func for call in calls if isinstance(call.func, ast.Name)]
    return [name.id for name in sorted(names, key=_position)]


def replace_names(source: str, names: Mapping[str, str]) -> str:
    """Return statements with other names of classes, in calls and annotations."""
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)]
    return replace_nodes(source, [(n, names[n.id]) for n in nodes if n.id in names])


def replace_nodes(source: str, nodes: Iterable[tuple[ast.expr, str]]) -> str:
    """Return ``source`` with other texts for expressions of its syntax tree.

    The expressions do not overlap, and each is written on one line.
    """
    lines = source.encode().split(b"\n")
    for node, text in sorted(nodes, key=lambda one: _position(one[0]), reverse=True):
        line = lines[node.lineno - 1]
        before, after = line[: node.col_offset], line[node.end_col_offset :]
        lines[node.lineno - 1] = before + text.encode() + after
    return b"\n".join(lines).decode()


def rename_attributes(source: str, names: Mapping[str, str]) -> str:
    """Return statements with other names of attributes, but of imported modules."""
    attributes = [
        node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute)
    ]
    lines = source.encode().split(b"\n")
    for node in sorted(attributes, key=_end, reverse=True):
        owner = node.value.id if isinstance(node.value, ast.Name) else ""
        if node.attr in names and owner not in _IMPORTED:
            row, end = _end(node)
            line, start = lines[row - 1], end - len(node.attr.encode())
            lines[row - 1] = line[:start] + names[node.attr].encode() + line[end:]
    return b"\n".join(lines).decode()


def _end(node: ast.expr) -> tuple[int, int]:
    assert node.end_lineno is not None and node.end_col_offset is not None
    return node.end_lineno, node.end_col_offset


def _position(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


def list_items(call: ast.Call) -> Sequence[ast.expr]:
    """Return the arguments of a list, or the elements of its only argument."""
    only = call.args[0] if len(call.args) == 1 else None
    return only.elts if isinstance(only, ast.List) else call.args


def listed_values(call: ast.Call) -> Iterator[ast.expr]:
    """Yield the expressions that construct the elements of a list of modules.

    The list may be ``[item] if ... else []``.
    """
    only = call.args[0] if len(call.args) == 1 else None
    sides = [only.body, only.orelse] if isinstance(only, ast.IfExp) else []
    lists = [side.elts for side in sides if isinstance(side, ast.List)]
    is_optional = bool(sides) and len(lists) == len(sides)
    for item in chain(*lists) if is_optional else list_items(call):
        yield repetition(item)[0]


def repetition(item: ast.expr) -> tuple[ast.expr, ast.comprehension | None]:
    """Return the element of an item ``*(element for _ in range(3))``, and its loop."""
    value = item.value if isinstance(item, ast.Starred) else item
    if isinstance(value, ast.GeneratorExp | ast.ListComp):
        return value.elt, value.generators[0]
    return value, None


def range_call(loop: ast.comprehension) -> ast.Call | None:
    """Return the call ``range(3)`` that a comprehension iterates over, else None."""
    call = loop.iter
    return call if isinstance(call, ast.Call) and len(call.args) == 1 else None

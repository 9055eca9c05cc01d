"""The assignments of a merged ``__init__``, with parameters at their places."""

import ast
from collections.abc import Collection, Iterator, Sequence

from burn_import.codegen import syntax
from burn_import.codegen.merge.constructors import Constructor
from burn_import.codegen.merge.init_fields import Field, slot_number
from burn_import.tracing.unparse import unparse_expression

#: Lists of modules of one type, and of several.
_LISTS = frozenset({"nn.ModuleList", "nn.ModuleTuple"})


def field_lines(
    fields: Sequence[Field], constructor: Constructor, absent: Collection[str]
) -> Iterator[str]:
    """Yield the assignment of each field.

    An optional module is ``nn.Identity()`` where a class lacks it, an optional list is
    empty. Attributes in ``absent`` are None there, since the class checks for them.
    """
    for one in fields:
        source = _Slots(constructor.texts).visit(syntax.expression_of(one.text))
        if all(one.having):
            yield f"self.{one.name} = {unparse_expression(source)}"
            continue
        condition = syntax.expression_of(constructor.conditions[one.name])
        if one.name in absent:
            kind, default = _type(source), "None"
        elif syntax.called_name(source) == "nn.ModuleList":
            items = ast.IfExp(condition, source.args[0], ast.List([], ast.Load()))
            source.args = [items]
            yield f"self.{one.name} = {unparse_expression(source)}"
            continue
        else:
            kind, default = _type(source), "nn.Identity"
        other = syntax.expression_of(default + "()" * (default != "None"))
        value = unparse_expression(ast.IfExp(condition, source, other))
        yield f"self.{one.name}: {kind} | {default} = ({value})"


def with_annotation(line: str) -> str:
    """The assignment ``line`` with the type of the module that its value makes."""
    head, colon, _ = line.partition(" = ")[0].partition(": ")
    if not colon:
        return line
    _, value = syntax.assigned_field(syntax.statement_of(line))
    if not isinstance(value, ast.IfExp) or not isinstance(value.body, ast.Call):
        return line
    default = ast.unparse(value.orelse).removesuffix("()")
    return f"{head}: {_type(value.body)} | {default} = ({unparse_expression(value)})"


class _Slots(ast.NodeTransformer):
    """Replaces the placeholders of columns by expressions of parameters."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts

    def visit_Name(self, node: ast.Name) -> ast.expr:  # noqa: N802
        """Return the expression for a placeholder; other names stay."""
        number = slot_number(node.id)
        if number is None:
            return node
        return syntax.expression_of(self.texts[number])


def _type(source: ast.expr) -> str:
    """Return the annotation of an attribute: ``nn.ModuleTuple[nn.Linear, Block]``."""
    assert isinstance(source, ast.Call)
    name = syntax.called_name(source)
    if name not in _LISTS:
        return syntax.ARRAYS.get(name, name)
    members = dict.fromkeys(map(_type, syntax.listed_values(source)))
    if name == "nn.ModuleTuple":
        return f"{name}[{', '.join(map(_type, source.args))}]"
    return f"{name}[{' | '.join(members)}]"

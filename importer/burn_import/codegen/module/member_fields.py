"""Fields that construct a class, rewritten to construct the members of the class."""

import ast
import copy
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from burn_import.codegen import syntax
from burn_import.codegen.class_text import ClassText
from burn_import.tracing.unparse import unparse_expression

_OMITTED = "nn.Identity()"
_COMPUTE: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}

#: The attribute that each member gets, by class and attribute of the replaced field.
NewNames = Mapping[tuple[str, str], Mapping[str, str]]


@dataclass(frozen=True)
class Container:
    """A class without computations: its members' values and their names in keys.

    ``path`` follows an instance in expressions that read the member of a class with
    a single one: ``.layers[0]``. Such a class may pass its calls on to the member.
    """

    text: ClassText
    parameters: Sequence[str]
    members: Mapping[str, ast.expr]
    record_names: Mapping[str, str]
    path: str = ""

    @property
    def has_one_layer(self) -> bool:
        """Whether the class has a single member, which is one layer."""
        values = list(self.members.values())
        if len(values) != 1 or not isinstance(values[0], ast.Call):
            return False
        return sum(isinstance(node, ast.Call) for node in ast.walk(values[0])) == 1

    def constructed(self, call: ast.Call) -> dict[str, ast.expr] | None:
        """Return the values of the members of the instance that ``call`` constructs.

        It is None if an argument that is computed would be part of another
        computation.
        """
        arguments: dict[str, ast.expr] = {
            **dict(zip(self.parameters, call.args, strict=False)),
            **{keyword.arg: keyword.value for keyword in call.keywords if keyword.arg},
        }
        if set(arguments) != set(self.parameters):
            return None
        computed = {n for n, one in arguments.items() if isinstance(one, ast.BinOp)}
        for node in (n for value in self.members.values() for n in ast.walk(value)):
            if isinstance(node, ast.BinOp) and computed & _variables(node):
                return None
        substitution = _Substitution(arguments)
        return {
            name: substitution.visit(copy.deepcopy(value))
            for name, value in self.members.items()
        }


def _variables(node: ast.AST) -> set[str]:
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}


class _Substitution(ast.NodeTransformer):
    """Replaces the parameters of a constructor by the arguments of a call."""

    def __init__(self, values: Mapping[str, ast.expr]) -> None:
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.AST:  # noqa: N802
        return self.values.get(node.id, node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:  # noqa: N802
        self.generic_visit(node)
        compute = _COMPUTE.get(type(node.op))
        left, right = _number(node.left), _number(node.right)
        if compute is None or left is None or right is None:
            return node
        return ast.Constant(compute(left, right))


def _number(node: ast.expr) -> int | None:
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, int) else None


@dataclass(frozen=True)
class ConstructedField:
    """A field of class ``owner`` that is an instance of a class, or a list of them.

    ``count`` is the number of calls in its source. A field that may be
    ``nn.Identity`` is not ``is_plain``, and no list is.
    """

    owner: str
    attribute: str
    count: int
    is_list: bool
    is_plain: bool


def constructed_fields(
    container: Container, texts: Sequence[ClassText]
) -> list[ConstructedField] | None:
    """Return the fields that construct instances; None if others do as well."""
    name = container.text.name
    fields = [field for text in texts for field in _fields(name, text)]
    calls = syntax.constructor_calls(texts, name)
    if len(calls) != sum(field.count for field in fields):
        return None
    is_known = all(container.constructed(call) is not None for call in calls)
    has_lists = any("{" in one for one in container.record_names.values())
    is_known &= not (has_lists and any(field.is_list for field in fields))
    return fields if is_known else None


def _fields(name: str, text: ClassText) -> Iterator[ConstructedField]:
    """Yield the fields of ``text`` with instances of the class ``name`` alone."""
    for attribute, value in syntax.fields_of(text):
        calls = syntax.calls_in(value, name)
        if not calls:
            continue
        is_plain = calls[0] is value
        is_optional = (
            isinstance(value, ast.IfExp)
            and value.body is calls[0]
            and ast.unparse(value.orelse) == _OMITTED
        )
        is_list = syntax.called_name(value) in syntax.LISTS and all(
            any(element is call for call in calls)
            for element in syntax.listed_values(value)  # type: ignore[arg-type]
        )
        if is_plain or is_optional or is_list:
            count = len(calls)
            yield ConstructedField(text.name, attribute, count, is_list, is_plain)


def with_members(
    text: ClassText,
    container: Container,
    fields: Sequence[ConstructedField],
    names: NewNames,
) -> ClassText:
    """Return ``text`` with the members in place of instances of the container.

    The body of ``text`` reads the new names already, as does the target of a field
    that is renamed.
    """
    own = {field.attribute: field for field in fields if field.owner == text.name}
    if not own:
        return text
    targets = {
        target: attribute
        for attribute in own
        for target in (attribute, *names[text.name, attribute].values())
    }
    record_names, lines = dict(text.record_names), list[str]()
    for line in text.fields:
        target, value = syntax.assigned_field(syntax.statement_of(line))
        attribute = targets.get(target, "")
        if (
            not attribute
            or not value
            or not syntax.calls_in(value, container.text.name)
        ):
            lines.append(line)
            continue
        new = names[text.name, attribute]
        lines += _member_lines(line, container, own[attribute], new)
        outer = record_names.pop(attribute, attribute)
        outer += ".{0}" if own[attribute].is_list and "{" not in outer else ""
        for member, inner in container.record_names.items():
            key = f"{outer}.{inner}".removesuffix(".")
            if key != new[member]:
                record_names[new[member]] = key
    modules = text.modules | container.text.modules
    return replace(text, fields=lines, modules=modules, record_names=record_names)


def _member_lines(
    line: str, container: Container, field: ConstructedField, names: Mapping[str, str]
) -> list[str]:
    """Return the assignments of the members to the attributes ``names``."""
    statement = syntax.statement_of(line)
    assert isinstance(statement, ast.Assign | ast.AnnAssign)
    if not field.is_plain:
        statement = _Members(container).visit(statement)
        text = unparse_expression(statement)
        kind = next(filter(None, map(syntax.called_name, container.members.values())))
        return [text.replace(f": {container.text.name} | ", f": {kind} | ", 1)]
    assert isinstance(statement.value, ast.Call)
    values = container.constructed(statement.value) or {}
    return [
        f"self.{names[member]} = {unparse_expression(value)}"
        for member, value in values.items()
    ]


class _Members(ast.NodeTransformer):
    """Replaces calls of a class with a single member by the member."""

    def __init__(self, container: Container) -> None:
        self.container = container

    def visit_Call(self, node: ast.Call) -> ast.AST:  # noqa: N802
        self.generic_visit(node)
        if syntax.called_name(node) != self.container.text.name:
            return node
        (member,) = (self.container.constructed(node) or {"": node}).values()
        return member

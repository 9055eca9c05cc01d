"""Unification of the fields of several classes into one ``__init__``."""

import ast
import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

from burn import nn
from burn_import.codegen import syntax
from burn_import.codegen.merge.expression_slots import MISSING, DifferError
from burn_import.tracing.unparse import unparse_expression

#: Modules that only hold others, whose arguments are no numbers of their own.
HOLDERS = frozenset(
    {"ModuleList", "ModuleTuple", "Sequential", "Identity"} | {"ParameterList"}
)
#: Lists of modules that may be called one after another.
LISTS = frozenset({"nn.ModuleList", "nn.Sequential"})
#: Parameter names of generated constructors, by class name.
Labels = Mapping[str, Sequence[str]]
#: By class name, the parameters that are not read where another parameter is None,
#: with that other parameter.
Guards = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class Column:
    """A literal that differs between classes, and the names of its uses."""

    values: tuple[Any, ...]
    label: str
    field: str
    #: Whether it must follow from other columns for the classes to be unified.
    derived: bool = False
    #: The label of the argument that is None where this one is not read.
    guard: str = ""


@dataclass(frozen=True)
class Field:
    """An attribute, its source with column placeholders, and the classes with it."""

    name: str
    text: str
    having: tuple[bool, ...]


def slot(number: int) -> str:
    """Return the placeholder for a column in the source of a field."""
    return f"slot_{number}_"


def slot_number(name: str) -> int | None:
    """Return the column of a placeholder; None for other names."""
    match = re.fullmatch(r"slot_(\d+)_", name)
    return int(match[1]) if match else None


def unite_fields(
    classes: Sequence[Sequence[str]],
    labels: Labels,
    columns: list[Column],
    guards: Guards | None = None,
) -> list[Field]:
    """Return the unified fields of all classes; append to ``columns``.

    Raises:
        DifferError: a field cannot be unified.
    """
    assignments = [dict(map(_assignment, lines)) for lines in classes]
    run = _Fields(labels, columns, guards or {})
    names = list(dict.fromkeys(name for fields in assignments for name in fields))
    united = []
    for name in names:
        having = tuple(name in fields for fields in assignments)
        run.field, run.having = name, having
        nodes = [fields[name] for fields in assignments if name in fields]
        united.append(Field(name, unparse_expression(run.same(nodes)), having))
    return united


def _assignment(line: str) -> tuple[str, ast.expr]:
    statement = syntax.statement_of(line)
    name, value = syntax.assigned_field(statement)
    if value is None or not isinstance(statement, ast.Assign):
        raise DifferError  # a tie
    return name, value


class _Fields:
    def __init__(self, labels: Labels, columns: list[Column], guards: Guards) -> None:
        self.labels = labels
        self.columns = columns
        self.guards = guards
        self.guard = ""
        self.field = ""
        self.having: tuple[bool, ...] = ()
        self.derived = False

    def same(self, nodes: Sequence[ast.expr], label: str | None = None) -> ast.expr:
        """Return a common expression; literals may differ if they have a ``label``."""
        first = nodes[0]
        equal = len({ast.dump(node) for node in nodes}) == 1 and label is None
        if equal and not any(isinstance(node, ast.Call) for node in ast.walk(first)):
            return first
        if all(isinstance(node, ast.Call) for node in nodes):
            return self.call(nodes)  # type: ignore[arg-type]
        if all(isinstance(node, ast.GeneratorExp) for node in nodes):
            return self.generator(nodes)  # type: ignore[arg-type]
        if all(isinstance(node, ast.List) for node in nodes):
            return self.items(nodes)  # type: ignore[arg-type]
        if all(isinstance(node, ast.BinOp) for node in nodes):
            return self.progression(nodes, label)  # type: ignore[arg-type]
        return self.literal(nodes, label)

    def progression(self, nodes: Sequence[ast.BinOp], label: str | None) -> ast.expr:
        """Unify ``64 + 32 * i`` of comprehensions: the first number may differ."""
        if len({(ast.dump(node.op), ast.dump(node.right)) for node in nodes}) > 1:
            raise DifferError
        first = self.same([node.left for node in nodes], label)
        return ast.BinOp(first, nodes[0].op, nodes[0].right)

    def literal(self, nodes: Sequence[ast.expr], label: str | None) -> ast.expr:
        try:
            values = [ast.literal_eval(node) for node in nodes]
        except ValueError:
            values = []
        if len({ast.dump(node) for node in nodes}) == 1 and (
            label is None or not values
        ):
            return nodes[0]
        if not values or label is None:
            raise DifferError
        return self.column(values, label)

    def column(self, values: Sequence[Any], label: str) -> ast.expr:
        own = iter(values)
        row = tuple(next(own) if has else MISSING for has in self.having)
        self.columns.append(Column(row, label, self.field, self.derived, self.guard))
        return ast.Name(slot(len(self.columns) - 1))

    def items(self, nodes: Sequence[ast.List]) -> ast.expr:
        if len({len(node.elts) for node in nodes}) > 1:
            raise DifferError
        columns = zip(*(node.elts for node in nodes), strict=True)
        return ast.List([self.same(items) for items in columns], ast.Load())

    def generator(self, nodes: Sequence[ast.GeneratorExp]) -> ast.expr:
        element = self.same([node.elt for node in nodes])
        rounds = nodes[0].generators
        if len({ast.dump(node.generators[0]) for node in nodes}) > 1:
            counts = [_count(node.generators[0]) for node in nodes]
            times = ast.Call(ast.Name("range"), [self.literal(counts, "depth")], [])
            rounds = [ast.comprehension(rounds[0].target, times, [], 0)]
        return ast.GeneratorExp(element, rounds)

    def call(self, nodes: Sequence[ast.Call]) -> ast.expr:
        function = nodes[0].func
        if LISTS.issuperset(map(syntax.called_name, nodes)):
            lists = [_elements(node) for node in nodes]
            if len({len(one) for one in lists}) > 1:
                return self.lists(function, lists)
        if len({ast.dump(n.func) for n in nodes}) > 1:
            raise DifferError
        if len({len(n.args) for n in nodes}) > 1:
            raise DifferError
        labels = self.labels_of(function, len(nodes[0].args))
        args = []
        for index, given in enumerate(zip(*(n.args for n in nodes), strict=True)):
            label = labels[min(index, len(labels) - 1)] if labels else None
            args.append(self.argument(nodes, given, label))
        keywords = self.keywords(nodes)
        return ast.Call(function, args, keywords)

    def argument(
        self, calls: Sequence[ast.Call], values: Sequence[ast.expr], label: str | None
    ) -> ast.expr:
        """Unify an argument of ``calls``; it may be any number where none reads it."""
        class_name = syntax.called_name(calls[0])
        guard = self.guards.get(class_name, {}).get(label or "")
        if not guard:
            return self.same(values, label)
        arguments = [_argument(one, guard, self.labels[class_name]) for one in calls]
        is_read = [not is_none(value) for value in arguments]
        if not any(is_read):
            return values[0]
        before, flags = (self.having, self.guard), iter(is_read)
        self.having = tuple(own and next(flags) for own in self.having)
        self.guard = guard
        value = self.same(list(compress(values, is_read)), label)
        self.having, self.guard = before
        return value

    def lists(
        self, function: ast.expr, lists: Sequence[Sequence[ast.expr]]
    ) -> ast.expr:
        """Unify lists of equal modules, possibly after a first one, of any length."""
        if not all(lists):
            raise DifferError
        firsts = [one[0] for one in lists]
        uniform = all(len(set(map(ast.dump, one))) == 1 for one in lists)
        element = self.same(firsts)
        if uniform:
            times = self.column([len(one) for one in lists], "depth")
            each = _generator(element, times)
            is_list = ast.unparse(function) == "nn.ModuleList"
            return ast.Call(function, [each if is_list else ast.Starred(each)], [])
        others = self.others([one[1:] for one in lists])
        times = self.column([len(one) for one in lists], "depth")
        count = ast.BinOp(times, ast.Sub(), ast.Constant(1))
        items: list[ast.expr] = [element, ast.Starred(_generator(others, count))]
        if ast.unparse(function) == "nn.ModuleList":
            items = [ast.List(items, ast.Load())]
        return ast.Call(function, items, [])

    def others(self, lists: Sequence[Sequence[ast.expr]]) -> ast.expr:
        """Unify the modules after the first one, equal within each list."""
        if any(len(set(map(ast.dump, one))) > 1 for one in lists):
            raise DifferError
        before = self.having
        has = iter(bool(one) for one in lists)
        self.having = tuple(own and next(has) for own in before)
        self.derived = True
        element = self.same([one[0] for one in lists if one])
        self.having, self.derived = before, False
        return element

    def keywords(self, nodes: Sequence[ast.Call]) -> list[ast.keyword]:
        """Unify keyword arguments, adding a layer's defaults where one is missing."""
        arguments = [{k.arg: k.value for k in node.keywords} for node in nodes]
        names = list(dict.fromkeys(name for own in arguments for name in own))
        defaults = _defaults(nodes[0].func) if nodes else {}
        order = list(defaults)
        names.sort(key=lambda n: order.index(n) if n in order else -1)
        united = []
        for name in names:
            values: list[ast.expr | None] = [
                own.get(name) or defaults.get(name) for own in arguments
            ]
            if name is None or any(value is None for value in values):
                raise DifferError
            value = self.argument(nodes, values, name)  # type: ignore[arg-type]
            united.append(ast.keyword(name, value))
        return united

    def labels_of(self, function: ast.expr, count: int) -> Sequence[str]:
        """Return the names of a constructor's ``count`` positional arguments."""
        if isinstance(function, ast.Name):
            return self.labels.get(function.id, ())
        if not isinstance(function, ast.Attribute) or function.attr in HOLDERS:
            return ()
        layer_class = getattr(nn, function.attr, None)
        if not inspect.isclass(layer_class):
            return self.extents(count)  # nn.parameter, nn.buffer
        return list(inspect.signature(layer_class).parameters)

    def extents(self, count: int) -> Sequence[str]:
        """Return labels for the dimensions of a stored array, such as a kernel's."""
        if self.field == "mask":
            return ["mask_size"]
        is_kernel = count > 2 and "weight" in self.field
        return ("out_channels", "in_channels", "kernel_size") if is_kernel else ["size"]


def _argument(call: ast.Call, name: str, labels: Sequence[str]) -> ast.expr | None:
    """Return an argument of a call by name or position."""
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    return named.get(name, dict(zip(labels, call.args, strict=False)).get(name))


def is_none(value: ast.expr | None) -> bool:
    """Return whether the source of a value is ``None``."""
    return isinstance(value, ast.Constant) and value.value is None


def _elements(call: ast.Call) -> list[ast.expr]:
    """Return the modules of a list; none if they depend on their index."""
    elements: list[ast.expr] = []
    for element, loop in map(syntax.repetition, syntax.list_items(call)):
        if loop is None:
            elements.append(element)
            continue
        times = _count(loop)
        if ast.unparse(loop.target) != "_" or not isinstance(times, ast.Constant):
            return []
        elements += [element] * int(str(times.value))
    return elements


def _generator(element: ast.expr, times: ast.expr) -> ast.GeneratorExp:
    """Return ``element for _ in range(times)``."""
    rounds = ast.Call(ast.Name("range"), [times], [])
    return ast.GeneratorExp(
        element, [ast.comprehension(ast.Name("_", ast.Store()), rounds, [], 0)]
    )


def _count(loop: ast.comprehension) -> ast.expr:
    """Return the argument of ``range`` in ``... for _ in range(3)``."""
    times = syntax.range_call(loop)
    if times is None:
        raise DifferError
    return times.args[0]


def _defaults(function: ast.expr) -> dict[str | None, ast.expr]:
    """Return the literal defaults of a layer's options."""
    layer_class = (
        getattr(nn, function.attr, None) if isinstance(function, ast.Attribute) else 0
    )
    if not inspect.isclass(layer_class):
        return {}
    return {
        name: ast.Constant(parameter.default)
        for name, parameter in inspect.signature(layer_class).parameters.items()
        if isinstance(parameter.default, int | float | str)
    }

"""Constructor parameters for the numbers in which merged classes differ."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from burn_import.codegen.merge.column_order import ascending_orders, is_last, rank
from burn_import.codegen.merge.constructors import (
    Constructor,
    Parameter,
    Row,
    is_size_name,
)
from burn_import.codegen.merge.expression_slots import MISSING, DifferError
from burn_import.codegen.merge.init_fields import Column, Field
from burn_import.codegen.merge.number_relations import (
    as_pairs,
    differences,
    line,
    pair,
    quotients,
    root,
    sizes,
    unequal_to_one,
)
from burn_import.codegen.merge.parameter_names import (
    are_one_kind,
    is_width,
    kind_of,
    label_of,
    parameter_name,
)
from burn_import.codegen.syntax import expression_of, names_in
from burn_import.tracing.identifiers import Namespace, identifier, literal

#: Maximum number of parameters; with more, separate classes are clearer.
MOST_PARAMETERS = 9
#: Factors between related numbers, and sizes of windows.
FACTORS = (2, 3, 4, 6, 8)
WINDOW_SIZES = range(2, 33)
#: Minimum number of classes for a derived condition; fewer may match by chance.
FEW = 3
#: The number of modules in a list.
DEPTH = "depth"


def constructor(
    columns: Sequence[Column], fields: Sequence[Field], reserved: Iterable[str] = ()
) -> Constructor:
    """Return parameters that express all columns, with names that are not ``reserved``.

    Raises:
        DifferError: there are too many, or one has several types.
    """
    columns = [replace(one, values=as_pairs(one.label, one.values)) for one in columns]
    orders = [list(range(len(columns)))]
    orders += [one for one in ascending_orders(columns) if one not in orders]
    attempts = [_attempt(columns, fields, reserved, order) for order in orders]
    results = [one for one in attempts if one is not None]
    if not results:
        raise DifferError
    result = min(results, key=lambda one: (len(one.parameters), one.thirds))
    if len(result.parameters) > MOST_PARAMETERS:
        raise DifferError
    return result


def _attempt(
    columns: Sequence[Column],
    fields: Sequence[Field],
    reserved: Iterable[str],
    order: Sequence[int],
) -> Constructor | None:
    """Return parameters that express all columns, added in ``order``, or None."""
    run = _Plan(columns, reserved)
    run.constructor.texts = [""] * len(columns)
    # Columns of some classes come last: they may equal a parameter of all classes.
    try:
        for at in sorted(order, key=lambda at: rank(columns[at])):
            text = run.text(columns[at])
            run.constructor.texts[at] = text
            run.order[text] = min(at, run.order.get(text, at))
    except DifferError:
        return None
    run.guard_unread()
    absent = [one for one in fields if not all(one.having)]
    for one in sorted(absent, key=lambda one: one.name not in run.only):
        run.condition(one)
    # Widths first, as usual; keyword arguments last.
    run.constructor.parameters.sort(
        key=lambda p: (
            p.kind == "bool",
            not is_width(p.name),
            run.order.get(p.name, len(columns)),
        )
    )
    run.constructor.number_sizes()
    return run.constructor


class _Plan:
    def __init__(self, columns: Sequence[Column], reserved: Iterable[str]) -> None:
        self.columns = columns
        self.constructor = Constructor()
        self.names = Namespace(["self", *reserved])
        #: Parameters that only classes with a certain field get.
        self.only: dict[str, list[str]] = {}
        #: The first column with each source.
        self.order: dict[str, int] = {}
        #: Parameters that are 0 for classes without the field, since code reads them.
        self.zeros: set[str] = set()
        #: New parameters for numbers in code that only some classes run.
        self.fresh: list[str] = []
        #: The classes that do not read a parameter, whose callers may pass any number.
        self.unread: dict[str, list[int]] = {}
        #: The first condition for the fields of the same classes.
        self.conditions: dict[Row, str] = {}

    def text(self, column: Column) -> str:
        """Return the source of a column, with a new parameter if it needs one."""
        values = _present(column.values)
        is_derived_width = column.derived and is_width(column.label)
        if not is_derived_width and len({(type(v), v) for v in values}) == 1:
            return literal(values[0])
        compatible = [
            other
            for other in self.columns
            if _are_compatible(other.values, column.values)
        ]
        labels = [other.label for other in compatible]
        text = self.equal_parameter(column) or self.related_expression(column, labels)
        if column.derived and not text and not _is_optional_size(column):
            raise DifferError
        name = text or self.add_parameter(column, labels)
        if is_last(column):
            self.make_zero(name)
            if not text and name in self.zeros:
                self.fresh.append(name)
        return name

    def guard_unread(self) -> None:
        """Record for new numbers of optional code which parameter is None where no
        column reads them.
        """
        for name in self.fresh:
            read = self.readers(name)
            for other in self.constructor.parameters:
                given = {i for i, value in enumerate(other.values) if value is not None}
                if len(given) < len(other.values) and read <= given:
                    self.constructor.guards.setdefault(name, other.name)

    def readers(self, name: str) -> set[int]:
        """Return the classes of which a column reads the parameter ``name``."""
        return {
            index
            for column, text in zip(self.columns, self.constructor.texts, strict=True)
            if name in names_in(expression_of(text))
            for index, value in enumerate(column.values)
            if value is not MISSING
        }

    def make_zero(self, name: str) -> None:
        """Let a parameter that some classes lack be 0 there instead of None."""
        for index, parameter in enumerate(self.constructor.parameters):
            if parameter.name == name and parameter.kind == "int | None":
                values = tuple(value or 0 for value in parameter.values)
                self.constructor.parameters[index] = Parameter(name, "int", values)
                self.zeros.add(name)

    def equal_parameter(self, column: Column) -> str:
        """Return a parameter that equals the column's present numbers, else ""."""
        for parameter in self.constructor.parameters:
            if DEPTH in {parameter.name, column.label} != {DEPTH}:
                continue  # equal counts are often a coincidence
            unread = self.unread.get(parameter.name, [])
            if any(column.values[index] is not MISSING for index in unread):
                continue
            pairs = zip(parameter.values, column.values, strict=True)
            if all(b is MISSING or _are_equal(a, b) for a, b in pairs):
                return parameter.name
        return ""

    def related_expression(self, column: Column, labels: Sequence[str]) -> str:
        """Return an expression of parameters that equals the column, else ""."""
        label = next((word for word in labels if is_width(word)), column.label)
        present = [i for i, v in enumerate(column.values) if v is not MISSING]
        values = [column.values[i] for i in present]
        if not all(type(value) is int for value in values):
            known = self.known("int")
            return root(known, column.values) or pair(
                [*known, *self.known("tuple[int, ...]")], column.values
            )
        known = self.known("int")
        between = differences(known, column.values) if column.derived else ()
        for text, row in chain(self.terms(label), between):
            if [row[i] for i in present] == values:
                return text
        widths = [one for one in known if is_width(one[0])]
        lines = (line(*one, column.values) for one in widths if is_width(label))
        return next(filter(None, lines), "")

    def known(self, kind: str) -> list[tuple[str, Row]]:
        """Return the names and values of the parameters of a type."""
        return [
            (p.name, p.values) for p in self.constructor.parameters if p.kind == kind
        ]

    def terms(self, label: str) -> Iterator[tuple[str, Sequence[Any]]]:
        """Yield expressions of the parameters that may equal a column."""
        whole = [p for p in self.constructor.parameters if p.kind == "int"]
        for p in whole:
            if label == "padding" and "kernel" in p.name:
                yield f"{p.name} // 2", [v // 2 for v in p.values]
            if label == "size" and p.name == "windows":
                yield from (
                    (f"{k} * windows", [k * v for v in p.values]) for k in WINDOW_SIZES
                )
            is_size = is_size_name(label) and is_size_name(p.name)
            if not (is_size or (is_width(label) and is_width(p.name))):
                continue
            for k in FACTORS:
                yield f"{k} * {p.name}", [k * v for v in p.values]
                if all(v % k == 0 for v in p.values):
                    yield f"{p.name} // {k}", [v // k for v in p.values]
            if is_size:
                yield from sizes(p.name, p.values)
        if label == "head_size":
            yield from quotients([(p.name, p.values) for p in whole])

    def add_parameter(self, column: Column, labels: Sequence[str]) -> str:
        """Add a parameter for the column, named after its uses."""
        label = identifier(label_of(labels))
        if label in self.names:
            label = parameter_name(f"{column.field}_{label}")
        name = self.names.unique(label)
        values = tuple(None if v is MISSING else v for v in column.values)
        kind = kind_of([value for value in values if value is not None])
        if column.guard:
            self.guard(name, column)
            values = tuple(value or 0 for value in values)
        elif MISSING in column.values:
            self.only.setdefault(column.field, []).append(name)
        if None in values:
            kind = f"{kind} | None"
        self.constructor.parameters.append(Parameter(name, kind, values))
        return name

    def guard(self, name: str, column: Column) -> None:
        """Record the parameter that is None where the column is not read, if any."""
        texts = {
            self.constructor.texts[at]
            for at, other in enumerate(self.columns)
            if (other.field, other.label) == (column.field, column.guard)
        }
        if len(texts) == 1 and (guard := texts.pop()).isidentifier():
            self.constructor.guards[name] = guard
            self.unread[name] = _missing(column)

    def condition(self, one: Field) -> None:
        """Set the condition under which a class has the field."""
        names = self.only.get(one.name)
        if names:
            text = self.difference_condition(one.name, names) or self.has_values(names)
            text = text or self.flag(one)
        else:
            known = self.conditions.get(one.having)
            text = self.inequality(one.having) or known or self.flag(one)
        self.constructor.conditions[one.name] = text
        self.conditions.setdefault(one.having, text)

    def has_values(self, names: Sequence[str]) -> str:
        """Return the condition that parameters of a field are given.

        It reads the first; other integers are 0 in classes without the field.
        """
        first, *others = names
        kinds = {p.name: p.kind for p in self.constructor.parameters}
        for name in others if first not in self.zeros else ():
            if kinds[name] == "int | None":
                self.make_zero(name)
                self.constructor.guards[name] = first
        return " and ".join(
            f"{name} > 0" if name in self.zeros else f"{name} is not None"
            for name in names
            if name not in self.constructor.guards
        )

    def difference_condition(self, field_name: str, names: Sequence[str]) -> str:
        """Return ``a != b`` for a width that only some classes have, else "".

        The others get the width that it differs from, as in a layer that needs no
        change of width: both are widths of the optional layer.
        """
        of_field = [
            text
            for column, text in zip(self.columns, self.constructor.texts, strict=True)
            if column.field == field_name
        ]
        rows = {p.name: p for p in self.constructor.parameters}
        own = rows[names[0]]
        if len(names) > 1 or not is_width(own.name) or own.kind != "int | None":
            return ""
        for other in rows.values():
            pairs = list(zip(own.values, other.values, strict=True))
            is_other = other.kind == "int" and other.name in of_field
            if is_other and all(a != b for a, b in pairs):
                values = tuple(b if a is None else a for a, b in pairs)
                at = self.constructor.parameters.index(own)
                self.constructor.parameters[at] = Parameter(own.name, "int", values)
                return f"{own.name} != {other.name}"
        return ""

    def inequality(self, having: Row) -> str:
        """Return ``a != b`` if it equals ``having``, else "".

        Both are parameters, or one of them is a kernel's extent and the other is 1.
        """
        if len(having) >= FEW:
            text = unequal_to_one(self.known("tuple[int, ...]"), having)
            if text:
                return text
        whole = [p for p in self.constructor.parameters if p.kind == "int"]
        for index, p in enumerate(whole):
            for q in whole[index + 1 :]:
                pairs = zip(p.values, q.values, strict=True)
                if not are_one_kind(p.name, q.name):
                    continue
                if len(having) >= FEW and tuple(a != b for a, b in pairs) == having:
                    return f"{p.name} != {q.name}"
        return ""

    def flag(self, one: Field) -> str:
        for parameter in self.constructor.parameters:
            if parameter.kind == "bool" and parameter.values == one.having:
                return parameter.name
        name = self.names.unique(parameter_name(one.name))
        self.constructor.parameters.append(Parameter(name, "bool", one.having))
        return name


def _is_optional_size(column: Column) -> bool:
    """Return whether a column is an extent that only some classes reshape to."""
    values = _present(column.values)
    is_whole = all(type(value) is int for value in values)
    return column.label == "size" and MISSING in column.values and is_whole


def _are_compatible(a: Row, b: Row) -> bool:
    """Return whether two columns are equal wherever both have a number."""
    return all(
        x is MISSING or y is MISSING or _are_equal(x, y)
        for x, y in zip(a, b, strict=True)
    )


def _missing(column: Column) -> list[int]:
    """Return the classes that lack a column."""
    return [i for i, value in enumerate(column.values) if value is MISSING]


def _present(values: Row) -> list[Any]:
    return [value for value in values if value is not MISSING]


def _are_equal(a: Any, b: Any) -> bool:
    return type(a) is type(b) and bool(a == b)

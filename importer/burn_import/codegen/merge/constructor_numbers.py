"""Numbers in a body that become constructor arguments: ``self.heads``."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from burn_import.codegen.merge.constructor_parameters import constructor
from burn_import.codegen.merge.constructors import Constructor, Row
from burn_import.codegen.merge.expression_slots import (
    MISSING,
    DifferError,
    Place,
    can_infer,
    must_follow,
)
from burn_import.codegen.merge.init_fields import Column, Field
from burn_import.codegen.merge.optional_blocks import OptionalBlock
from burn_import.codegen.merge.unified_body import Union
from burn_import.codegen.trace.function import FunctionTrace
from burn_import.tracing.constructor_numbers import (
    ParameterExtent,
    ParameterFloat,
    ParameterInt,
)
from burn_import.tracing.identifiers import Namespace
from burn_import.tracing.statements import symbols_in
from burn_import.tracing.trace import Apply
from burn_ir.dim import Dim, floor_div, symbol

#: Labels of the last two of four dimensions, before a transposition.
HEADS = {2: "heads", 3: "head_size"}
#: The least rank of query, key and value in one: [batch, length, 3, heads, head_size].
PACKED = 5
#: Labels of the numbers of windows in [batch, rows, size, columns, size, channels].
WINDOWS = {1: "windows", 3: "windows"}


class Numerals:
    """Differing numbers of bodies, as columns, with their source."""

    def __init__(
        self,
        union: Union,
        trace: FunctionTrace,
        fields: Sequence[Column],
        infers_any: bool = True,
    ) -> None:
        self.union = union
        #: Whether extents behind the first one are inferred as well.
        self.infers_any = infers_any
        self.inferred = set(union.inferred)
        self.trace = trace
        self.rows: dict[Row, list[Place]] = {}
        for operand_path, row in union.numbers.items():
            self.rows.setdefault(row, []).append(operand_path)
        #: Numbers instead of -1, where another extent is inferred.
        self.extents: dict[Place, int] = {}
        self.infer({column.values for column in fields})
        for operand_path, quotient in union.quotients.items():
            self.rows.setdefault(quotient.divisors, []).append(operand_path)
        self.columns = [
            Column(
                self.rounded(row, places),
                self.label(places),
                "",
                derived=self.must_follow(row, places),
            )
            for row, places in self.rows.items()
        ]
        self.flags: dict[int, str] = {}
        #: The numbers of optional operators of the same bodies, by name.
        self.operators: dict[tuple[str, Row], list[int]] = {}
        self.assign_flags()
        self.columns += [Column(row, name, "") for name, row in self.operators]
        self.values: dict[Place, Dim | ParameterFloat] = {**self.extents}
        self.values.update(dict.fromkeys(self.inferred, -1))
        self.attributes: dict[str, str] = {}

    def assign_flags(self) -> None:
        """Assign known conditions to optional operators; collect the others."""
        conditions = _conditions(self.union)
        for number, operator in self.union.operators.items():
            if isinstance(operator, OptionalBlock) and operator.fields:
                self.flags[number] = operator.condition
                continue
            if operator.having in conditions:
                self.flags[number] = conditions[operator.having]
                continue
            key = (operator.name, operator.having)
            self.operators.setdefault(key, []).append(number)

    def infer(self, parameter_rows: set[Row]) -> None:
        """Replace dimensions by -1 where ``reshape`` can infer them.

        Raises:
            DifferError: bodies infer different extents of one shape.
        """
        inferred = self.inferred
        for row in sorted(
            self.rows, key=lambda row: (-1 not in row, row in parameter_rows)
        ):
            places = self.rows[row]
            calls = {operand_path[0] for operand_path in places}
            reserved = {operand_path[0] for operand_path in inferred}
            shapes = all(
                can_infer(self.trace, operand_path)
                or self.implied(operand_path)
                or (-1 in row and self.is_inferred(operand_path))
                for operand_path in places
            )
            if shapes and len(calls) == len(places) and not calls & reserved:
                inferred.update(places)
                for operand_path in places:
                    self.extents.update(self.implied(operand_path))
                del self.rows[row]
        # A shape has one extent that is inferred.
        calls = {operand_path[0] for operand_path in inferred}
        for row, places in self.rows.items():
            if -1 in row and not calls.isdisjoint(place[0] for place in places):
                raise DifferError

    def is_inferred(self, operand_path: Place) -> bool:
        """Return whether bodies that infer an extent do so at one place of a shape."""
        others = [
            path
            for row, places in self.rows.items()
            for path in places
            if -1 in row and path[0] == operand_path[0]
        ]
        is_shape = self.primitive(operand_path) == "reshape" and len(operand_path) == 3
        return is_shape and others == [operand_path]

    def must_follow(self, row: Row, places: Sequence[Place]) -> bool:
        """Return whether a number must follow from others of the constructor.

        It need not if one of its places may have a number of its own.
        """
        follows = all(must_follow(self.trace, operand_path) for operand_path in places)
        return MISSING in row or follows

    def rounded(self, row: Row, places: Sequence[Place]) -> Row:
        """Return numbers as float32 if only operations in this dtype read them."""
        is_single = self.union.singles.issuperset(places)
        return tuple(
            np.float32(value) if is_single and isinstance(value, float) else value
            for value in row
        )

    def implied(self, operand_path: Place) -> dict[Place, int]:
        """Return the extent that is known if this one is inferred instead."""
        is_extent = len(operand_path) == 3 and operand_path[1] == 1
        is_chosen = is_extent and (self.infers_any or operand_path[2] == 0)
        return {
            path: extent
            for path, extent in self.union.implied.items()
            if is_chosen and path[0] == operand_path[0]
        }

    def primitive(self, operand_path: Place) -> str:
        """Return the name of the primitive with an operand at ``operand_path``."""
        statement = self.trace.body.statements[int(operand_path[0])]
        return statement.primitive.name if isinstance(statement, Apply) else ""

    def label(self, places: Sequence[Place]) -> str:
        """Return a label for a number, from the operands that it is."""
        labels = [self.label_at(operand_path) for operand_path in places]
        return next((label for label in labels if label != "size"), "size")

    def label_at(self, operand_path: Place) -> str:
        """Return a label for a number, from one operand."""
        if isinstance(operand_path[1], str):
            return "size" if operand_path[1] == "sizes" else operand_path[1]
        if not isinstance(self.union.numbers.get(operand_path, (0,))[0], int):
            return "scale"
        statement = self.trace.body.statements[int(operand_path[0])]
        if must_follow(self.trace, operand_path):
            return "width"
        if self.primitive(operand_path) == "pad":
            return "padding"
        if self.primitive(operand_path) != "reshape" or len(operand_path) != 3:
            return "size"
        assert isinstance(statement, Apply)
        axes = _labels(statement.args[1], self.movements_of(statement))
        return axes.get(int(operand_path[2]), "size")

    def movements_of(self, statement: Apply) -> set[str]:
        """Return the names of primitives that exchange axes of a result."""
        return {
            other.primitive.name
            for other in self.trace.body.statements
            if isinstance(other, Apply)
            and other.primitive.name in ("transpose", "permute")
            and statement.targets[0] in symbols_in(other.args)
        }

    def settle(self, texts: Sequence[str], reserved: Sequence[str]) -> None:
        """Assign attributes to the numbers, with the sources ``texts``."""
        names = Namespace(reserved)
        count = len(self.rows)
        for text in filter(str.isidentifier, texts):
            if text not in self.attributes:
                self.attributes[text] = names.unique(text)
        for (row, places), column, text in zip(
            self.rows.items(), self.columns, texts[:count], strict=False
        ):
            if text not in self.attributes:
                self.attributes[text] = names.unique(column.label)
            shown = f"self.{self.attributes[text]}"
            for operand_path in places:
                first = row[0]
                if operand_path in self.union.quotients:
                    dividend = self.union.quotients[operand_path].dividend
                    divisor = symbol(ParameterExtent(shown))
                    self.values[operand_path] = floor_div(dividend, divisor)
                    continue
                kind = ParameterInt if isinstance(first, int) else ParameterFloat
                self.values[operand_path] = kind(first, shown)

        for numbers, text in zip(self.operators.values(), texts[count:], strict=True):
            flag = f"self.{self.attributes[text]}"
            self.flags.update(dict.fromkeys(numbers, flag))

    def fields(self) -> list[str]:
        """Return the assignments of ``__init__``."""
        return [f"self.{name} = {text}" for text, name in self.attributes.items()]


def numbered(
    union: Union,
    trace: FunctionTrace,
    columns: Sequence[Column],
    fields: Sequence[Field],
) -> tuple[Constructor, Numerals]:
    """Return the constructor, and the numbers of the body in terms of its parameters.

    Reshapes infer any extent, unless another number follows from it.

    Raises:
        DifferError: the constructor cannot express some numbers.
    """
    for infers_any in (True, False):
        try:
            numerals = Numerals(union, trace, columns, infers_any)
            init = constructor([*columns, *numerals.columns], fields)
        except DifferError:
            continue
        numerals.settle(init.texts[len(columns) :], [one.name for one in fields])
        return init, numerals
    raise DifferError


def _conditions(union: Union) -> dict[tuple[bool, ...], str]:
    """Return the conditions of blocks that read an attribute, by who has it."""
    blocks = [o for o in union.operators.values() if isinstance(o, OptionalBlock)]
    return {block.having: block.condition for block in blocks if block.fields}


def _labels(shape: Any, movements: set[str]) -> dict[int, str]:
    """Return labels of the axes of a shape, from the primitives that permute them."""
    if not isinstance(shape, tuple | list) or not movements:
        return {}
    if len(shape) == 4 and "transpose" in movements:
        return HEADS
    rank = len(shape)
    if rank >= PACKED and "permute" in movements and shape[-3] == 3:
        return {rank - 2: "heads", rank - 1: "head_size"}
    is_windows = len(shape) == 6 and shape[2] == shape[4] and shape[1] == shape[3]
    return WINDOWS if is_windows else {}

"""Numbers in a body that a constructor is given: ``self.heads``."""

from __future__ import annotations

from collections.abc import Sequence

from burn_import.codegen.merge.anti_unify import Union
from burn_import.codegen.merge.constructor_parameters import Row
from burn_import.codegen.merge.expression_slots import Place, can_infer
from burn_import.codegen.merge.init_fields import Column
from burn_import.codegen.trace.function import FunctionTrace
from burn_import.tracing.constructor_numbers import GivenFloat, GivenInt
from burn_import.tracing.identifiers import Namespace
from burn_import.tracing.statements import symbols_in
from burn_import.tracing.trace import Apply

#: What the last two of four extents are, before two axes change places.
HEADS = {2: "heads", 3: "head_size"}


class Numerals:
    """The numbers in which bodies differ, as columns, and what is written for them."""

    def __init__(
        self, union: Union, trace: FunctionTrace, fields: Sequence[Column]
    ) -> None:
        self.union = union
        self.trace = trace
        self.rows: dict[Row, list[Place]] = {}
        for place, row in union.numbers.items():
            self.rows.setdefault(row, []).append(place)
        self.infer({column.values for column in fields})
        self.columns = [
            Column(row, self.label(places[0]), "") for row, places in self.rows.items()
        ]
        self.values: dict[Place, int | GivenFloat] = dict.fromkeys(union.inferred, -1)
        self.attributes: dict[str, str] = {}

    def infer(self, given: set[Row]) -> None:
        """Leave to ``reshape`` what follows from the other extents."""
        inferred = self.union.inferred
        for row in sorted(self.rows, key=lambda row: row in given):
            places = self.rows[row]
            calls = {place[0] for place in places}
            taken = {place[0] for place in inferred}
            shapes = all(can_infer(self.trace, place) for place in places)
            if shapes and len(calls) == len(places) and not calls & taken:
                inferred.update(places)
                del self.rows[row]

    def primitive(self, place: Place) -> str:
        """The primitive that has an operand at ``place``."""
        statement = self.trace.body.statements[int(place[0])]
        return statement.primitive.name if isinstance(statement, Apply) else ""

    def label(self, place: Place) -> str:
        """What a number is called by where it stands."""
        if isinstance(place[1], str):
            return place[1]
        statement = self.trace.body.statements[int(place[0])]
        if self.primitive(place) == "reshape" and isinstance(statement, Apply):
            shape = statement.args[1]
            readers = [
                other
                for other in self.trace.body.statements
                if isinstance(other, Apply)
                and statement.targets[0] in symbols_in(other.args)
            ]
            turned = any(other.primitive.name == "transpose" for other in readers)
            whole = isinstance(shape, tuple | list) and len(shape) == 4
            if whole and turned and len(place) == 3:
                return HEADS.get(int(place[2]), "size")
        return "size"

    def settle(self, texts: Sequence[str], taken: Sequence[str]) -> None:
        """Write the numbers as attributes that are made of ``texts``."""
        names = Namespace(taken)
        for (row, places), column, text in zip(
            self.rows.items(), self.columns, texts, strict=True
        ):
            if text not in self.attributes:
                word = text if text.isidentifier() else column.label
                self.attributes[text] = names.unique(word)
            shown = f"self.{self.attributes[text]}"
            for place in places:
                first = row[0]
                kind = GivenInt if isinstance(first, int) else GivenFloat
                self.values[place] = kind(first, shown)

    def fields(self) -> list[str]:
        """The assignments of ``__init__``."""
        return [f"self.{name} = {text}" for text, name in self.attributes.items()]

"""Operators that run graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from burn.dtypes import bool_
from burn_ir.errors import InvalidOperand
from burn_ir.graph import Graph
from burn_ir.op import Branch, Op, Type, Value, body
from burn_ir.types import join


@dataclass(frozen=True)
class If(Op, onnx="If", versions=(1, 11, 13, 16, 19, 21, 23, 24, 25)):
    """The operands behind the condition are what the branches take from outside."""

    else_branch: Graph = body()
    then_branch: Graph = body()

    def infer(self, condition: Type, *captured: Type) -> tuple[Type, ...]:
        if condition.dtype != bool_:
            raise InvalidOperand(f"expected a bool condition, got {condition.name}")
        sides = [_results(side) for side in (self.then_branch, self.else_branch)]
        if len(sides[0]) != len(sides[1]):
            raise InvalidOperand(
                "expected branches with equally many outputs, "
                f"got {len(sides[0])} and {len(sides[1])}"
            )
        return tuple(join(a, b) for a, b in zip(*sides, strict=True))

    def lower(self, condition: Value, *captured: Value) -> Branch:
        return Branch(condition, self.then_branch, self.else_branch, captured)

    def body_types(self, body: str, operands: Sequence[Type | None]) -> Sequence[Type]:
        return [t for t in operands[1:] if t is not None]


def _results(side: Graph) -> list[Type]:
    return [t for t in map(side.type, side.outputs) if t is not None]

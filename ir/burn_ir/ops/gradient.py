"""Derivatives as operators of a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from burn.dtypes import is_float
from burn_ir.errors import InvalidOperand
from burn_ir.graph import Graph
from burn_ir.op import Derivative, Flow, Op, Type, Value, body, operator


@operator
class Gradient(Op, onnx="Gradient", versions=(1,), domain="ai.onnx.preview.training"):
    """The derivatives of ``y`` by each of ``xs``.

    ``function`` is added by the importer: a subgraph of the nodes that lead from
    the values in ``xs`` and ``zs`` to ``y``.
    """

    xs: tuple[str, ...]
    y: str
    function: Graph = body()
    zs: tuple[str, ...] | None = None
    operands: int = 1

    @classmethod
    def flow(
        cls,
        attrs: Mapping[str, Any],
        operands: Sequence[Type | None],
        declared: Sequence[Type],
    ) -> Flow:
        if len(operands) != len(declared[: len(operands)]) or None in operands:
            raise InvalidOperand("expected an input for every name in xs and zs")
        return Flow(tuple(t.forget() for t in operands if t is not None))

    def infer(self, *operands: Type) -> tuple[Type, ...]:
        result = self.function.type(self.function.outputs[0])
        for operand in (*operands[: len(self.xs)], result):
            if operand is not None and not is_float(operand.dtype):
                raise InvalidOperand(f"expected floating values, got {operand.name}")
        return tuple(t.forget() for t in operands[: len(self.xs)])

    def lower(self, *operands: Value) -> Derivative:
        own = operands[: self.operands]
        return Derivative(
            self.function, own, len(self.xs), operands[self.operands :], self.y
        )

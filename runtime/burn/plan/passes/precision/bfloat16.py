"""Lower matrix products and the operations between them to bfloat16.

Casts are inserted at the borders.
"""

from collections import Counter
from typing import Any

from burn import dtypes
from burn.ops import activation
from burn.ops.attention import masked_softmax
from burn.ops.casting import cast
from burn.ops.conv import conv, conv_transpose
from burn.ops.fused import conv_then, linear_then, matmul_then
from burn.ops.indexing import getitem
from burn.ops.layer_norm import layer_norm
from burn.ops.matmul import linear, matmul
from burn.ops.pool import avg_pool, max_pool
from burn.ops.shape import (
    concat,
    flatten,
    permute,
    reshape,
    split,
    squeeze,
    transpose,
    unsqueeze,
)
from burn.ops.softmax import softmax
from burn.plan.passes.graph import FLOAT32, Graph, Steps
from burn.plan.plan_ir import Read, Slot, Step
from burn.structs import replace

BFLOAT16 = dtypes.bfloat16
#: Primitives that always run in bfloat16, on their first two operands. The addend of
#: a product is float32 unless it is available in bfloat16 already.
_PRODUCTS = frozenset(
    {conv, conv_then, conv_transpose, linear, linear_then, matmul, matmul_then}
)
#: Primitives that run in bfloat16 only if their first operand already is.
_BETWEEN = frozenset(
    {activation.gelu, activation.sigmoid, activation.silu, activation.tanh}
    | {avg_pool, max_pool, softmax, masked_softmax, layer_norm}
    | {concat, flatten, getitem, permute, reshape, split, squeeze, transpose}
    | {unsqueeze}
)


def lower_to_bfloat16(steps: Steps, graph: Graph) -> Steps:
    """Return the steps with bfloat16 products and float32 reductions."""
    return _Lowering(graph).of(steps)


class _Lowering:
    """The steps of one segment, and the values that are available in bfloat16."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._narrow: dict[int, Slot] = {}
        self._found: Steps = []

    def of(self, steps: Steps) -> Steps:
        """Return ``steps`` with bfloat16 steps and the casts between them."""
        for step in steps:
            narrow = self._lower(step) if isinstance(step, Step) else None
            if narrow is None or isinstance(step, Read):
                self._found.append(step)
            else:
                self._found.append(narrow)
                self._widen(step, narrow)
        return self._without_idle_casts(steps)

    def _lower(self, step: Step) -> Step | None:
        """Return ``step`` in bfloat16, or None if it stays in float32."""
        if set(step.dtypes) != {FLOAT32} or self._graph.is_folded(step):
            return None
        if step.primitive in _PRODUCTS:
            first, second, *rest = step.args
            if any(self._graph.known(value)[1] != FLOAT32 for value in (first, second)):
                return None
            added = (self._available(value) for value in rest)
            args = (self._cast(first), self._cast(second), *added)
        elif step.primitive in _BETWEEN:
            first, *rest = step.args
            narrow = self._available(first)
            if narrow is first:
                return None
            args = (narrow, *rest)
        else:
            return None
        outputs = tuple(self._graph.fresh() for _ in step.outputs)
        narrow_dtypes = tuple(BFLOAT16 for _ in outputs)
        return replace(step, args=args, outputs=outputs, dtypes=narrow_dtypes)

    def _available(self, value: Any) -> Any:
        """Return ``value`` in bfloat16 if all of it is available, else unchanged."""
        if type(value) is list or type(value) is tuple:
            parts = [self._available(item) for item in value]
            changed = all(n is not o for n, o in zip(parts, value, strict=True))
            return type(value)(parts) if changed and parts else value
        return self._narrow.get(value.place, value) if type(value) is Slot else value

    def _cast(self, value: Any) -> Any:
        """Return ``value`` cast to bfloat16."""
        operand = self._available(value)
        if operand is not value:
            return operand
        shape, _ = self._graph.known(value)
        assert shape is not None
        step = self._graph.new_step(cast, (value,), shape)
        step = replace(step, static={"dtype": BFLOAT16}, dtypes=(BFLOAT16,))
        self._found.append(step)
        slot = Slot(step.outputs[0])
        if type(value) is Slot:
            self._narrow[value.place] = slot
        return slot

    def _widen(self, step: Step, narrow: Step) -> None:
        """Add a cast of the results of ``step`` back to float32."""
        for index, of, shape in zip(
            step.outputs, narrow.outputs, step.shapes, strict=True
        ):
            self._narrow[index] = Slot(of)
            static = {"dtype": FLOAT32}
            self._found.append(
                Step(cast, (Slot(of),), static, (index,), (shape,), (FLOAT32,))
            )

    def _without_idle_casts(self, steps: Steps) -> Steps:
        """Return the new steps without casts to float32 that have no consumer."""
        before, after = _uses(steps), _uses(self._found)
        uses = self._graph.uses

        def is_used(step: Step | Read) -> bool:
            if isinstance(step, Read) or step.primitive is not cast:
                return True
            return any(
                index not in uses or uses[index] + after[index] > before[index]
                for index in step.outputs
            )

        return [step for step in self._found if is_used(step)]


def _uses(steps: Steps) -> Counter[int]:
    """Return how often ``steps`` read each slot."""
    counts: Counter[int] = Counter()
    for step in steps:
        if isinstance(step, Step):
            counts.update(step.operand_places)
    return counts

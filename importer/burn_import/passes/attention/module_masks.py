"""Masks of ``nn.MultiheadAttention``, from what an attention adds to its scores."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np

from burn.dtypes import bool_, is_float
from burn_import.passes.attention.arrangements import Term
from burn_import.passes.attention.attention_window import Window, Windows, triangle
from burn_import.passes.attention.mask_conditions import Conditions
from burn_import.rewriting.arrays import integers
from burn_import.rewriting.dataflow import Dataflow
from burn_ir.graph import Node
from burn_ir.op import Op
from burn_ir.ops.logic import Not
from burn_ir.ops.shape import Squeeze


@dataclass
class ModuleMasks:
    """The arguments ``key_padding_mask`` and ``attn_mask`` for scores.

    ``scores`` is their shape ``[batch, heads, rows, columns]``; ``last`` is a node in
    the scope of the module.
    """

    flow: Dataflow
    scores: tuple[int, int, int, int]
    last: Node
    padding: str | None = None
    mask: str | None = None
    is_causal: bool = False
    #: Nodes that compute the arguments.
    nodes: list[Node] = field(default_factory=list)

    def bind(self, terms: Sequence[Term]) -> bool:
        """Return whether the terms are at most one argument of each kind."""
        return all(map(self._bind, terms))

    def _bind(self, term: Term) -> bool:
        batch, _, rows, columns = self.scores
        if self._is(term, (batch, 1, 1, columns)) and self.padding is None:
            self.padding = self._argument(term, (batch, columns))
            return self.padding is not None
        if self._is(term, (1, 1, rows, columns)) and self.mask is None:
            self.is_causal = self._is_causal(term.name)
            if not self.is_causal:
                self.mask = self._argument(term, (rows, columns))
            return self.is_causal or self.mask is not None
        return False

    def _is_causal(self, name: str) -> bool:
        """Return whether a mask hides the keys behind each row, and no others."""
        if triangle(self.flow, name, False) == (Window(right=0), -np.inf):
            return True
        stored, condition = self.flow.stored(name), self._condition(name)
        seen, shown = name if condition is None else condition, condition is None
        windows = Windows(
            Conditions(self.flow), self.flow.extents(seen), lambda one, other: one
        )
        if stored is None or not is_float(stored.dtype):
            return windows.of(seen, shown) == Window(right=0)
        is_shown = stored == 0
        is_mask = bool((is_shown | np.isneginf(stored)).all())
        return is_mask and windows.of(is_shown) == Window(right=0)

    def _is(self, term: Term, shape: tuple[int, ...]) -> bool:
        """Return whether a term is a value of this shape in its order, broadcast."""
        if prod(shape) != prod(term.shape) or term.factor != 1:
            return False
        order = np.broadcast_to(np.arange(prod(shape)).reshape(shape), self.scores)
        indices = term.indices
        if indices.ndim == 3 and prod(indices.shape) == prod(self.scores):
            indices = indices.reshape(self.scores)
        elif indices.ndim == 3 and len(indices) != 1:
            return False
        return np.array_equal(np.broadcast_to(indices, self.scores), order)

    def _argument(self, term: Term, shape: tuple[int, int]) -> str | None:
        """Return the value of a term with only the axes in ``shape``."""
        name, axes = term.name, []
        kept = list(shape)
        for axis, extent in enumerate(term.shape):
            if kept and extent == kept[0]:
                kept.pop(0)
            else:
                axes.append(axis)
        if kept or any(term.shape[axis] != 1 for axis in axes):
            return None
        name = self._hiding(name)
        if not axes:
            return name
        return self._add(Squeeze(), (name, integers(self.flow.graph, axes)), "rows")

    def _hiding(self, name: str) -> str:
        """Return the bool that hides where ``name`` is minus infinity or false.

        Other values are added to scores.
        """
        t = self.flow.graph.type(name)
        if t is not None and t.dtype == bool_:
            node = self.flow.made_by(name, "Not")
            inner = None if node is None else node.inputs[0]
            return inner or self._add(Not(), (name,), "hidden")
        return self._condition(name) or name

    def _condition(self, name: str) -> str | None:
        """Return the condition by which a value is minus infinity, and else zero."""
        node = self.flow.made_by(name, "Where")
        if node is None or self.flow.extents(node.inputs[0]) != self.flow.extents(name):
            return None
        condition, low, zero = node.inputs
        fill = self.flow.stored(low)
        is_low = fill is not None and fill.size == 1 and np.isneginf(fill).all()
        return condition if is_low and self.flow.magnitude(zero) == 0 else None

    def _add(self, op: Op, inputs: tuple[str, ...], suffix: str) -> str:
        output = self.flow.fresh(f"{inputs[0]}.{suffix}")
        node = replace(self.last, op=op, inputs=inputs, outputs=(output,))
        self.nodes.append(node)
        return output

"""The masks that are put on scores, and when they can hide everything."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, TypeAlias

import numpy as np

from burn.dtypes import float16
from burn_import.passes.arrays import equal
from burn_import.passes.conditions import Conditions, broadcasts
from burn_import.passes.dataflow import Dataflow, greatest
from burn_ir.dim import Dim
from burn_ir.graph import Node
from burn_ir.op import Op
from burn_ir.ops.elementwise import Add
from burn_ir.ops.logic import Not, Where
from burn_ir.types import Array

#: A number below which nothing is left of a score that is added to it.
HIDDEN = -1e30
#: What a score is taken to be smaller than.
ORDINARY = 1e20


#: The path of a module and the classes along it.
Scope: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]


class Mask(NamedTuple):
    """What is added to scores; or, with ``fill``, the condition of a choice.

    ``fill`` names the number that is taken in place of scores where the condition is
    not ``shown``.
    """

    name: str
    fill: str | None = None
    shown: bool = True


class Masks:
    """The masks on the scores of one attention, the last one first."""

    def __init__(self, flow: Dataflow, conditions: Conditions, last: Node) -> None:
        self.flow, self.conditions, self.last = flow, conditions, last
        self.found: list[Mask] = []
        #: The shape of the scores.
        self.scores: tuple[Dim, ...] = ()
        #: Nodes that make one mask of several.
        self.nodes: list[Node] = []

    def chosen(self, node: Node) -> str | None:
        """The scores between which and a stored number a ``Where`` chooses."""
        condition, *sides = node.inputs
        for shown, (scores, fill) in ((True, sides), (False, sides[::-1])):
            array = self.flow.stored(fill)
            if array is None or array.size != 1 or self.flow.stored(scores) is not None:
                continue
            if (
                condition is None
                or array.ndim > 0
                and array.ndim > self.rank(condition)
            ):
                continue
            self.found.append(Mask(condition, fill, shown))
            return scores
        return None

    def rank(self, name: str) -> int:
        t = self.flow.graph.type(name)
        return -1 if t is None or t.shape is None else len(t.shape)

    def fit(self, scores: tuple[Dim, ...]) -> bool:
        """Whether no mask makes scores larger, and all keys are reached together."""
        self.scores = scores
        reached = not self.found
        for mask in self.found:
            t = self.flow.graph.type(mask.name)
            if t is None or t.shape is None or not broadcasts(t.shape, scores):
                return False
            reached |= t.shape[-1:] == scores[-1:]
        return reached

    def are_exact(self, guarded: bool) -> bool:
        """Whether attention with these masks is what the scores' softmax would be.

        A row that is hidden by finite numbers is not zeros, and one that is hidden by
        minus infinity is zeros if that was ``guarded``, and otherwise not a number.
        """
        fills = [self.filled(mask) for mask in self.found if mask.fill is not None]
        added = [m.name for m in self.found if m.fill is None]
        total = sum(map(self.flow.magnitude, added))
        finite = [fill for fill in fills if np.isfinite(fill)]
        if finite and (max(finite) > HIDDEN or total > ORDINARY):
            return False
        if guarded or not self.found:
            return True
        t = self.flow.graph.type(added[0] if added else self.found[0].fill)
        if t is not None and total - sum(fills) <= greatest(t):
            return True
        return self.shows_a_key_to_all()

    def filled(self, mask: Mask) -> float:
        """What is put in place of scores; 0 where it could not be added to them."""
        array = self.flow.stored(mask.fill)
        if array is None or array.dtype == float16 and np.isfinite(array).all():
            return 0.0
        return float(array.reshape(()))

    def shows_a_key_to_all(self) -> bool:
        """Whether the one mask is stored and hides no row wholly."""
        if len(self.found) > 1:
            return False
        (mask,) = self.found
        array = self.flow.stored(mask.name)
        if array is None or not array.ndim:
            return False
        if mask.fill is None:
            seen = np.isfinite(array)
        else:
            seen = array if mask.shown else ~array
        return bool(seen.any(axis=-1).all())

    def combined(self) -> str | None:
        """The name of the one mask, which :attr:`nodes` make; None if there is none."""
        if len(self.found) == 1 and np.isneginf(self.filled(self.found[0])):
            name = self.conditions.needed(self.found[0].name, self.scores)
            if self.found[0].shown:
                return name
            return self.made(Not(), (name,), f"{name}.seen")
        if not self.found:
            return None
        result, *others = (self.term(mask) for mask in reversed(self.found))
        for other in others:
            result = self.made(Add(), (result, other), f"{result}.{other}")
        return result

    def term(self, mask: Mask) -> str | None:
        """``mask`` as what is added, None if that is zero."""
        if mask.fill is None:
            return self.added(mask.name)
        constants = self.flow.graph.constants
        number = np.zeros((), constants[mask.fill].dtype)
        zero = f"{mask.fill}.zero"
        if zero in self.flow.graph.types or not same(constants.get(zero), number):
            zero = constants.add(self.flow.fresh(zero), number)
            constants.literals.add(zero)
        sides = (zero, mask.fill) if mask.shown else (mask.fill, zero)
        return self.made(Where(), (mask.name, *sides), f"{mask.name}.mask")

    def added(self, name: str) -> str | None:
        """What is added, without what always holds of the condition it is made of."""
        node = self.flow.made_by(name, "Where")
        condition, *sides = (None, None) if node is None else node.inputs
        if node is None or condition is None:
            return name
        only = len(self.found) == 1 and self.flow.scalar(sides[0]) == 0
        if only and self.conditions.always(condition):
            return None
        needed = self.conditions.needed(condition, self.scores)
        types = [self.flow.graph.type(side) for side in sides]
        shapes = [None if t is None else t.shape for t in types]
        fit = all(s is not None and broadcasts(s, self.scores) for s in shapes)
        if needed == condition or not fit:
            return name
        output = self.flow.fresh(f"{name}.needed")
        self.nodes.append(replace(node, inputs=(needed, *sides), outputs=(output,)))
        return output

    def made(self, op: Op, inputs: tuple[str | None, ...], name: str) -> str:
        """The result of a new node, in the innermost module around attention that one
        of its operands is from: so layers that are given one mask make it once.
        """
        name = self.flow.fresh(name)
        own = {node.output: node for node in self.nodes}
        scope: Scope = ((), ())
        for operand in inputs:
            node = own.get(operand or "") or self.flow.producers.get(operand or "")
            length = 0 if node is None else len(node.scope)
            if node is None or node.scope != self.last.scope[:length]:
                continue
            scope = max(scope, (node.scope, node.classes), key=lambda s: len(s[0]))
        self.nodes.append(Node(op, inputs, (name,), scope=scope[0], classes=scope[1]))
        return name


def same(array: Array | None, other: Array) -> bool:
    return array is not None and equal(array, other)

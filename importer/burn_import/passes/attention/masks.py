"""The masks that are put on scores, and when they can hide everything."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, TypeAlias

import numpy as np

from burn.dtypes import float16, is_float
from burn_import.passes.attention.attention_window import (
    EVERYWHERE,
    Reach,
    Reaches,
    extents,
    triangle,
)
from burn_import.passes.attention.mask_conditions import Conditions, broadcasts
from burn_import.rewriting.arrays import number
from burn_import.rewriting.dataflow import greatest
from burn_ir.dim import Dim
from burn_ir.graph import Node
from burn_ir.op import Op
from burn_ir.ops.elementwise import Add
from burn_ir.ops.logic import And, Not, Where
from burn_ir.types import Array

#: A number below which nothing is left of a score that is added to it.
HIDDEN = -1e30
#: What a score is taken to be smaller than.
ORDINARY = 1e20


#: The path of a module and the classes along it.
Scope: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]


#: An operator without attributes, and its operands.
Operation: TypeAlias = tuple[type[Op], tuple[str | None, ...]]


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

    def __init__(
        self, conditions: Conditions, last: Node, known: dict[Operation, str]
    ) -> None:
        self.flow, self.conditions, self.last = conditions.flow, conditions, last
        #: What masks of attention before are, by how they were made.
        self.known = known
        self.found: list[Mask] = []
        #: The shape of the scores.
        self.scores: tuple[Dim, ...] = ()
        #: Whether a row that is hidden wholly is zeros.
        self.guarded = False
        #: How far queries see, whatever the masks say.
        self.reach = EVERYWHERE
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

    def reaches(self, mask: Mask) -> bool:
        """Whether a mask tells all keys apart."""
        return extents(self.flow, mask.name)[-1:] == self.scores[-1:]

    def rank(self, name: str) -> int:
        t = self.flow.graph.type(name)
        return -1 if t is None or t.shape is None else len(t.shape)

    def fit(self, scores: tuple[Dim, ...]) -> bool:
        """Whether no mask makes scores larger, and all keys are reached together."""
        self.scores = scores
        reached = not self.found
        for mask in self.found:
            t = self.flow.graph.type(mask.name)
            if t is None or t.shape is None:
                return False
            shape = extents(self.flow, mask.name)
            if not broadcasts(shape, scores):
                return False
            reached |= shape[-1:] == scores[-1:]
        return reached

    def are_exact(self, guarded: bool) -> bool:
        """Whether attention with these masks is what the scores' softmax would be.

        A row that is hidden by finite numbers is not zeros, and one that is hidden by
        minus infinity is zeros if that was ``guarded``, and otherwise not a number.
        Gradients of scores that finite numbers replace are zero, those of scores that
        they are added to are not: in a row of which all is hidden that is a difference.
        """
        self.guarded = guarded
        self.drop_zeros()
        self.take_reach()
        fills = [self.filled(mask) for mask in self.found if mask.fill is not None]
        added = [m.name for m in self.found if m.fill is None]
        total = sum(map(self.flow.magnitude, added))
        finite = [fill for fill in fills if np.isfinite(fill)]
        if finite and (max(finite) > HIDDEN or total > ORDINARY):
            return False
        replaced = [mask for mask in self.found if mask.fill is not None]
        if finite and not (len(replaced) == 1 and self.shows_a_key(replaced[0])):
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
        if array is None or array.size != 1 or not is_float(array.dtype):
            return 0.0
        if array.dtype == float16 and np.isfinite(array).all():
            return 0.0
        return float(array.reshape(()))

    def shows_a_key_to_all(self) -> bool:
        """Whether the one mask is stored and hides no row wholly."""
        return len(self.found) == 1 and self.shows_a_key(self.found[0])

    def shows_a_key(self, mask: Mask) -> bool:
        """Whether a mask is stored, and hides no row wholly."""
        array = self.flow.stored(mask.name)
        if array is None or not array.ndim:
            return False
        if mask.fill is None:
            seen = np.isfinite(array)
        else:
            seen = array if mask.shown else ~array
        return bool(seen.any(axis=-1).all())

    def combined(self) -> str | None:
        """The name of the one mask, which :attr:`nodes` make; None if there is none.

        What masks say of :attr:`reach` is not in it.
        """
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

    def drop_zeros(self) -> None:
        """Drop what adds nothing, unless attention needs it to reach all keys."""
        kept = [
            mask
            for mask in self.found
            if mask.fill is not None or self.flow.magnitude(mask.name) != 0
        ]
        if not kept or any(self.reaches(mask) for mask in kept):
            self.found = kept

    def take_reach(self) -> None:
        """Take from the masks what they say of how far queries see."""
        for mask in list(self.found):
            others = [other for other in self.found if other is not mask]
            if all(self.reaches(other) for other in others):
                self.take_reach_of(mask, others)

    def take_reach_of(self, mask: Mask, others: list[Mask]) -> None:
        hiding = self.hiding(mask)
        if hiding is None:
            return
        seen, shown, low = hiding
        reaches = Reaches(self.conditions, self.scores, self.both)
        reach = seen if isinstance(seen, Reach) else reaches.of(seen, shown)
        rest: str | None = None
        certain = self.guarded and np.isneginf(low)
        if reach is None and shown and certain and mask.fill is not None:
            rest = reaches.without(self.conditions.needed(mask.name, self.scores))
            reach = None if reaches.found == EVERYWHERE else reaches.found
        if reach is None or not (certain or self.always_shows(reach, others)):
            return
        self.reach = self.reach.narrowed(reach)
        place = self.found.index(mask)
        kept = [] if rest is None else [mask._replace(name=rest)]
        self.found[place : place + 1] = kept

    def hiding(self, mask: Mask) -> tuple[str | Array | Reach, bool, float] | None:
        """The condition of a mask, whether it shows keys, and what hides the others."""
        if mask.fill is not None:
            low = self.filled(mask)
            return (mask.name, mask.shown, low) if low <= HIDDEN else None
        array = self.flow.stored(mask.name)
        if array is not None:
            low = float(array.min()) if array.size and is_float(array.dtype) else 0.0
            two = low <= HIDDEN and bool(((array == 0) | (array == low)).all())
            return (array == 0, True, low) if two else None
        found = triangle(self.flow, mask.name, False)
        if found is not None:
            return (found[0], True, found[1]) if found[1] <= HIDDEN else None
        node = self.flow.made_by(mask.name, "Where")
        condition, *sides = (None,) * 3 if node is None else node.inputs
        for shown, (zero, fill) in ((True, sides), (False, sides[::-1])):
            low = self.filled(Mask("", fill))
            if condition and self.flow.magnitude(zero) == 0 and low <= HIDDEN:
                return condition, shown, low
        return None

    def always_shows(self, reach: Reach, others: list[Mask]) -> bool:
        """Whether some key in ``reach`` of a row is surely not hidden.

        That is so of the first key for all that see to the left, and of the key at
        its own place, if it has one.
        """
        if any(other.fill is not None for other in others):
            return False
        if sum(self.flow.magnitude(other.name) for other in others) > ORDINARY:
            return False
        return reach.left < 0 or self.scores[-2] == self.scores[-1]

    def both(self, one: str, other: str) -> str:
        return self.made(And(), (one, other), f"{one}.{other}")

    def term(self, mask: Mask) -> str | None:
        """``mask`` as what is added, None if that is zero."""
        if mask.fill is None:
            return self.added(mask.name)
        zero, low = self.number(0.0, mask.fill), mask.fill
        low = self.number(self.filled(mask), low)
        sides = (zero, low) if mask.shown else (low, zero)
        return self.made(Where(), (mask.name, *sides), f"{mask.name}.mask")

    def number(self, value: float, near: str) -> str:
        """A stored number of the type of ``near``."""
        t = self.flow.graph.type(near)
        assert t is not None
        return number(self.flow.graph, value, t.dtype)

    def added(self, name: str) -> str | None:
        """What is added, without what always holds of the condition it is made of, and
        without what repeats the numbers that are added.
        """
        node = self.flow.made_by(name, "Where")
        condition, *sides = (None, None) if node is None else node.inputs
        if node is None or condition is None:
            return name
        only = len(self.found) == 1 and self.flow.magnitude(sides[0]) == 0
        if only and self.conditions.always(condition):
            return None
        needed = self.conditions.needed(condition, self.scores)
        narrow = [self.narrow(side) for side in sides]
        shapes = [self.flow.extents(side) for side in narrow]
        known = all(self.flow.graph.type(side) is not None for side in narrow)
        fit = known and all(broadcasts(s, self.scores) for s in shapes)
        reach = self.flow.extents(needed)[-1:] == self.scores[-1:]
        if (needed == condition and narrow == sides) or not fit or not reach:
            return name
        operation = (Where, (needed, *narrow))
        if operation in self.known:
            return self.known[operation]
        output = self.flow.fresh(f"{name}.needed")
        self.nodes.append(replace(node, inputs=operation[1], outputs=(output,)))
        return output

    def narrow(self, side: str | None) -> str | None:
        """``side`` before it was repeated."""
        if side is None:
            return None
        if self.flow.stored(side) is None and self.flow.magnitude(side) == 0:
            return self.number(0.0, side)
        node = self.flow.made_by(side, "Expand")
        return side if node is None else node.inputs[0]

    def made(self, op: Op, inputs: tuple[str | None, ...], name: str) -> str:
        """The result of a new node, in the innermost module around attention that one
        of its operands is from: so layers that are given one mask make it once.
        """
        if (type(op), inputs) in self.known:
            return self.known[type(op), inputs]
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

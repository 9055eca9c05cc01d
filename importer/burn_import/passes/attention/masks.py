"""Masks on attention scores, and whether they can hide all keys of a row."""

from dataclasses import replace
from typing import NamedTuple, TypeAlias

import numpy as np

from burn.dtypes import float16, is_float
from burn_import.passes.attention.attention_window import (
    EVERYWHERE,
    Window,
    Windows,
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

#: Largest value that hides a key when it is added to its score.
HIDDEN = -1e30
#: Assumed bound of unmasked scores.
ORDINARY = 1e20


#: The path of a module and the classes along it.
Scope: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]


#: An operator without attributes, and its operands.
Operation: TypeAlias = tuple[type[Op], tuple[str | None, ...]]


class Mask(NamedTuple):
    """A term added to scores or, with ``fill``, the condition of a ``Where``.

    ``fill`` names the constant that replaces scores where the condition is not
    ``shown``.
    """

    name: str
    fill: str | None = None
    shown: bool = True


class Masks:
    """The masks on the scores of one attention, the last one first."""

    def __init__(
        self, conditions: Conditions, last: Node, earlier_masks: dict[Operation, str]
    ) -> None:
        self.flow, self.conditions, self.last = conditions.flow, conditions, last
        #: The result of each mask operation of earlier attentions.
        self.earlier_masks = earlier_masks
        self.mask_list: list[Mask] = []
        #: The shape of the scores.
        self.scores: tuple[Dim, ...] = ()
        #: Whether a fully masked row is zeros.
        self.guarded = False
        #: The attention window, in addition to the masks.
        self.window = EVERYWHERE
        #: Nodes that combine several masks into one.
        self.nodes: list[Node] = []

    def chosen(self, node: Node) -> str | None:
        """Return the scores that a ``Where`` masks with a constant; record the mask."""
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
            self.mask_list.append(Mask(condition, fill, shown))
            return scores
        return None

    def covers_keys(self, mask: Mask) -> bool:
        """Return whether a mask has the full extent of the keys' axis."""
        return extents(self.flow, mask.name)[-1:] == self.scores[-1:]

    def rank(self, name: str) -> int:
        t = self.flow.graph.type(name)
        return -1 if t is None or t.shape is None else len(t.shape)

    def fit(self, scores: tuple[Dim, ...]) -> bool:
        """Return whether all masks broadcast to the scores and one covers all keys."""
        self.scores = scores
        reached = not self.mask_list
        for mask in self.mask_list:
            t = self.flow.graph.type(mask.name)
            if t is None or t.shape is None:
                return False
            shape = extents(self.flow, mask.name)
            if not broadcasts(shape, scores):
                return False
            reached |= shape[-1:] == scores[-1:]
        return reached

    def are_exact(self, guarded: bool) -> bool:
        """Return whether attention with these masks equals the original formula.

        A row hidden by finite numbers is not zeros. A row hidden by minus infinity is
        zeros if it was ``guarded``, and NaN otherwise. Scores that are replaced by
        finite numbers have zero gradients, scores that finite numbers are added to do
        not; the difference shows in fully masked rows.
        """
        self.guarded = guarded
        self.drop_zeros()
        self.take_window()
        fills = [
            self.fill_value(mask) for mask in self.mask_list if mask.fill is not None
        ]
        added = [m.name for m in self.mask_list if m.fill is None]
        total = sum(map(self.flow.magnitude, added))
        finite = [fill for fill in fills if np.isfinite(fill)]
        if finite and (max(finite) > HIDDEN or total > ORDINARY):
            return False
        replaced = [mask for mask in self.mask_list if mask.fill is not None]
        if finite and not (len(replaced) == 1 and self.shows_a_key(replaced[0])):
            return False
        if guarded or not self.mask_list:
            return True
        t = self.flow.graph.type(added[0] if added else self.mask_list[0].fill)
        if t is not None and total - sum(fills) <= greatest(t):
            return True
        return self.shows_a_key_to_all()

    def fill_value(self, mask: Mask) -> float:
        """Return the fill value of masked scores; 0 where it cannot be added."""
        array = self.flow.stored(mask.fill)
        if array is None or array.size != 1 or not is_float(array.dtype):
            return 0.0
        if array.dtype == float16 and np.isfinite(array).all():
            return 0.0
        return float(array.reshape(()))

    def shows_a_key_to_all(self) -> bool:
        """Return whether the only mask is a constant that hides no full row."""
        return len(self.mask_list) == 1 and self.shows_a_key(self.mask_list[0])

    def shows_a_key(self, mask: Mask) -> bool:
        """Return whether a mask is a constant that hides no full row."""
        array = self.flow.stored(mask.name)
        if array is None or not array.ndim:
            return False
        if mask.fill is None:
            seen = np.isfinite(array)
        else:
            seen = array if mask.shown else ~array
        return bool(seen.any(axis=-1).all())

    def combine(self) -> str | None:
        """Return the name of the one combined mask, computed by :attr:`nodes`.

        None if there is no mask. The window :attr:`window` is not part of it.
        """
        if len(self.mask_list) == 1 and np.isneginf(self.fill_value(self.mask_list[0])):
            name = self.conditions.needed(self.mask_list[0].name, self.scores)
            if self.mask_list[0].shown:
                return name
            return self.add_node(Not(), (name,), f"{name}.seen")
        if not self.mask_list:
            return None
        result, *others = (self.term(mask) for mask in reversed(self.mask_list))
        for other in others:
            result = self.add_node(Add(), (result, other), f"{result}.{other}")
        return result

    def drop_zeros(self) -> None:
        """Drop masks that add zeros, unless one is needed to cover all keys."""
        nonzero = [
            mask
            for mask in self.mask_list
            if mask.fill is not None or self.flow.magnitude(mask.name) != 0
        ]
        if not nonzero or any(self.covers_keys(mask) for mask in nonzero):
            self.mask_list = nonzero

    def take_window(self) -> None:
        """Move attention windows from the masks to :attr:`window`."""
        for mask in list(self.mask_list):
            others = [other for other in self.mask_list if other is not mask]
            if all(self.covers_keys(other) for other in others):
                self.take_window_of(mask, others)

    def take_window_of(self, mask: Mask, others: list[Mask]) -> None:
        hiding = self.hiding(mask)
        if hiding is None:
            return
        seen, shown, low = hiding
        windows = Windows(self.conditions, self.scores, self.conjunction)
        window = seen if isinstance(seen, Window) else windows.of(seen, shown)
        rest: str | None = None
        certain = self.guarded and np.isneginf(low)
        if window is None and shown and certain and mask.fill is not None:
            rest = windows.without(self.conditions.needed(mask.name, self.scores))
            window = None if windows.window == EVERYWHERE else windows.window
        if window is None or not (certain or self.always_shows(window, others)):
            return
        self.window = self.window.narrowed(window)
        index = self.mask_list.index(mask)
        remaining = [] if rest is None else [mask._replace(name=rest)]
        self.mask_list[index : index + 1] = remaining

    def hiding(self, mask: Mask) -> tuple[str | Array | Window, bool, float] | None:
        """Return a mask's condition, whether True shows keys, and the fill value."""
        if mask.fill is not None:
            low = self.fill_value(mask)
            return (mask.name, mask.shown, low) if low <= HIDDEN else None
        array = self.flow.stored(mask.name)
        if array is not None:
            low = float(array.min()) if array.size and is_float(array.dtype) else 0.0
            two = low <= HIDDEN and bool(((array == 0) | (array == low)).all())
            return (array == 0, True, low) if two else None
        triangular = triangle(self.flow, mask.name, False)
        if triangular is not None:
            return (
                (triangular[0], True, triangular[1])
                if triangular[1] <= HIDDEN
                else None
            )
        node = self.flow.made_by(mask.name, "Where")
        condition, *sides = (None,) * 3 if node is None else node.inputs
        for shown, (zero, fill) in ((True, sides), (False, sides[::-1])):
            low = self.fill_value(Mask("", fill))
            if condition and self.flow.magnitude(zero) == 0 and low <= HIDDEN:
                return condition, shown, low
        return None

    def always_shows(self, window: Window, others: list[Mask]) -> bool:
        """Return whether each row certainly sees some key within ``window``.

        That holds for the first key if the window is open to the left, and for the key
        at the row's own index if there is one.
        """
        if any(other.fill is not None for other in others):
            return False
        if sum(self.flow.magnitude(other.name) for other in others) > ORDINARY:
            return False
        return window.left < 0 or self.scores[-2] == self.scores[-1]

    def conjunction(self, one: str, other: str) -> str:
        return self.add_node(And(), (one, other), f"{one}.{other}")

    def term(self, mask: Mask) -> str | None:
        """Return ``mask`` as a term to add; None if it is zero."""
        if mask.fill is None:
            return self.simplified_term(mask.name)
        zero, low = self.number(0.0, mask.fill), mask.fill
        low = self.number(self.fill_value(mask), low)
        sides = (zero, low) if mask.shown else (low, zero)
        return self.add_node(Where(), (mask.name, *sides), f"{mask.name}.mask")

    def number(self, value: float, near: str) -> str:
        """Return the name of a constant scalar with the dtype of ``near``."""
        t = self.flow.graph.type(near)
        assert t is not None
        return number(self.flow.graph, value, t.dtype)

    def simplified_term(self, name: str) -> str | None:
        """Return the simplified term; None if it adds nothing.

        Terms of its condition that always hold, and broadcasts of its operands, are
        removed.
        """
        node = self.flow.made_by(name, "Where")
        condition, *sides = (None, None) if node is None else node.inputs
        if node is None or condition is None:
            return name
        only = len(self.mask_list) == 1 and self.flow.magnitude(sides[0]) == 0
        if only and self.conditions.always(condition):
            return None
        needed = self.conditions.needed(condition, self.scores)
        narrow = [self.before_expand(side) for side in sides]
        shapes = [self.flow.extents(side) for side in narrow]
        have_types = all(self.flow.graph.type(side) is not None for side in narrow)
        fit = have_types and all(broadcasts(s, self.scores) for s in shapes)
        covers = self.flow.extents(needed)[-1:] == self.scores[-1:]
        if (needed == condition and narrow == sides) or not fit or not covers:
            return name
        operation = (Where, (needed, *narrow))
        if operation in self.earlier_masks:
            return self.earlier_masks[operation]
        output = self.flow.fresh(f"{name}.needed")
        self.nodes.append(replace(node, inputs=operation[1], outputs=(output,)))
        return output

    def before_expand(self, side: str | None) -> str | None:
        """Return the operand of an ``Expand``, a scalar for zeros, else ``side``."""
        if side is None:
            return None
        if self.flow.stored(side) is None and self.flow.magnitude(side) == 0:
            return self.number(0.0, side)
        node = self.flow.made_by(side, "Expand")
        return side if node is None else node.inputs[0]

    def add_node(self, op: Op, inputs: tuple[str | None, ...], name: str) -> str:
        """Return the result of a new node, or of an equal earlier one.

        The scope is that of the innermost module around the attention that produces an
        operand, so that layers which share a mask compute it once.
        """
        if (type(op), inputs) in self.earlier_masks:
            return self.earlier_masks[type(op), inputs]
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

"""Upgrade of nodes from old operator versions to the newest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from burn_ir.errors import InvalidOperand, Undecided
from burn_ir.raw import RawNode
from burn_ir.types import Array, Type


@dataclass(frozen=True)
class Draft:
    """A node during its upgrade, with the types of its operands.

    ``store`` stores an array and returns its name; ``insert`` inserts another node
    (at its newest version) before this one and returns the name of its first
    output.
    """

    node: RawNode
    types: tuple[Type | None, ...]
    store: Callable[[str, Array], str] = field(repr=False)
    insert: Callable[[RawNode], str] = field(repr=False)
    learn: Callable[[str], Type] = field(repr=False)

    @property
    def attrs(self) -> Mapping[str, Any]:
        """The attributes as stored."""
        return self.node.attrs

    def type(self, position: int) -> Type:
        """Return the type of a required operand.

        Raises:
            InvalidOperand: it is omitted.
        """
        type_ = self.types[position] if position < len(self.types) else None
        if type_ is None:
            raise InvalidOperand(f"expected input {position}, got none")
        return type_

    def rank(self, position: int) -> int:
        """Return the rank of an operand, which this old version requires.

        Raises:
            InvalidOperand: it is unknown.
        """
        try:
            return self.type(position).rank
        except Undecided:
            raise InvalidOperand(
                f"expected input {position} of known rank for this operator version"
            ) from None

    def with_attrs(self, *drop: str, **attrs: Any) -> Draft:
        """Return this draft with attributes set and those in ``drop`` removed."""
        others = {k: v for k, v in self.attrs.items() if k not in drop}
        return replace(self, node=replace(self.node, attrs={**others, **attrs}))

    def with_input(self, position: int, name: str | None) -> Draft:
        """Return this draft with an operand replaced or added."""
        inputs: list[str | None] = list(self.node.inputs)
        types = list(self.types)
        while len(inputs) <= position:
            inputs.append(None)
            types.append(None)
        inputs[position] = name
        types[position] = None if name is None else self.learn(name)
        return replace(
            self, node=replace(self.node, inputs=tuple(inputs)), types=tuple(types)
        )

    def attr_to_input(
        self, attr: str, position: int, dtype: Any = np.int64, scalar: bool = False
    ) -> Draft:
        """Return this draft with an attribute moved to the newer version's input."""
        value = self.attrs.get(attr)
        if value is None:
            return self
        array = np.asarray(value, dtype)
        name = self.store(
            f"{self.node.name or self.node.op_type}.{attr}",
            array if scalar else array.reshape(-1),
        )
        return self.with_attrs(attr).with_input(position, name)

    def before(self, op_type: str, inputs: Sequence[str | None], **attrs: Any) -> str:
        """Insert a node, at its newest version, in front; return its output's name."""
        outputs = (f"{self.node.outputs[0]}.{op_type.lower()}",)
        return self.insert(
            replace(
                self.node,
                op_type=op_type,
                domain="",
                attrs=attrs,
                inputs=tuple(inputs),
                outputs=outputs,
            )
        )

    def constant(self, name: str, array: Array) -> str:
        """Store an array; return its name."""
        return self.store(f"{self.node.name or self.node.op_type}.{name}", array)

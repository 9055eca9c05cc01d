"""Upgrade of one node to the newest version, and validation of its attributes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from burn_ir.errors import InvalidOperand
from burn_ir.graph import Graph
from burn_ir.op import COUNTS, Op, hints, operators
from burn_ir.raw import RawNode
from burn_ir.signature import check_attributes
from burn_ir.types import Array, Type
from burn_ir.upgrade import Draft

#: A memory-reuse hint of operators in opset 1, without effect on results.
IGNORED = frozenset({"consumed_inputs"})


def upgraded(
    raw: RawNode,
    version: int,
    *,
    learn: Callable[[str], Type],
    store: Callable[[str, Array], str],
    insert: Callable[[RawNode], str],
) -> tuple[RawNode, tuple[Type | None, ...]]:
    """Return the node at the newest version, and the types of its operands."""
    types = tuple(None if name is None else learn(name) for name in raw.inputs)
    if not IGNORED.isdisjoint(raw.attrs):
        attrs = {k: v for k, v in raw.attrs.items() if k not in IGNORED}
        raw = replace(raw, attrs=attrs)
    cls = operators()[(raw.domain, raw.op_type)]
    upgrade = cls.upgrades.get(version)
    if upgrade is None and cls.replaced is Op.replaced:
        return raw, types
    draft = Draft(raw, types, store, insert, learn)
    draft = draft if upgrade is None else upgrade(draft)
    cls = operators()[(draft.node.domain, draft.node.op_type)]
    if cls.replaced is not Op.replaced:
        draft = make_op(draft.node, {}).replaced(draft)
    return draft.node, draft.types


@cache
def _without_attributes(cls: type[Op]) -> Op:
    """Return the shared operator of a class without attributes."""
    return cls()


def make_op(raw: RawNode, bodies: Mapping[str, Graph]) -> Op:
    """Return the operator of an upgraded node.

    Raises:
        InvalidOperand: an attribute is unknown, missing or has a value that is not
            among those allowed.
    """
    cls = operators()[(raw.domain, raw.op_type)]
    names = hints(cls)
    if not names and not raw.attrs:
        return _without_attributes(cls)
    if not raw.attrs.keys() <= names.keys() - COUNTS:
        expected = names.keys() - COUNTS
        unknown = sorted(raw.attrs.keys() - expected)
        raise InvalidOperand(
            f"expected attributes among {sorted(expected)}, got {', '.join(unknown)}"
        )
    values: dict[str, Any] = {**raw.attrs, **bodies}
    if "operands" in names:
        values["operands"] = len(raw.inputs)
    if "results" in names:
        used = [i for i, name in enumerate(raw.outputs) if name is not None]
        values["results"] = max(used, default=0) + 1
    check_attributes(cls, values)
    try:
        return cls(**values)
    except TypeError as error:
        raise InvalidOperand(f"expected a required attribute: {error}") from None

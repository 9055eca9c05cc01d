"""Branches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from burn_import.exported.builder import Builder, Value
from burn_import.exported.table import rule

Body = Callable[[Sequence[Value]], Any]


@rule("higher_order.cond")
def cond(
    g: Builder, pred: Value, true_fn: Body, false_fn: Body, operands: Sequence[Value]
) -> tuple[Value, ...]:
    then, otherwise = true_fn(operands), false_fn(operands)
    return g.many(
        "If", len(then.outputs), pred, then_branch=then, else_branch=otherwise
    )

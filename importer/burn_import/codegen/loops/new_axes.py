"""Concatenation of values along a new axis, which ``ops.stack`` adds itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from burn import Tensor, ops
from burn_import.tracing.statements import count_uses
from burn_import.tracing.trace import Apply, Block, Statement, Symbol

#: Minimum values that are stacked.
FEWEST_VALUES = 2


def join_new_axes(block: Block) -> None:
    """Replace a concatenation of unsqueezed values by a stack of the values."""
    uses = count_uses(block)
    unsqueezed = {
        one.targets[0]: one
        for one in block.statements
        if isinstance(one, Apply) and one.primitive is ops.unsqueeze
    }
    gone: set[int] = set()
    statements: list[Statement] = []
    for statement in block.statements:
        sources = _sources(statement, unsqueezed)
        if sources and all(uses[one.targets[0]] == 1 for one in sources):
            assert isinstance(statement, Apply)
            args = ([one.args[0] for one in sources],)
            statement = replace(statement, primitive=ops.stack, args=args)
            gone.update(map(id, sources))
        statements.append(statement)
    block.statements = [one for one in statements if id(one) not in gone]


def _sources(statement: Statement, unsqueezed: dict[Symbol, Apply]) -> list[Apply]:
    """Return the concatenated values if all are unsqueezed at that axis, else []."""
    if not isinstance(statement, Apply) or statement.primitive is not ops.concat:
        return []
    values: Any = statement.args[0]
    if not isinstance(values, list) or len(values) < FEWEST_VALUES:
        return []
    if len(statement.args) > 1 or set(statement.static) - {"axis"}:
        return []
    if not all(isinstance(one, Tensor) and one.data in unsqueezed for one in values):
        return []
    sources = [unsqueezed[one.data] for one in values]
    axis = (statement.static.get("axis", 0),)
    return sources if all(one.args[1:] == axis for one in sources) else []

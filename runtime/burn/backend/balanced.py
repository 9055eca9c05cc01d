"""Balanced checkpointing: a tape without the results of memory-bound primitives."""

from collections.abc import Iterator
from typing import Any

from burn.backend.base import map_structure
from burn.backend.tape import CallNode, Node, Output


class BalancedCallNode(CallNode):
    """A recorded call; the results of memory-bound calls are computed again.

    Among its operands a node stands for its result. A result that was computed again
    is stored until the backward pass has passed the call.
    """

    __slots__ = ("_count",)

    def __init__(
        self,
        primitive: Any,
        sources: tuple[Any, ...],
        inner: tuple[Any, ...],
        static: dict[str, Any],
        result: Any,
    ) -> None:
        saved = tuple(map(_without_recomputable, inner, sources))
        super().__init__(primitive, sources, saved, static, result)
        self._count = len(result) if type(result) is tuple else 1
        self.release()

    @property
    def result_count(self) -> int:
        return self._count

    def values(self) -> tuple[Any, tuple[Any, ...]]:
        calls = [self] if self.result is None else list(_recomputed_operands(self))
        _recompute(calls)
        return self.result, _fill(self.inner)

    def release(self) -> None:
        if self.primitive.memory_bound:
            self.result = None


def _without_recomputable(value: Any, source: Any) -> Any:
    """Return an operand with nodes for the values that can be computed again."""
    if source is None:
        return value
    if isinstance(source, Node):
        return value if _recomputable_call(source) is None else source
    return type(value)(map(_without_recomputable, value, source))


def _recomputable_call(source: Any) -> BalancedCallNode | None:
    """Return the memory-bound call that a place on the tape is a result of, if any."""
    call = source.call if isinstance(source, Output) else source
    if isinstance(call, BalancedCallNode) and call.primitive.memory_bound:
        return call
    return None


def _recompute(calls: list[BalancedCallNode]) -> None:
    """Compute the results of ``calls``, and of the calls before them, where needed."""
    missing, stack = set[BalancedCallNode](), list(calls)
    while stack:
        call = stack.pop()
        if call.result is None and call not in missing:
            missing.add(call)
            stack.extend(_recomputed_operands(call))
    for call in sorted(missing, key=lambda call: call.order):
        call.result = call.primitive(*_fill(call.inner), **call.static)


def _recomputed_operands(call: BalancedCallNode) -> Iterator[BalancedCallNode]:
    """Yield the calls whose results are operands that were not stored."""
    operands: list[Any] = []
    map_structure(operands.append, call.inner)
    for operand in operands:
        if isinstance(operand, Node):
            source = _recomputable_call(operand)
            assert source is not None
            yield source


def _fill(operands: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return operands with results in the place of nodes."""

    def value_of(leaf: Any) -> Any:
        if isinstance(leaf, Output):
            return leaf.call.result[leaf.position]
        return leaf.result if isinstance(leaf, BalancedCallNode) else leaf

    filled: tuple[Any, ...] = map_structure(value_of, operands)
    return filled

"""Whatever goes wrong inside an operator is said of the node that has it.

A file can hold any number anywhere: a stride of 0, an axis of 2**63, a string where a
number belongs. Operators check what they know of. What gets past them surfaces as one
of ``FAULTS``, and is the model's problem, not a crash.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType

from burn_ir.errors import InvalidModel, InvalidOperand, ModelError, Problem, Undecided
from burn_ir.graph import Node

#: What operators raise on operands and attributes that no model should have.
FAULTS: tuple[type[Exception], ...] = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    RuntimeError,  # RecursionError and NotImplementedError are among these
    TypeError,
    ValueError,
    Undecided,
)
#: As well as those: an extra that an operator needs is not installed.
OR_MISSING: tuple[type[Exception], ...] = (*FAULTS, ImportError)


def told(error: Exception) -> str:
    """The message of a problem: an operator's own words, or the kind of the fault."""
    if isinstance(error, InvalidOperand):
        return str(error)
    if isinstance(error, Undecided):
        return f"expected operands that are known before the model runs: {error}"
    return (
        f"expected operands and attributes that can be computed with, got {kind(error)}"
    )


def kind(error: Exception) -> str:
    """``ZeroDivisionError: integer modulo by zero``, on one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


class blamed:  # noqa: N801
    """Within, what an operator raises becomes ``InvalidModel`` that names ``node``.

    Every node is typed within one, and a generator would take three times as long.
    """

    def __init__(self, node: Node, opsets: Mapping[str, int]) -> None:
        self.node, self.opsets = node, opsets

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, _: object, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, ModelError) or not isinstance(error, FAULTS):
            return
        node = self.node
        name = node.name or next((o for o in node.outputs if o), "")
        opset = self.opsets.get(node.op.domain)
        problem = Problem(told(error), name, node.op.onnx, opset)
        raise InvalidModel([problem]) from error

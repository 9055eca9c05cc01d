"""Attribution of operator errors to nodes.

A file can contain any number anywhere: a stride of 0, an axis of 2**63, a string in
place of a number. Operators validate their attributes and operands. Any other exception
of ``FAULTS`` is reported as a defect of the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType

from burn_ir.errors import InvalidModel, InvalidOperand, ModelError, Problem, Undecided
from burn_ir.graph import Node

#: Exceptions that operators raise on invalid operands and attributes.
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
#: ``FAULTS`` and the error for an extra that is not installed.
OR_MISSING: tuple[type[Exception], ...] = (*FAULTS, ImportError)


def error_text(error: Exception) -> str:
    """Return the message of a problem: the operator's own, or a description."""
    if isinstance(error, InvalidOperand):
        return str(error)
    if isinstance(error, Undecided):
        return f"expected operands that are known before the model runs: {error}"
    expected = "expected operands and attributes that can be computed with"
    return f"{expected}, got {describe_fault(error)}"


def describe_fault(error: Exception) -> str:
    """Return type and message on one line: ``ZeroDivisionError: modulo by zero``."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


class error_context:  # noqa: N801
    """Context manager that turns ``FAULTS`` into ``InvalidModel`` naming ``node``.

    It is entered for every node; a generator-based one takes three times as long.
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
        problem = Problem(error_text(error), name, node.op.onnx, opset)
        raise InvalidModel([problem]) from error

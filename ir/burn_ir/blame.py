"""Whatever goes wrong inside an operator is said of the node that has it.

A file can hold any number anywhere: a stride of 0, an axis of 2**63, a string where a
number belongs. Operators check what they know of. What gets past them surfaces as one
of ``FAULTS``, and is the model's problem, not a crash.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

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


@contextmanager
def blamed(node: Node, opsets: Mapping[str, int]) -> Iterator[None]:
    """Within, what an operator raises becomes ``InvalidModel`` that names ``node``."""
    try:
        yield
    except ModelError:
        raise
    except FAULTS as error:
        name = node.name or next((o for o in node.outputs if o), "")
        opset = opsets.get(node.op.domain)
        problem = Problem(told(error), name, node.op.onnx, opset)
        raise InvalidModel([problem]) from error

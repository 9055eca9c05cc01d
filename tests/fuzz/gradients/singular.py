"""Points of a graph in float64 where derivatives and differences are unrelated.

The slope of a root at 0 is infinite, and so are those of arcs at the ends of what they
are defined for. A chain of them and of a slope of 0 is NaN, in PyTorch as well, where
the difference of the loss may be 0. A remainder of a divisor that is smaller than the
steps of differences is a saw that these do not see: its slope is 1, they tell 0. At a
kink a derivative is one of those beside it or between them, as in PyTorch; two kinks
may be smooth together, as ``min(x, abs(x))`` is at 0.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from burn import Tensor
from burn.backend.cpu import HOST
from burn_ir import Graph
from burn_ir.evaluate import run_node
from tests.fuzz.gradients.derivative import STEPS

#: Where the slope of an operator is infinite.
INFINITE: Mapping[str, Callable[[Any], Any]] = {
    "Acos": lambda x: abs(x) == 1,
    "Acosh": lambda x: x == 1,
    "Asin": lambda x: abs(x) == 1,
    "Sqrt": lambda x: x == 0,
}


#: Where the slopes on both sides differ: of one operand, and of several.
KINKS = frozenset({"Abs", "LeakyRelu", "PRelu", "Relu"})
TIES = frozenset({"Max", "Min"})


def says_nothing(graph: Graph, inputs: Sequence[Any], got: float) -> bool:
    """Return whether differences cannot give the derivative ``got`` at a node.

    Infinite slopes are the reason only for what is NaN or infinite.
    """
    values: dict[str | None, Any] = {None: None}
    values |= {name: Tensor(array, HOST) for name, array in graph.constants.items()}
    values |= {name: values[source] for name, source in graph.defaults.items()}
    given = zip(graph.inputs, inputs, strict=False)
    values |= {name: value for name, value in given if value is not None}
    with np.errstate(all="ignore"):
        for node in graph.nodes:
            operands = [values[name] for name in node.inputs]
            arrays = [x.numpy() for x in operands if isinstance(x, Tensor)]
            if any(test(node.op.onnx, arrays) for test in (_is_saw, _is_kink, _joins)):
                return True
            if not np.isfinite(got) and _is_infinite(node.op.onnx, arrays):
                return True
            results = run_node(node, operands)
            values |= zip(node.outputs, results, strict=False)
    return False


def _is_infinite(operator: str, operands: Sequence[Any]) -> bool:
    return operator in INFINITE and bool(INFINITE[operator](operands[0]).any())


def _is_saw(operator: str, operands: Sequence[Any]) -> bool:
    if operator != "Mod" or operands[0].dtype.kind != "f":
        return False
    x, y = np.broadcast_arrays(*operands)
    return bool((np.abs(y) <= STEPS[0] * np.abs(x)).any())


def _is_kink(operator: str, operands: Sequence[Any]) -> bool:
    if not operands or operands[0].dtype.kind != "f":
        return False
    if operator in KINKS:
        return bool((operands[0] == 0).any())
    pairs = itertools.combinations(operands, 2) if operator in TIES else ()
    return any(bool((x == y).any()) for x, y in pairs)


def _joins(operator: str, operands: Sequence[Any]) -> bool:
    """Return whether elements are one in the result that are two beside this point."""
    if operator != "Unique" or operands[0].dtype.kind != "f":
        return False
    return bool(len(np.unique(operands[0])) < operands[0].size)

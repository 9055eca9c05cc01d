"""Nodes of texts that onnxruntime copies in part: conditions of rules."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto

Operands = Sequence[Any]


def stacks_texts(node: NodeProto, operands: Operands) -> bool:
    """Return whether a loop, also in bodies, collects strings of several iterations.

    How many rounds there are is known of ``node`` itself alone.
    """
    trips = operands[0] if node.op_type == "Loop" else None
    once = trips is not None and int(np.ravel(trips)[0]) < 2
    if node.op_type == "Loop" and not once and _has_rows_of_text(node):
        return True
    bodies = [a.g for a in node.attribute if a.HasField("g")]
    return any(stacks_texts(n, [None]) for body in bodies for n in body.node)


def _has_rows_of_text(loop: NodeProto) -> bool:
    body = next(a.g for a in loop.attribute if a.name == "body")
    carried = len(body.input) - 2
    rows = body.output[1 + carried :]
    return any(r.type.tensor_type.elem_type == TensorProto.STRING for r in rows)


def gathers_rows_of_text(node: NodeProto, operands: Operands) -> bool:
    data = operands[0]
    axis = next((a.i for a in node.attribute if a.name == "axis"), 0)
    inner = data.shape[axis % max(1, data.ndim) + 1 :]
    return data.dtype.kind in "OUS" and int(np.prod(inner)) > 1

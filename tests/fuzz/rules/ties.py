"""Quantized results that rounding decides on: nodes run with slightly other scales."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import NodeProto, ValueInfoProto, helper

from tests.fuzz.reference.session import REFUSALS, session_of

#: By how much a scale may be off: four roundings of a float32.
STEP = 4 * float(np.finfo(np.float32).eps)
#: Operators of sums and products alone. Integers times powers of two are exact there,
#: as are the halves between two results.
EXACT = frozenset(
    {"QGemm", "QLinearAdd", "QLinearAveragePool", "QLinearConcat", "QLinearConv"}
    | {"QLinearGlobalAveragePool", "QLinearMatMul", "QLinearMul", "QLinearWhere"}
)


def rounds_between_scales(node: NodeProto, operands: Sequence[Any]) -> bool:
    """Return whether scales that differ by rounding change a quantized result."""
    scales = [
        index
        for index, x in enumerate(operands)
        if x is not None and x.dtype == np.float32
    ]
    if node.op_type in EXACT and all(_are_powers(operands[i]) for i in scales):
        return False
    try:
        session = _session(node, operands)
        expected = _output(session, operands)
        return expected.dtype.kind in "iu" and any(
            not np.array_equal(expected, _output(session, moved))
            for index in scales
            for moved in _moved(operands, index)
        )
    except REFUSALS:
        return False  # as it is where the generator tries the node


def _are_powers(scales: Any) -> bool:
    """Return whether all of ``scales`` are powers of two."""
    return bool((np.frexp(np.abs(scales))[0] == 0.5).all())


def _moved(operands: Sequence[Any], index: int) -> list[list[Any]]:
    """``operands`` with the one at ``index`` a little larger, and smaller."""
    return [
        [
            *operands[:index],
            operands[index] * np.float32(factor),
            *operands[index + 1 :],
        ]
        for factor in (1 - STEP, 1 + STEP)
    ]


def _session(node: NodeProto, operands: Sequence[Any]) -> Any:
    """A session of ``node`` alone, each of whose operands is an input of its own."""
    alone = NodeProto()
    alone.CopyFrom(node)
    names = [f"x{i}" if x is not None else "" for i, x in enumerate(operands)]
    alone.input[:] = names
    inputs = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape
        )
        for name, x in zip(names, operands, strict=True)
        if x is not None
    ]
    output = ValueInfoProto(name=node.output[0])
    graph = helper.make_graph([alone], "alone", inputs, [output])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    return session_of(model)


def _output(session: Any, operands: Sequence[Any]) -> Any:
    feeds = {f"x{i}": np.asarray(x) for i, x in enumerate(operands) if x is not None}
    return session.run(None, feeds)[0]

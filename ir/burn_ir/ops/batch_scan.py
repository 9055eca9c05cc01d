"""Version 8 of Scan, which scanned every batch element separately."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from burn import ops
from burn.dtypes import int64
from burn_ir.dim import unnamed
from burn_ir.op import Op, Type, Value, operator
from burn_ir.ops.control import Scan
from burn_ir.ops.support import shape_of
from burn_ir.raw import RawGraph, RawNode
from burn_ir.upgrade import Draft


@operator
class ElementScan(Scan, onnx="Scan", versions=(1,), domain="burn"):
    """The scan of one batch element."""


@operator
class FirstRows(Op, onnx="FirstRows", versions=(1,), domain="burn"):
    """The first ``count`` rows of a batch element."""

    def infer(self, x: Type, count: Type) -> Type:
        return x.with_shape((unnamed(), *x.dims[1:]))

    def lower(self, x: Value, count: Value) -> Value:
        return x[:count]


@operator
class FillRows(Op, onnx="FillRows", versions=(1,), domain="burn"):
    """``rows`` padded with zeros to the length of ``whole``."""

    def infer(self, rows: Type, whole: Type) -> Type:
        return rows.with_shape((whole.dims[0], *rows.dims[1:]))

    def lower(self, rows: Value, whole: Value) -> Value:
        shape = shape_of(whole)
        length = ops.shape(whole)[0] if shape is None else shape[0]
        return ops.fill_rows(rows, length)


@Scan.upgrade(8)
def _(draft: Draft) -> Draft:
    """Upgrade to nested loops, the outer one over batch elements.

    The first input was the sequence length per element: the whole length if
    omitted. Results are padded with zeros after it.
    """
    lengths, *operands = draft.node.inputs
    count = int(draft.attrs["num_scan_inputs"])
    body = _element(draft, len(operands), count, lengths is not None)
    inputs = list(operands) if lengths is None else [lengths, *operands]
    types = draft.types[1:] if lengths is None else draft.types
    node = replace(draft.node, inputs=tuple(inputs))
    batch = replace(draft, node=node, types=types)
    return batch.with_attrs("directions", body=body, num_scan_inputs=len(inputs))


def _element(draft: Draft, operands: int, count: int, limited: bool) -> RawGraph:
    """Return the subgraph that scans one batch element."""
    body: RawGraph = draft.attrs["body"]
    own = f"{draft.node.name or draft.node.op_type}.element"
    inputs = [f"{own}.{index}" for index in range(operands)]
    outputs = [f"{own}.result.{index}" for index in range(len(body.outputs))]
    attrs = {
        "body": body,
        "num_scan_inputs": count,
        "scan_input_directions": draft.attrs.get("directions", (0,) * count),
    }
    states = operands - count
    nodes: list[RawNode] = []
    inner, results = list(inputs), list(outputs)
    if limited:
        inner[states:] = [f"{name}.first" for name in inputs[states:]]
        results[states:] = [f"{name}.rows" for name in outputs[states:]]
        for whole, first in zip(inputs[states:], inner[states:], strict=True):
            nodes.append(_node("FirstRows", (whole, f"{own}.length"), first))
    scan = RawNode("Scan", "burn", attrs, tuple(inner), tuple(results), draft.node.name)
    nodes.append(scan)
    if limited:
        for rows, filled in zip(results[states:], outputs[states:], strict=True):
            nodes.append(_node("FillRows", (rows, inputs[-1]), filled))
        inputs.insert(0, f"{own}.length")
    types = {
        name: Type(int64, None) for name in inputs
    }  # the types of the operands replace these
    return RawGraph(f"{body.name}.elements", types, tuple(outputs), tuple(nodes), {})


def _node(operator: str, inputs: Sequence[str], output: str) -> RawNode:
    return RawNode(operator, "burn", {}, tuple(inputs), (output,), output)

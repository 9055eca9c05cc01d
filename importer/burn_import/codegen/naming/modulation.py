"""Names of the pieces of an adaptive layer norm: ``shift``, ``scale`` and ``gate``."""

from burn_import.rewriting.dataflow import Dataflow
from burn_ir.graph import Graph, Node

_VIEWS = ("Unsqueeze", "Reshape")


def modulation_names(graph: Graph) -> dict[str, str]:
    """Return the names of pieces that modulate normalized rows, by value.

    ``norm(x) * (scale + 1) + shift`` reads two pieces of one array, and a branch is
    multiplied by a ``gate``. An array with pieces for other purposes is left out.
    """
    flow = Dataflow(graph)
    pieces: dict[str, list[str]] = {}
    for node in graph.nodes:
        if node.op.onnx in ("Split", "Slice") and node.inputs[0]:
            outputs = [name for name in node.outputs if name is not None]
            pieces.setdefault(node.inputs[0], []).extend(outputs)
    names: dict[str, str] = {}
    for parts in pieces.values():
        words = [_word(name, flow) for name in parts]
        if {"shift", "scale"} <= set(words) <= {"shift", "scale", "gate"}:
            names.update(zip(parts, words, strict=True))
    return names


def _word(name: str, flow: Dataflow) -> str:
    """Return what a piece does to its only reader, "" if that is something else."""
    reader = _reader(name, flow)
    while reader is not None and reader.op.onnx in _VIEWS:
        name = reader.output
        reader = _reader(name, flow)
    if reader is None or reader.op.onnx not in ("Add", "Mul"):
        return ""
    if reader.op.onnx == "Mul":
        return "gate"
    one = [n for n in reader.inputs if flow.scalar(n) == 1]
    if not one:
        return "shift"
    factor = _reader(reader.output, flow)
    while factor is not None and factor.op.onnx in _VIEWS:
        factor = _reader(factor.output, flow)
    return "scale" if factor is not None and factor.op.onnx == "Mul" else ""


def _reader(name: str, flow: Dataflow) -> Node | None:
    """Return the only node that reads a value."""
    readers = flow.users.get(name, ())
    return readers[0] if len(readers) == 1 else None

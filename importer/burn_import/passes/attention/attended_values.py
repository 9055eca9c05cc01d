"""The attention whose result a value is: an operator, or two products."""

from dataclasses import dataclass

from burn_import.passes.attention.arrangements import MOVES, STEPS
from burn_import.rewriting.dataflow import Dataflow
from burn_ir.graph import Node
from burn_ir.ops.attention import Attention
from burn_ir.ops.dropout import AttentionWithDropout, TrackedDropout


@dataclass
class AttentionMatch:
    """An attention: its operands, the node of its scores, and options.

    ``scores`` are the operand of a softmax, "" for an ``Attention``.
    """

    operands: tuple[str, str, str]
    inner: Node
    core: Node
    scores: str = ""
    is_causal: bool = False
    dropout: float = 0.0


def attention_of(flow: Dataflow, last: Node) -> AttentionMatch | None:
    """Return the attention whose merged heads ``last`` reads, None if it is none."""
    core = flow.producers.get(_before_moves(flow, last.inputs[0]))
    if core is None:
        return None
    if isinstance(core.op, Attention):
        return _of_operator(core, core.op)
    return _of_products(flow, core) if core.op.onnx == "MatMul" else None


def _of_operator(core: Node, op: Attention) -> AttentionMatch | None:
    """Return an ``Attention`` with the default scale and masks alone."""
    is_plain = op.results == 1 and op.scale is op.softmax_precision is None
    windows = {op.left_window_size, op.right_window_size}
    if not is_plain or op.softcap or windows != {-1} or any(core.inputs[4:]):
        return None
    dropout = op.dropout if isinstance(op, AttentionWithDropout) else 0.0
    query, key, value = (str(name) for name in core.inputs[:3])
    causal = bool(op.is_causal)
    return AttentionMatch((query, key, value), core, core, "", causal, dropout)


def _of_products(flow: Dataflow, core: Node) -> AttentionMatch | None:
    """Return the attention whose second product is ``core``."""
    weights, dropout = _before_moves(flow, core.inputs[0]), 0.0
    dropped = flow.producers.get(weights)
    if dropped is not None and isinstance(dropped.op, TrackedDropout):
        weights, dropout = _before_moves(flow, dropped.inputs[0]), dropped.op.ratio
    softmax = flow.made_by(weights, "Softmax")
    rank = len(flow.extents(weights))
    if softmax is None or softmax.op.attrs()["axis"] not in (-1, rank - 1):
        return None
    product = _first_product(flow, softmax.inputs[0])
    if product is None:
        return None
    operands = (str(product.inputs[0]), str(product.inputs[1]), str(core.inputs[1]))
    scores = str(softmax.inputs[0])
    return AttentionMatch(operands, product, core, scores, dropout=dropout)


def _first_product(flow: Dataflow, name: str | None, steps: int = STEPS) -> Node | None:
    """Return the product that a value is, after masks, factors and moves."""
    node = flow.made_by(name, "MatMul", "Add", "Mul", "Div", *MOVES)
    if node is None or node.op.onnx == "MatMul" or not steps:
        return node if steps else None
    operands = node.inputs if node.op.onnx in ("Add", "Mul") else node.inputs[:1]
    products = (_first_product(flow, operand, steps - 1) for operand in operands)
    return next(filter(None, products), None)


def _before_moves(flow: Dataflow, name: str | None) -> str:
    """Return the value whose elements ``name`` has."""
    while (node := flow.made_by(name, *MOVES)) is not None:
        name = node.inputs[0]
    return str(name)

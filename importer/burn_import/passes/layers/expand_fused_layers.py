"""Expands onnxruntime's layers with an activation to a layer and the activation."""

from collections.abc import Sequence
from dataclasses import replace

from burn_import.rewriting.arrays import number
from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import with_nodes, without_trailing
from burn_ir.graph import Graph, Node
from burn_ir.op import Op
from burn_ir.ops import activation
from burn_ir.ops.elementwise import Add, Clip
from burn_ir.ops.matmul import Gemm
from burn_ir.ops.microsoft.activation import BiasGelu, FastGelu
from burn_ir.ops.microsoft.fused import FusedConv, FusedGemm

#: The operators of activations with parameters.
_ACTIVATIONS: dict[str, type[Op]] = {
    op.onnx: op
    for op in (
        *(activation.Elu, activation.HardSigmoid, activation.LeakyRelu),
        *(activation.Relu, activation.Selu, activation.Sigmoid, activation.Softplus),
        *(activation.Softsign, activation.Tanh, activation.ThresholdedRelu),
    )
}
#: The operators that the pass expands.
_FUSED = frozenset({"FusedConv", "FusedGemm", "BiasGelu", "FastGelu"})


def expand_fused_layers(graph: Graph) -> Graph:
    """Return ``graph`` with a layer and an activation for each fused node.

    ``FusedConv`` is ``Conv``, a sum if it has a fourth operand, and the activation;
    ``FusedGemm`` is ``Gemm`` and the activation; a bias of ``BiasGelu`` and
    ``FastGelu`` is added before. The activation runs in the module around the layer.
    """
    if graph.operators.isdisjoint(_FUSED):
        return graph
    flow = Dataflow(graph)
    return with_nodes(
        graph, [new for node in graph.nodes for new in _expanded(flow, node)]
    )


def _expanded(flow: Dataflow, node: Node) -> list[Node]:
    """Return the nodes that ``node`` stands for; itself if it is not fused."""
    op = node.op
    if isinstance(op, FusedConv):
        conv = without_trailing(node.inputs[:3])
        steps: list[tuple[Op, tuple[str | None, ...]]] = [(op.conv(), conv)]
        steps += [(Add(), (name,)) for name in node.inputs[3:] if name is not None]
        return _chain(flow, node, steps, op.activation, op.activation_params)
    if isinstance(op, FusedGemm):
        gemm = Gemm(op.alpha, op.beta, op.transA, op.transB)
        second = op.activation_gamma if op.activation == "Selu" else op.activation_beta
        parameters = (op.activation_alpha, second)
        return _chain(flow, node, [(gemm, node.inputs)], op.activation, parameters)
    if isinstance(op, BiasGelu | FastGelu) and len(node.inputs) > 1:
        gelu = activation.Gelu() if isinstance(op, BiasGelu) else FastGelu()
        name = flow.fresh(f"{node.output}.sum")
        total = replace(node, op=Add(), outputs=(name,))
        return [total, replace(node, op=gelu, inputs=(name,))]
    return [node]


def _chain(
    flow: Dataflow,
    node: Node,
    steps: Sequence[tuple[Op, tuple[str | None, ...]]],
    kind: str | None,
    parameters: Sequence[float | None],
) -> list[Node]:
    """Return nodes for ``steps``, with the operands they add, and an activation."""
    around = replace(node, scope=node.scope[:-1], classes=node.classes[:-1])
    nodes: list[Node] = []
    for op, operands in steps:
        before = tuple(nodes[-1].outputs) if nodes else ()
        name = flow.fresh(f"{node.output}.{op.onnx.lower()}")
        start = around if nodes else node
        nodes.append(replace(start, op=op, inputs=before + operands, outputs=(name,)))
    if kind:
        last, extra = _activation(flow, node, kind, parameters)
        inputs = without_trailing((*nodes[-1].outputs, *extra))
        nodes.append(replace(around, op=last, inputs=inputs))
    nodes[-1] = replace(nodes[-1], outputs=node.outputs)
    return nodes


def _activation(
    flow: Dataflow, node: Node, kind: str, parameters: Sequence[float | None]
) -> tuple[Op, tuple[str | None, ...]]:
    """Return the operator of an activation and its operands besides the first.

    None in ``parameters`` is the default.
    """
    if kind == "Clip":
        dtype = flow.graph.types[node.output].dtype
        bounds = (
            None if x is None else number(flow.graph, x, dtype) for x in parameters
        )
        return Clip(), tuple(bounds)
    op = _ACTIVATIONS[kind]
    attrs = dict(zip(op().attrs(), parameters, strict=False))
    return op(**{key: x for key, x in attrs.items() if x is not None}), ()

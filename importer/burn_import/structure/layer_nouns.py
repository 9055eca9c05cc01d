"""Names for unnamed layers, from their role in an attention."""

from __future__ import annotations

from collections.abc import Iterator

from burn_import.tracing.identifiers import snake
from burn_ir.graph import Graph, Node
from burn_ir.ops.attention import Attention, RotaryEmbedding
from burn_ir.ops.cast import Cast
from burn_ir.ops.shape import Expand, Flatten, Reshape, Squeeze, Transpose, Unsqueeze

_OPERANDS = ("query", "key", "value")
#: Operators between a projection and the attention; their first operand is the tensor.
_BETWEEN = (
    *(Cast, Expand, Flatten, Reshape, RotaryEmbedding, Squeeze),
    *(Transpose, Unsqueeze),
)


#: Words for layers whose operators have other names.
_WORDS = {
    "DynamicQuantizeConv": "conv",
    "DynamicQuantizeMatMul": "linear",
    "MatMulNBits": "linear",
    "QLinearConv": "conv",
    "QLinearMatMul": "linear",
    "WeightQuantizedConv": "conv",
    "WeightQuantizedEmbedding": "embedding",
    "WeightQuantizedLinear": "linear",
}


def operator_word(operator: str) -> str:
    """Return an identifier for a layer of an operator."""
    return _WORDS.get(operator) or snake(operator, "layer")


class LayerNouns:
    """Names of unnamed layers: a role such as ``query``, else ``linear`` or ``norm``.

    Layers that compute the operands of an attention are named after the operands,
    and the one that reads its result is named ``output``.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.makers = {
            name: node for node in graph.nodes for name in node.outputs if name
        }
        self.nouns: dict[int, set[str]] = {}
        for node in graph.nodes:
            if isinstance(node.op, Attention):
                self._name_projections(node)

    def noun(self, node: Node) -> str:
        """Return an identifier for the layer of ``node``: its role or its operator."""
        nouns = self.nouns.get(id(node), set())
        if len(nouns) == 1:
            return next(iter(nouns))
        is_norm = node.op.onnx.endswith("Normalization")
        return "norm" if is_norm else operator_word(node.op.onnx)

    def _name_projections(self, attention: Node) -> None:
        for noun, name in zip(_OPERANDS, attention.inputs, strict=False):
            maker = self.makers.get(name or "")
            while maker is not None and isinstance(maker.op, _BETWEEN):
                maker = self.makers.get(maker.inputs[0] or "")
            if maker is not None:
                self.nouns.setdefault(id(maker), set()).add(noun)
        for reader in self._readers(attention.output):
            self.nouns.setdefault(id(reader), set()).add("output")

    def _readers(self, name: str) -> Iterator[Node]:
        """Yield the only reader of ``name``, looking through moves of elements."""
        users = self.graph.users.get(name, ())
        while len(users) == 1 and isinstance(users[0].op, _BETWEEN):
            users = self.graph.users.get(users[0].output, ())
        if len(users) == 1:
            yield users[0]

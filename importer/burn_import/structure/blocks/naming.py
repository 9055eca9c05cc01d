"""Names of the layers in a graph without names of modules."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from burn.dtypes import is_float
from burn_import.provenance.exporter_names import is_leftover
from burn_import.provenance.weight_owners import is_dotted, original
from burn_import.structure.layer_nouns import LayerNouns
from burn_import.structure.places import Places
from burn_import.structure.sequential import functions_after, sole_reader
from burn_ir.graph import Graph, Node

#: The names of a convolution and its norm in a module of their own.
NORMALIZED = ("conv", "norm")


class LayerNames:
    """The names of the layers of a graph, and whether they are the author's."""

    def __init__(self, graph: Graph, node_paths: Places) -> None:
        self.graph = graph
        self.layers = node_paths.layers
        self.nouns = LayerNouns(graph)
        self.layer_nodes = [node for node in graph.nodes if id(node) in self.layers]

    def are_generic(self) -> bool:
        """Return whether all layers are named by their operators."""
        return all(
            re.fullmatch(rf"{self.nouns.noun(n)}(_\d+)?", self.layers[id(n)][0])
            for n in self.layer_nodes
        )

    def are_numbered(self) -> bool:
        """Return whether the names are the author's, but no keys of modules."""
        if self.graph.constants.trained or any(n.scope for n in self.graph.nodes):
            return False
        names = {name for node in self.graph.nodes for name in node.inputs if name}
        constants = self.graph.constants
        # Upgrades of operators store axes under dotted names.
        stored = [n for n in names if n in constants and is_float(constants[n].dtype)]
        return not any(is_dotted(original(self.graph, name)) for name in stored)

    def common(self, blocks: Sequence[Sequence[Node]]) -> list[str]:
        """Return the names of the layers that equal blocks have, numbered in a block.

        The authors' names ``gconv1_2`` and ``gconv1_4`` in two blocks are ``gconv1``.
        """
        rows = [[node for node in nodes if id(node) in self.layers] for nodes in blocks]
        names = []
        for nodes in zip(*rows, strict=True):
            words = {self._without_number(node) for node in nodes}
            names.append(words.pop() if len(words) == 1 else self.nouns.noun(nodes[0]))
        return numbered(names)

    def of_block(self, nodes: Sequence[Node], is_generic: bool) -> list[str]:
        """Return names of the layers of a block, numbered in it."""
        name = self.nouns.noun if is_generic else self._without_number
        return numbered([name(node) for node in nodes])

    def normalized(self, node: Node) -> list[Node]:
        """Return a convolution, its norm and the function after it, or [].

        A layer with an author's name is not joined with others.
        """
        users, outputs = self.graph.users, set(self.graph.outputs)
        chain = [node, *sole_reader(node, users, outputs)]
        names = [self.layers.get(id(one), ()) for one in chain]
        if [one.op.onnx for one in chain] != ["Conv", "BatchNormalization"]:
            return []
        if not all(len(name) == 1 and is_leftover(name[0]) for name in names):
            return []
        return chain + functions_after(chain[-1], users, outputs, 1)

    def _without_number(self, node: Node) -> str:
        return re.sub(r"_\d+(?=_|$)", "", self.layers[id(node)][0])


def numbered(names: Iterable[str]) -> list[str]:
    """Return ``names``, numbered from the second layer of a name on."""
    numbers: Counter[str] = Counter()
    unique = []
    for name in names:
        numbers[name] += 1
        unique.append(f"{name}_{numbers[name]}" if numbers[name] > 1 else name)
    return unique

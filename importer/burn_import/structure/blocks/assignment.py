"""Assignment of the nodes of a flat graph to its blocks, as modules."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from burn_import.provenance.path_segments import Path
from burn_import.structure.blocks.branched import BranchedBlocks
from burn_import.structure.blocks.naming import NORMALIZED, LayerNames, numbered
from burn_import.structure.blocks.repeats import Repeats, layers_last
from burn_import.structure.places import Places
from burn_ir.graph import Graph, Node

#: The fewest normalized convolutions with the same function that become modules: with
#: fewer, their class is longer than the replaced code.
FEWEST_NORMALIZED = 8


def with_blocks(graph: Graph, node_paths: Places) -> Places:
    """Return ``node_paths`` with the blocks of a flat graph as modules.

    Names of a flat graph tell layers, such as ``gconv1_2``, but no modules.
    """
    names = LayerNames(graph, node_paths)
    is_nameless = names.are_generic()
    if not _is_flat(graph, node_paths) or not (is_nameless or names.are_numbered()):
        return node_paths
    run = _Assignment(graph, node_paths, names, is_nameless)
    run.assign_branched_blocks()
    run.assign_repeats()
    run.assign_convolutions()
    run.name_layers()
    return run.result


def _is_flat(graph: Graph, node_paths: Places) -> bool:
    """Return whether no node has a scope, and each layer runs once.

    Layers in the body of a loop or branch are in no block.
    """
    paths = list(node_paths.layers.values())
    flat = not any(node_paths.scopes.values())
    flat = flat and all(len(path) == 1 for path in paths)
    return flat and len(set(paths)) == len(paths)


class _Assignment:
    def __init__(
        self, graph: Graph, node_paths: Places, names: LayerNames, is_nameless: bool
    ) -> None:
        self.graph = graph
        self.node_paths = node_paths
        self.names = names
        self.is_nameless = is_nameless
        self.nodes = layers_last(graph, node_paths)
        self.result = Places(dict(node_paths.layers), dict(node_paths.scopes))
        #: The number of blocks and lists of them, and the names of layers beside them.
        self.list_count = 0
        self.layer_names = {path[0] for path in node_paths.layers.values()}

    def assign_branched_blocks(self) -> None:
        """Assign the nodes of convolutional blocks with branches."""
        if "Conv" not in self.graph.operators:
            return
        for blocks in BranchedBlocks(self.graph, self.nodes, self.node_paths).lists():
            is_list = len(blocks) > 1
            name = self._module_name("blocks" if is_list else "block")
            for number, block in enumerate(blocks):
                scope = (name, str(number)) if is_list else (name,)
                nodes = [self.nodes[position] for position in block.nodes]
                shortcut = [self.nodes[position] for position in block.shortcut]
                self._assign_block(nodes, scope, shortcut)

    def assign_repeats(self) -> None:
        """Assign the nodes of equal consecutive blocks that are in no block yet."""
        free = [not self.result.scopes[id(node)] for node in self.nodes]
        repeats = Repeats(self.graph, self.nodes, self.node_paths)
        for repeat in repeats.select_blocks(free):
            name = self._module_name("blocks")
            blocks = repeats.blocks(repeat)
            names = self.names.common(blocks)
            for block, nodes in enumerate(blocks):
                scope = (name, str(block))
                self._place(nodes, scope)
                self._name(nodes, [(*scope, layer_name) for layer_name in names])

    def assign_convolutions(self) -> None:
        """Assign convolutions with a norm and a function that are in no block."""
        chains = list(filter(None, map(self._free_chain, self.nodes)))
        counts = Counter(chain[-1].op.onnx for chain in chains)
        for chain in chains:
            if counts[chain[-1].op.onnx] < FEWEST_NORMALIZED:
                continue
            (name,) = self.node_paths.layers[id(chain[0])]
            numbered_name = re.sub(r"^.*?(?=_\d+$|$)", "conv_norm", name, count=1)
            is_taken = (numbered_name,) in self.result.scopes.values()
            is_taken |= numbered_name in self.layer_names
            path = (name if is_taken else numbered_name,)
            self._place(chain, path)
            self._name(chain, [(*path, layer) for layer in NORMALIZED])

    def name_layers(self) -> None:
        """Name the remaining layers of a graph without authors' names."""
        rest = [node for node in self.nodes if not self.result.scopes[id(node)]]
        rest = [node for node in rest if id(node) in self.node_paths.layers]
        if self.is_nameless:
            names = numbered(self.names.nouns.noun(node) for node in rest)
            self._name(rest, [(name,) for name in names])

    def _module_name(self, word: str) -> str:
        """Return ``word`` with the number of the block or list, if it is not the first.

        No layer has this name.
        """
        while True:
            self.list_count += 1
            name = word if self.list_count == 1 else f"{word}_{self.list_count}"
            if name not in self.layer_names:
                return name

    def _assign_block(
        self, nodes: Sequence[Node], scope: Path, shortcut: Sequence[Node]
    ) -> None:
        """Assign a block's nodes; a shortcut of two layers is a sequence."""
        self._place(nodes, scope)
        beside = set(map(id, shortcut))
        layers = [node for node in nodes if id(node) not in beside]
        layers = [node for node in layers if id(node) in self.node_paths.layers]
        names = self.names.of_block(layers, self.is_nameless)
        self._name(layers, [(*scope, name) for name in names])
        path = (*scope, "shortcut")
        paths = [(*path, str(number)) for number in range(len(shortcut))]
        self._name(shortcut, paths if len(paths) > 1 else [path] * len(paths))

    def _free_chain(self, node: Node) -> list[Node]:
        """Return a normalized convolution of which no node is in a block, or []."""
        chain = self.names.normalized(node)
        return [] if any(self.result.scopes[id(one)] for one in chain) else chain

    def _place(self, nodes: Sequence[Node], scope: Path) -> None:
        self.result.scopes.update((id(node), scope) for node in nodes)

    def _name(self, nodes: Sequence[Node], paths: Sequence[Path]) -> None:
        layers = [node for node in nodes if id(node) in self.node_paths.layers]
        self.result.layers.update(zip(map(id, layers), paths, strict=True))

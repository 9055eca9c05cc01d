"""Detection of convolutional blocks with branches in a graph without names of modules.

The blocks of a stage differ in their numbers of channels, in the stride and in the
shortcut, so they are no repetition. But each is a region from a value that two branches
read to their sum, with the operators of some other block. A chain with the operators of
a block's main branch is such a block without a sum.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass

from burn_import.provenance.path_segments import Path
from burn_import.structure.blocks.regions import Region, Regions
from burn_import.structure.places import Places
from burn_import.structure.sequential import functions_after
from burn_ir.graph import Graph, Node
from burn_ir.ops.conv import Conv

#: Minimum number of layers of a block.
FEWEST_LAYERS = 2
#: The most nodes of a block.
MOST_NODES = 64


@dataclass(frozen=True)
class ResidualBlock:
    """A block: the positions of its nodes, and those of a shortcut's layers."""

    nodes: tuple[int, ...]
    shortcut: tuple[int, ...] = ()


class ResidualBlocks:
    """The blocks with branches among ``nodes``, which are in topological order."""

    def __init__(self, graph: Graph, nodes: Sequence[Node], node_paths: Places) -> None:
        self.graph = graph
        self.nodes = nodes
        self.node_paths = node_paths
        self.regions = Regions(graph, nodes)
        self.kinds = [self._kind(node) for node in nodes]

    def blocks(self) -> list[ResidualBlock]:
        """Return the blocks in order; no node is in two of them."""
        regions = self._outermost()
        covered = {position for one in regions for position in one.members}
        blocks = [ResidualBlock(one.members, self._shortcut(one)) for one in regions]
        blocks += map(ResidualBlock, self._chains(regions, covered))
        blocks.sort(key=lambda block: block.nodes)
        return [self._with_function(block) for block in blocks]

    def lists(self) -> list[list[ResidualBlock]]:
        """Return the blocks, those of a chain in one list."""
        lists: list[list[ResidualBlock]] = []
        for block in self.blocks():
            if lists and self._follows(lists[-1][-1], block):
                lists[-1].append(block)
            else:
                lists.append([block])
        return lists

    def _outermost(self) -> list[Region]:
        """Return the outermost regions that recur, without those around others."""
        candidates = [one for one in self.regions if self._is_block(one)]
        recurring = Counter(map(self._signature, candidates))
        candidates = [one for one in candidates if recurring[self._signature(one)] > 1]
        candidates.sort(key=lambda one: (-len(one.members), one.join))
        covered = set[int]()
        chosen = []
        for one in candidates:
            if covered.isdisjoint(one.members):
                covered.update(one.members)
                chosen.append(one)
        return chosen

    def _is_block(self, region: Region) -> bool:
        nodes = [self.nodes[position] for position in region.members]
        layers = sum(id(node) in self.node_paths.layers for node in nodes)
        return (
            layers >= FEWEST_LAYERS
            and len(nodes) <= MOST_NODES
            and nodes[-1].op.onnx == "Add"
            and any(isinstance(node.op, Conv) for node in nodes)
        )

    def _signature(self, region: Region) -> Hashable:
        return tuple(self.kinds[position] for position in region.members)

    def _kind(self, node: Node) -> Hashable:
        """Return the operator; of a convolution also whether it mixes pixels, channels.

        A pointwise convolution is no depthwise one, whatever their channels are.
        """
        weight = self.graph.type(node.inputs[1]) if len(node.inputs) > 1 else None
        if not isinstance(node.op, Conv) or weight is None or weight.shape is None:
            return node.op.onnx
        _, channels, *kernel = weight.shape
        return node.op.onnx, channels == 1, all(extent == 1 for extent in kernel)

    def _chains(
        self, regions: Sequence[Region], covered: Collection[int]
    ) -> Iterator[tuple[int, ...]]:
        """Yield uncovered chains with the operators of a region's main branch."""
        forms = {
            tuple(self.kinds[position] for position in one.main_branch)
            for one in regions
            if one.fork in self.regions.before[one.join]
        }
        ordered = sorted(forms, key=len, reverse=True)
        start = 0
        while start < len(self.nodes):
            chain = self._chain(start, ordered, covered)
            if chain:
                yield chain
            start += len(chain) or 1

    def _chain(
        self, start: int, forms: Sequence[Sequence[Hashable]], covered: Collection[int]
    ) -> tuple[int, ...]:
        for form in forms:
            chain = tuple(range(start, start + len(form)))
            fits = tuple(self.kinds[start : start + len(form)]) == form
            if fits and not any(position in covered for position in chain):
                entries = {
                    maker
                    for position in chain
                    for maker in self.regions.before[position]
                    if maker < start
                }
                if len(entries) <= 1 and self.regions.is_closed(chain):
                    return chain
        return ()

    def _shortcut(self, region: Region) -> tuple[int, ...]:
        """Return the nodes of a branch with one layer, or one and its norm."""
        branches = [self._branch(one, region) for one in self._before(region.join)]
        if len(branches) != 2:
            return ()
        short, long = sorted(branches, key=len)
        is_short = len(short) <= 2 < len(long)
        is_short &= all(id(self.nodes[n]) in self.node_paths.layers for n in short)
        return tuple(sorted(short)) if is_short else ()

    def _before(self, position: int) -> list[int]:
        return self.regions.before[position]

    def _branch(self, last: int, region: Region) -> frozenset[int]:
        inside, branch, waiting = set(region.members), {last}, [last]
        while waiting:
            new = inside.intersection(self._before(waiting.pop())) - branch
            branch |= new
            waiting += new
        return frozenset(branch & inside)

    def _with_function(self, block: ResidualBlock) -> ResidualBlock:
        """Return ``block`` with the activation function of its sum."""
        users, outputs = self.graph.users, set(self.graph.outputs)
        last = self.nodes[block.nodes[-1]]
        after = functions_after(last, users, outputs, 1)
        added = tuple(self.regions.maker[node.output] for node in after)
        return ResidualBlock(block.nodes + added, block.shortcut)

    def _follows(self, one: ResidualBlock, other: ResidualBlock) -> bool:
        """Return whether ``other`` reads the result of ``one`` and no other value."""
        inside = set(other.nodes)
        entries = {m for n in other.nodes for m in self._before(n)} - inside
        return entries == {one.nodes[-1]}


def block_paths(lists: Sequence[Sequence[ResidualBlock]]) -> Iterator[Path]:
    """Yield a path for each block of ``lists``."""
    for number, blocks in enumerate(lists, 1):
        name = "blocks" if number == 1 else f"blocks_{number}"
        if len(blocks) == 1:
            yield (name.replace("blocks", "block"),)
        else:
            yield from ((name, str(index)) for index in range(len(blocks)))

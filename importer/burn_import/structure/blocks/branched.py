"""Detection of convolutional blocks in a graph without names of modules.

The blocks of a stage differ in their numbers of channels, in the stride and in the
shortcut, so they are no repetition. But a block with branches is a region from a value
that several nodes read to a sum or a concatenation, with the operators of some other
block. A chain with the operators of a block's main branch is such a block without a
sum, and chains that recur between branches are blocks too.
"""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass
from itertools import chain, takewhile

from burn_import.structure.blocks.chains import Chains
from burn_import.structure.blocks.kinds import Form, Positions, operator_kind
from burn_import.structure.blocks.regions import Region, Regions
from burn_import.structure.places import Places
from burn_ir.graph import Graph, Node
from burn_ir.ops.conv import Conv

#: Minimum number of layers of a block.
FEWEST_LAYERS = 2
#: The most nodes of a block.
MOST_NODES = 64
#: The most nodes without weights after the join of a block that belong to it.
MOST_FUNCTIONS = 4
#: Operators that join the branches of a block.
JOINS = ("Add", "Concat")


@dataclass(frozen=True)
class BranchedBlock:
    """A block: the positions of its nodes, and those of a shortcut's layers."""

    nodes: Positions
    shortcut: Positions = ()


class BranchedBlocks:
    """The convolutional blocks of ``nodes``, which are in topological order."""

    def __init__(self, graph: Graph, nodes: Sequence[Node], node_paths: Places) -> None:
        self.graph = graph
        self.nodes = nodes
        self.is_layer = [id(node) in node_paths.layers for node in nodes]
        self.regions = Regions(graph, nodes)
        self.kinds = [operator_kind(graph, node) for node in nodes]

    def lists(self) -> list[list[BranchedBlock]]:
        """Return the blocks in order, those that follow each other in one list."""
        lists: list[list[BranchedBlock]] = []
        for block in self._blocks():
            if lists and self._follows(lists[-1][-1], block):
                lists[-1].append(block)
            else:
                lists.append([block])
        return lists

    def _blocks(self) -> list[BranchedBlock]:
        """Return the blocks in order; no node is in two of them."""
        regions = self._outermost()
        covered = {position for one in regions for position in one.members}
        after = self._common(regions, self._functions_after, covered)
        covered.update(chain.from_iterable(after.values()))
        before = self._common(regions, self._chain_before, covered)
        before = {join: self._beginning(nodes) for join, nodes in before.items()}
        covered.update(chain.from_iterable(before.values()))
        blocks = []
        for one in regions:
            nodes = (*before[one.join], *one.members, *after[one.join])
            blocks.append(BranchedBlock(nodes, self._shortcut(one)))
        chains = Chains(self.graph, self.nodes, self.regions, self.is_layer, covered)
        for nodes in chains.with_forms(self._main_branches(regions)):
            blocks.append(BranchedBlock(nodes))
        return sorted(blocks, key=lambda block: block.nodes)

    def _common(
        self,
        regions: Sequence[Region],
        neighbours: Callable[[Region, Collection[int]], Positions],
        covered: Collection[int],
    ) -> dict[int, Positions]:
        """Return the first neighbours that all regions of a form have, by join."""
        families: dict[Hashable, dict[int, Positions]] = {}
        for one in regions:
            family = families.setdefault(self._form(one.members), {})
            family[one.join] = neighbours(one, covered)
        common = {}
        for family in families.values():
            forms = zip(*map(self._form, family.values()), strict=False)
            length = sum(1 for _ in takewhile(lambda form: len(set(form)) == 1, forms))
            common.update({join: nodes[:length] for join, nodes in family.items()})
        return common

    def _outermost(self) -> list[Region]:
        """Return the outermost regions that recur."""
        candidates = [one for one in self.regions if self._is_block(one)]
        forms = [self._form(one.members) for one in candidates]
        counts = Counter(forms)
        candidates = [
            one for one, form in zip(candidates, forms, strict=True) if counts[form] > 1
        ]
        candidates.sort(key=lambda one: (-len(one.members), one.join))
        covered = set[int]()
        chosen = []
        for one in candidates:
            if covered.isdisjoint(one.members):
                covered.update(one.members)
                chosen.append(one)
        return chosen

    def _is_block(self, region: Region) -> bool:
        """Return whether a region has the size and the operators of a block."""
        return (
            len(region.members) <= MOST_NODES
            and self.nodes[region.join].op.onnx in JOINS
            and self._layers(region.members) >= FEWEST_LAYERS
            and self._has_convolution(region.members)
        )

    def _layers(self, positions: Sequence[int]) -> int:
        return sum(self.is_layer[position] for position in positions)

    def _has_convolution(self, positions: Sequence[int]) -> bool:
        return any(isinstance(self.nodes[n].op, Conv) for n in positions)

    def _form(self, positions: Sequence[int]) -> Form:
        return tuple(self.kinds[position] for position in positions)

    def _functions_after(self, region: Region, covered: Collection[int]) -> Positions:
        """Return the chain of nodes without weights after a join."""
        functions: list[int] = []
        reader = self.regions.sole_reader(region.join)
        while reader is not None and len(functions) < MOST_FUNCTIONS:
            is_alone = len(self.regions.before[reader]) == 1
            if self.is_layer[reader] or reader in covered or not is_alone:
                break
            functions.append(reader)
            reader = self.regions.sole_reader(reader)
        return tuple(functions)

    def _beginning(self, chain: Positions) -> Positions:
        """Return a block's nodes before its fork, from a reversed chain.

        SqueezeNet's modules begin with a convolution, ShuffleNet's with a split.
        """
        while chain and not self._begins_block(chain[-1]):
            chain = chain[:-1]
        return chain[::-1]

    def _begins_block(self, position: int) -> bool:
        return self.is_layer[position] or len(self.nodes[position].outputs) > 1

    def _chain_before(self, region: Region, covered: Collection[int]) -> Positions:
        """Return the fork and the chain before it that nothing else reads, reversed."""
        if self.nodes[region.join].op.onnx != "Concat":
            return ()
        nodes: list[int] = []
        inside, position = set(region.members), region.fork
        while position >= 0 and position not in covered:
            if not inside.issuperset(self.regions.after[position]):
                break
            if len(self.regions.before[position]) > 1:
                break
            nodes.append(position)
            inside.add(position)
            position = self.regions.dominator[position]
        return tuple(nodes)

    def _main_branches(self, regions: Sequence[Region]) -> set[Form]:
        """Return the forms of the regions whose other branch is the identity."""
        return {
            self._form(one.members[:-1])
            for one in regions
            if one.fork in self.regions.before[one.join]
        }

    def _shortcut(self, region: Region) -> Positions:
        """Return the nodes of a branch with one layer, or one and its norm."""
        branches = [self._branch(n, region) for n in self.regions.before[region.join]]
        if len(branches) != 2 or self.nodes[region.join].op.onnx != "Add":
            return ()
        short, long = sorted(branches, key=len)
        is_short = len(short) <= 2 < len(long) and all(self.is_layer[n] for n in short)
        return tuple(sorted(short)) if is_short else ()

    def _branch(self, last: int, region: Region) -> frozenset[int]:
        """Return the nodes of ``region`` that compute the node ``last``."""
        inside, branch, waiting = set(region.members), {last}, [last]
        while waiting:
            new = inside.intersection(self.regions.before[waiting.pop()]) - branch
            branch |= new
            waiting += new
        return frozenset(branch & inside)

    def _follows(self, one: BranchedBlock, other: BranchedBlock) -> bool:
        """Return whether ``other`` reads the result of ``one`` and no other value."""
        before = self.regions.before
        entries = {m for n in other.nodes for m in before[n]} - set(other.nodes)
        return entries == {one.nodes[-1]}

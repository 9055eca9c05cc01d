"""Detection of convolutional blocks that are chains of nodes."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import chain

from burn_import.structure.blocks.kinds import Form, Positions, operator_kind
from burn_import.structure.blocks.periods import periodic_blocks
from burn_import.structure.blocks.regions import Regions
from burn_ir.graph import Graph, Node
from burn_ir.ops.conv import Conv, ConvTranspose
from burn_ir.ops.pool import Global, Pooling
from burn_ir.ops.resize import Resize, Upsample

#: The fewest chains of a form that are blocks.
FEWEST = 3
#: The fewest convolutions of a chain.
FEWEST_CONVOLUTIONS = 2
#: Operators that change the size of an image.
RESIZING = (Pooling, Global, ConvTranspose, Resize, Upsample)


class Chains:
    """The chains of ``nodes`` that are blocks, without the positions in ``covered``."""

    def __init__(
        self,
        graph: Graph,
        nodes: Sequence[Node],
        regions: Regions,
        is_layer: Sequence[bool],
        covered: Collection[int],
    ) -> None:
        self.regions = regions
        self.is_layer = is_layer
        self.covered = set(covered)
        self.kinds = [operator_kind(graph, node) for node in nodes]
        self.is_convolution = [isinstance(node.op, Conv) for node in nodes]
        self.is_resizing = [isinstance(node.op, RESIZING) for node in nodes]

    def with_forms(self, forms: Collection[Form]) -> list[Positions]:
        """Return the chains with one of ``forms``, then those that recur."""
        blocks = list(self._matches(forms))
        runs = list(self.regions.runs(self.covered))
        periods = [block for run in runs for block in self._periods(run)]
        self.covered.update(chain.from_iterable(periods))
        return blocks + periods + list(self._recurring(runs))

    def _matches(self, forms: Collection[Form]) -> Iterator[Positions]:
        ordered = sorted(forms, key=len, reverse=True)
        for start in range(len(self.kinds)):
            matches = (self._match(start, form) for form in ordered)
            block = next(filter(None, matches), ())
            self.covered.update(block)
            if block:
                yield block

    def _match(self, start: int, form: Form) -> Positions:
        """Return the nodes from ``start`` on if they are a chain of this form."""
        if self.kinds[start] != form[0]:
            return ()
        nodes = tuple(range(start, min(start + len(form), len(self.kinds))))
        if self._form(nodes) != form or not self.covered.isdisjoint(nodes):
            return ()
        before = self.regions.before
        entries = {maker for n in nodes for maker in before[n] if maker < start}
        return nodes if len(entries) <= 1 and self.regions.is_closed(nodes) else ()

    def _periods(self, run: Positions) -> Iterator[Positions]:
        """Yield the blocks of a chain in which the same operators recur."""
        blocks = periodic_blocks(
            self._form(run),
            [self.is_convolution[position] for position in run],
            [self.is_resizing[position] for position in run],
        )
        yield from (run[block.start : block.stop] for block in blocks)

    def _recurring(self, runs: Sequence[Positions]) -> Iterator[Positions]:
        """Yield the parts of chains with forms that recur.

        A part may continue with other nodes, such as the head of a network.
        """
        parts = [part for run in runs for part in self._parts(run)]
        counts = Counter(map(self._form, parts))
        recurring = [form for form, count in counts.items() if count >= FEWEST]
        recurring.sort(key=len, reverse=True)
        for part in parts:
            form = self._form(part)
            lengths = (len(one) for one in recurring if form[: len(one)] == one)
            length = next(lengths, 0)
            if length:
                yield part[:length]

    def _parts(self, run: Positions) -> Iterator[Positions]:
        """Yield the parts of a chain with several convolutions of images of one size.

        They begin with a layer.
        """
        parts: list[list[int]] = [[]]
        for position in run:
            if position in self.covered or self.is_resizing[position]:
                parts.append([])
            elif parts[-1] or self.is_layer[position]:
                parts[-1].append(position)
        for part in parts:
            if sum(self.is_convolution[n] for n in part) >= FEWEST_CONVOLUTIONS:
                yield tuple(part)

    def _form(self, positions: Sequence[int]) -> Form:
        return tuple(self.kinds[position] for position in positions)

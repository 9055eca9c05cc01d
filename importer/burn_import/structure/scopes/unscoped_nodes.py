"""Scopes of nodes without weights for which a file records no scope.

The scopes of layers are known from the names of their weights. A residual sum, a
concatenation and a pooling belong where the fewest values cross the border of a module.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import product

from burn_import.provenance.path_segments import Path, common
from burn_import.provenance.weight_owners import is_parameter_of_paddle, original
from burn_ir.graph import Graph, Node
from burn_ir.ops.microsoft.attention import Attention
from burn_ir.ops.microsoft.integer import QAttention
from burn_ir.ops.pool import AveragePool, GlobalAveragePool, MaxPool
from burn_ir.ops.reduction import ReduceMean

#: The number of nodes without weights that are followed from a value to a layer.
_DEPTH = 8
#: Operators of onnxruntime that have the weights of layers, but are no layers.
_FUSED = (Attention, QAttention)
_POOLINGS = (AveragePool, GlobalAveragePool, MaxPool)


class UnscopedNodes:
    """Scopes of nodes without weights, from the layers before and after them."""

    def __init__(
        self,
        graph: Graph,
        layers: Mapping[int, Path],
        recorded_scope: Callable[[Node], Path],
    ) -> None:
        self.graph = graph
        self.layers = layers
        self.recorded_scope = recorded_scope
        #: Whether other nodes have scopes, so that modules inside of modules are known.
        self.has_scopes = any(node.scope for node in graph.nodes)
        self.users = graph.users
        self.producers = graph.producers
        self.next_scopes: dict[str, frozenset[Path]] = {}
        for node in reversed(graph.nodes):
            for name in filter(None, node.inputs):
                scopes = self.next_scopes.get(name, frozenset())
                self.next_scopes[name] = scopes | self._scopes_after(node)

    def _scopes_after(self, node: Node) -> frozenset[Path]:
        """Return the scopes of the layers that read ``node``, or of itself.

        Extents of shapes are not followed.
        """
        if id(node) in self.layers:
            return frozenset({self.layers[id(node)][:-1]})
        results = [name for name in node.outputs if name is not None]
        after = [
            self.next_scopes.get(name, frozenset())
            for name in results
            if self.graph.types[name].known is None
        ]
        return frozenset[Path]().union(*after)

    def scope(self, node: Node, sources: Mapping[str, Path]) -> Path:
        """Return the scope of a node with operands of the scopes ``sources``.

        An operand that a module reads anyway may be read there once more: the sum of
        a residual block is in the block. A pooling whose result leaves its module is
        outside, as is a fused attention with the weights of another module, and a
        split whose results are all read elsewhere: one value leaves the module then.
        """
        if not sources:
            return ()
        whole = self._inner_scope(sources)
        after = self._scopes_after(node)
        if not whole or any(scope[: len(whole)] == whole for scope in after):
            return whole
        if self._is_pooling(node):
            return whole[:-1]
        if len([name for name in node.outputs if name in self.users]) > 1:
            readers = self._reader_scopes(node)
            if not any(scope[: len(whole)] == whole for scope in readers):
                return common([whole, *readers])
        return common([whole, *after]) if isinstance(node.op, _FUSED) else whole

    def _reader_scopes(self, node: Node) -> set[Path]:
        """Return the scopes of the nodes that read the results of ``node``."""
        scopes: set[Path] = set()
        for user in (
            u for name in node.outputs for u in self.users.get(name or "", ())
        ):
            if id(user) in self.layers or not user.scope:
                scopes |= self._scopes_after(user)
            else:
                scopes.add(self.recorded_scope(user))
        return scopes

    def between(self, node: Node, sources: Mapping[str, Path], whole: Path) -> Path:
        """Return the module that computes an operand and reads the result.

        It is inside of ``whole``, the scope of all operands, and reads the others
        anyway. Outside of it, the node would cut the module in two. Without such a
        module: ``whole``.
        """
        pairs = product(set(sources.values()), self._scopes_after(node))
        inner = {scope for pair in pairs if len(scope := common(pair)) > len(whole)}
        for scope in sorted(inner, key=lambda one: (-len(one), one)):
            others = [n for n, own in sources.items() if own[: len(scope)] != scope]
            if all(self._is_available(name, scope) for name in others):
                return scope
        return whole

    def _is_pooling(self, node: Node) -> bool:
        """Return whether a node pools: also as a mean over two axes or more."""
        if not isinstance(node.op, ReduceMean):
            return isinstance(node.op, _POOLINGS)
        operand, result = node.inputs[0], node.outputs[0]
        assert operand is not None and result is not None
        before, after = (self.graph.types[name].shape for name in (operand, result))
        if before is None or after is None:
            return False
        if len(after) == len(before):
            return sum(m != n for m, n in zip(before, after, strict=True)) > 1
        return len(before) - len(after) > 1

    def _inner_scope(self, sources: Mapping[str, Path]) -> Path:
        """Return the innermost scope that has or reads all operands."""
        whole = common(list(sources.values()))
        inner = {
            scope[:length]
            for scope in sources.values()
            for length in range(len(whole) + 1, len(scope) + 1)
            if self.has_scopes or length == len(scope)
        }
        for scope in sorted(inner, key=lambda one: (-len(one), one)):
            others = [n for n, own in sources.items() if own[: len(scope)] != scope]
            if all(self._is_available(name, scope) for name in others):
                return scope
        return whole

    def _is_available(self, name: str, scope: Path, depth: int = _DEPTH) -> bool:
        """Return whether a module reads ``name``, or all that it is computed from."""
        readers = self.next_scopes.get(name, frozenset())
        if scope in readers:
            return True
        if self.has_scopes and any(s[: len(scope)] == scope for s in readers):
            return True
        node = self.producers.get(name)
        if node is None or id(node) in self.layers or depth == 0:
            return False
        operands = list(self._operands(node))
        return bool(operands) and all(
            self._is_available(operand, scope, depth - 1) for operand in operands
        )

    def _operands(self, node: Node) -> Iterator[str]:
        """Yield the operands of a node that depend on the inputs of the model."""
        for name in filter(None, node.inputs):
            if (
                name not in self.graph.constants
                and self.graph.types[name].known is None
            ):
                yield name

    def sunk(self, scopes: Mapping[int, Path]) -> dict[int, Path]:
        """Return ``scopes`` with nodes in the only module that reads their results.

        The module must read their operands anyway: the pooling of a branch is called
        with its convolution.
        """
        scopes, outputs = dict(scopes), set(self.graph.outputs)
        for node in reversed(self.graph.nodes):
            if id(node) in self.layers or node.op.bodies():
                continue
            readers = [
                scopes[id(user)]
                for name in filter(None, node.outputs)
                for user in self.users.get(name, ())
            ]
            inner = common(readers) if readers else ()
            is_inside = scopes[id(node)][: len(inner)] == inner
            if is_inside or not outputs.isdisjoint(node.outputs):
                continue
            if self._has_own_readers(node, inner, scopes):
                scopes[id(node)] = inner
        return scopes

    def _has_own_readers(
        self, node: Node, scope: Path, scopes: Mapping[int, Path]
    ) -> bool:
        """Return whether other nodes inside ``scope`` read all operands of ``node``."""
        operands = list(self._operands(node))
        return bool(operands) and all(
            any(
                user is not node and scopes[id(user)][: len(scope)] == scope
                for user in self.users[name]
            )
            for name in operands
        )


def with_affine_scopes(graph: Graph, scopes: Mapping[int, Path]) -> dict[int, Path]:
    """Return ``scopes`` with a module for a product and a sum with trained numbers.

    PaddlePaddle names both after their layer: ``lab_3.w_0`` scales the value that
    ``lab_3.w_1`` is added to.
    """
    scopes, counts = dict(scopes), Counter[Path]()
    outputs = set(graph.outputs)
    for node in graph.nodes:
        prefix, (after, *others) = _number_owner(graph, node), _readers(graph, node)
        if (
            not prefix
            or others
            or after is None
            or not outputs.isdisjoint(node.outputs)
        ):
            continue
        around = scopes[id(node)]
        is_pair = (node.op.onnx, after.op.onnx) == ("Mul", "Add")
        is_pair = is_pair and _number_owner(graph, after) == prefix
        if is_pair and scopes[id(after)] == around:
            counts[around] += 1
            name = f"affine_{counts[around]}" if counts[around] > 1 else "affine"
            scopes[id(node)] = scopes[id(after)] = (*around, name)
    return scopes


def _readers(graph: Graph, node: Node) -> list[Node | None]:
    """Return the nodes that read the first result of ``node``; [None] if none do."""
    return [*graph.users.get(node.outputs[0] or "", ())] or [None]


def _number_owner(graph: Graph, node: Node) -> str:
    """Return the layer in the name of a trained number that a node reads, or ""."""
    stored = [n for n in node.inputs if n is not None and n in graph.constants]
    names = [original(graph, n) for n in stored if graph.constants[n].size == 1]
    owners = [n.rpartition(".")[0] for n in names if is_parameter_of_paddle(n)]
    return owners[0] if len(owners) == 1 else ""

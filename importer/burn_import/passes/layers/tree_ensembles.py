"""Folds functions of a decision tree into its leaves; merges sums of trees."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from burn import Tensor
from burn.backend.cpu import HOST
from burn.dtypes import is_float
from burn_import.provenance.trainable import is_learned
from burn_import.provenance.weight_owners import is_authored
from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import common_scope, with_nodes
from burn_ir.error_context import OR_MISSING
from burn_ir.evaluate import run_node
from burn_ir.graph import Graph, Node
from burn_ir.ops.ml.trees import Trees
from burn_ir.types import Array

#: Operators of each element alone; all but their operands from the tree are constants.
POINTWISE = frozenset(
    {"Abs", "Add", "And", "Cast", "Ceil", "Clip", "Div", "Equal", "Exp", "Floor"}
    | {"Greater", "GreaterOrEqual", "Identity", "Less", "LessOrEqual", "Log", "Lookup"}
    | {"Max", "Min", "Mul", "Neg", "Not", "Or", "Pow", "Reciprocal", "Relu", "Round"}
    | {"Sigmoid", "Sign", "Sqrt", "Sub", "Tanh", "Where", "Xor"}
)
#: The operands of a tree before its leaf weights, and the first optional one.
_LEAF_TARGETS, _LEAF_WEIGHTS, _OPTIONAL = 6, 7, 8


def tree_ensembles(graph: Graph) -> Graph:
    """Return ``graph`` with fewer, larger tree ensembles.

    An isolation forest computes the depth of a leaf from the leaf's number, tree by
    tree: a function of each element of a tree's result is folded into the weights of
    its leaves. A sum of ensembles with the same features becomes one ensemble, and
    trees read columns of a matrix without a ``Gather``.
    """
    if "Trees" not in graph.operators:
        return graph
    rewriter = _Rewriter(Dataflow(graph))
    return with_nodes(graph, [rewriter.rewrite(node) for node in graph.nodes])


@dataclass
class _Rewriter:
    flow: Dataflow
    #: The tree node that replaces the node of a result.
    folded: dict[str, Node] = field(default_factory=dict)

    def rewrite(self, node: Node) -> Node:
        """Return ``node``, or the tree ensemble that replaces it."""
        new = self.folded.get(node.output) if len(node.outputs) == 1 else None
        if new is None and isinstance(node.op, Trees):
            new = self.with_columns(node)
            self.fold_function(new)
        elif new is None and node.op.onnx in ("Add", "Sum") and not node.op.domain:
            new = self.merged_sum(node)
        if new is None:
            return node
        self.flow.producers[node.output] = new
        return new

    def with_columns(self, tree: Node) -> Node:
        """Return ``tree`` that reads a matrix without a ``Gather`` of its columns."""
        gather = self.flow.made_by(tree.inputs[0], "Gather")
        features = self.flow.stored(tree.inputs[2])
        if gather is None or features is None:
            return tree
        columns = self.flow.stored(gather.inputs[1])
        shape = self.flow.extents(gather.inputs[0])
        if columns is None or columns.ndim != 1 or len(shape) != 2:
            return tree
        is_inside = isinstance(shape[1], int) and features.max(initial=0) < columns.size
        if gather.op.attrs()["axis"] not in (1, -1) or not is_inside:
            return tree
        columns = columns.astype(np.int64)
        columns = np.where(columns < 0, columns + int(shape[1]), columns)
        name = self.store(f"{tree.output}.features", columns[features])
        inputs = (gather.inputs[0], tree.inputs[1], name, *tree.inputs[3:])
        return replace(tree, inputs=inputs)

    def fold_function(self, tree: Node) -> None:
        """Record the tree that replaces the only result of functions of ``tree``."""
        weights = self.leaf_values(tree)
        if weights is None:
            return
        nodes = self.functions(tree)
        names = {tree.output, *(node.output for node in nodes)}
        among = {id(node) for node in nodes}
        exits = [
            name
            for name in names
            if name in self.flow.outputs
            or any(id(user) not in among for user in self.flow.users.get(name, ()))
        ]
        if len(exits) != 1 or exits[0] == tree.output:
            return
        values = self.evaluate(nodes, tree.output, weights, exits[0])
        if values is None or values.dtype != weights.dtype:
            return
        targets = self.store(f"{exits[0]}.targets", np.zeros(values.shape, np.int64))
        leaves = self.store(f"{exits[0]}.weights", values)
        inputs = (*tree.inputs[:_LEAF_TARGETS], targets, leaves, *tree.inputs[8:])
        self.folded[exits[0]] = replace(tree, inputs=inputs, outputs=(exits[0],))

    def leaf_values(self, tree: Node) -> Array | None:
        """Return the result [leaves, 1] at each leaf; None for several trees."""
        arrays = [self.flow.stored(name) for name in tree.inputs[1:_OPTIONAL]]
        op = tree.op
        if not isinstance(op, Trees) or op.targets != 1 or op.narrow:
            return None
        if any(array is None for array in arrays) or len(tree.inputs) > _OPTIONAL + 1:
            return None
        roots, targets, weights = arrays[0], arrays[5], arrays[6]
        assert roots is not None and targets is not None and weights is not None
        if len(roots) != 1 or weights.shape[1:] != (1,):
            return None
        return np.where(targets == 0, weights, np.zeros((), weights.dtype))

    def functions(self, tree: Node) -> list[Node]:
        """Return the nodes whose results depend on a tree's result alone, in order."""
        names = {tree.output}
        nodes: list[Node] = []
        shape = self.flow.extents(tree.output)
        for node in self.flow.graph.nodes:
            if not names.isdisjoint(node.inputs) and self.is_function(node, names):
                is_same = self.flow.extents(node.output) == shape
                nodes += [node] if is_same else []
                names |= {node.output} if is_same else set()
        return nodes

    def is_function(self, node: Node, names: set[str]) -> bool:
        """Return whether ``node`` computes each element from one of ``names``."""
        if node.op.onnx not in POINTWISE or len(node.outputs) != 1:
            return False
        if node.op.onnx == "Lookup":
            tables = map(self.flow.stored, node.inputs[1:])
            return all(table is not None for table in tables)
        return all(name in names or self.is_number(name) for name in node.inputs)

    def is_number(self, name: str | None) -> bool:
        """Return whether an operand is missing, or a constant of one element."""
        array = self.flow.stored(name)
        if name is None or array is None:
            return name is None
        graph = self.flow.graph
        is_owned = is_learned(graph, name) or is_authored(graph, name)
        is_weight = is_float(array.dtype) and is_owned
        return array.size == 1 and not is_weight

    def evaluate(
        self, nodes: Sequence[Node], name: str, weights: Array, result: str
    ) -> Array | None:
        """Return ``result`` where the value ``name`` is ``weights``."""
        values: dict[str | None, Tensor | None] = {
            None: None,
            name: Tensor(weights, HOST),
        }
        for node in nodes:
            for operand in node.inputs:
                array = self.flow.stored(operand)
                if operand not in values and array is not None:
                    values[operand] = Tensor(array, HOST)
            try:
                with np.errstate(all="ignore"):
                    (values[node.output],) = run_node(
                        node, [values[operand] for operand in node.inputs]
                    )
            except OR_MISSING:
                return None
        value = values[result]
        return None if value is None else np.asarray(value.numpy())

    def merged_sum(self, node: Node) -> Node | None:
        """Return one ensemble for a sum of ensembles, None for other sums."""
        trees = [self.flow.producers.get(str(name)) for name in node.inputs]
        own = [tree for tree in trees if tree is not None and self.is_sum(tree)]
        is_apart = len(set(node.inputs)) == len(node.inputs)
        if len(own) < len(trees) or len(own) < 2 or not is_apart:
            return None
        ops = {(tree.inputs[0], tree.op) for tree in own}
        readers = [self.flow.users.get(tree.output, ()) for tree in own]
        if len(ops) > 1 or any(len(users) != 1 for users in readers):
            return None
        arrays = [self.arrays(tree) for tree in own]
        if any(one is None for one in arrays) or len(_dtypes(arrays)) > 1:
            return None
        merged = _join_trees([one for one in arrays if one is not None])
        names = [self.store(f"tree_ensemble.{key}", a) for key, a in merged.items()]
        scope, classes = common_scope(*own)
        inputs = (own[0].inputs[0], *names)
        return replace(node, op=own[0].op, inputs=inputs, scope=scope, classes=classes)

    def is_sum(self, node: Node) -> bool:
        """Return whether a node is an ensemble that only a sum reads."""
        is_summed = isinstance(node.op, Trees) and node.op.aggregate == "sum"
        return is_summed and node.output not in self.flow.outputs

    def arrays(self, tree: Node) -> dict[str, Array] | None:
        """Return the arrays of an ensemble; None if it has optional or unknown ones."""
        keys = ("roots", "features", "modes", "splits", "links", "targets", "weights")
        stored = [self.flow.stored(name) for name in tree.inputs[1:]]
        arrays = [array for array in stored if array is not None]
        if len(arrays) != len(keys) or len(stored) != len(keys):
            return None
        return dict(zip(keys, arrays, strict=True))

    def store(self, name: str, array: Array) -> str:
        """Store an array of a new ensemble; return its name."""
        return self.flow.graph.constants.add(self.flow.fresh(name), array)


def _dtypes(ensembles: Sequence[Mapping[str, Array] | None]) -> set[object]:
    """Return the dtypes and widths of leaves of several ensembles."""
    return {
        (one["splits"].dtype, one["weights"].dtype, one["weights"].shape[1])
        for one in ensembles
        if one is not None
    }


def _join_trees(ensembles: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
    """Return the arrays of all trees, with branches and leaves numbered anew."""
    branches = np.cumsum([0, *(len(one["features"]) for one in ensembles)])
    leaves = np.cumsum([0, *(len(one["weights"]) for one in ensembles)])
    shifted = [
        {
            **one,
            **{
                key: np.where(one[key] >= 0, one[key] + branch, one[key] - leaf)
                for key in ("roots", "links")
            },
        }
        for one, branch, leaf in zip(ensembles, branches, leaves, strict=False)
    ]
    return {key: np.concatenate([one[key] for one in shifted]) for key in ensembles[0]}

"""Decision tree ensembles."""

from __future__ import annotations

from typing import Literal

import numpy as np

from burn import dtypes, ops
from burn.dtypes import DType, float32, float64
from burn_ir.dim import unnamed
from burn_ir.errors import InvalidOperand
from burn_ir.op import Layer, Op, Type, Value, operator
from burn_ir.ops.ml.forest import (
    MODES,
    Entries,
    Forest,
    Nodes,
    checked,
    first_of_each_leaf,
    from_branches,
    from_nodes,
    same_length,
)
from burn_ir.ops.ml.rewriting import (
    POST_TRANSFORMS,
    Replaced,
    Step,
    burn_step,
    chain,
    matrix,
    numbers,
    post_transform_steps,
    store_weight,
)
from burn_ir.ops.ml.scores import classified, labels_of
from burn_ir.ops.options import non_default
from burn_ir.types import Array
from burn_ir.upgrade import Draft

AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
Aggregate = Literal["sum", "average", "min", "max"]


@operator
class Trees(Op, onnx="Trees", versions=(1,), domain="burn"):
    """Scores [samples, targets] of decision trees: ``ops.tree_ensemble``.

    With ``narrow`` they are cast to float32.
    """

    targets: int = 1
    aggregate: Aggregate = "sum"
    narrow: int = 0

    def infer(
        self,
        x: Type,
        roots: Type,
        features: Type,
        modes: Type,
        splits: Type,
        links: Type,
        leaf_targets: Type,
        leaf_weights: Type,
        missing: Type | None = None,
        base_values: Type | None = None,
    ) -> Type:
        dtype = float32 if self.narrow else leaf_weights.dtype
        if x.shape is None:
            return Type(dtype, (unnamed(), self.targets))
        if len(x.shape) != 2:
            raise InvalidOperand(f"expected a matrix, got {x.name}")
        width, indices = x.shape[1], features.known
        if (
            isinstance(width, int)
            and indices is not None
            and indices.max(initial=0) >= max(width, 1)
        ):
            raise InvalidOperand(
                f"expected {int(indices.max()) + 1} or more features, got {x.name}"
            )
        return Type(dtype, (x.shape[0], self.targets))

    def lower(self, x: Value, *arrays: Value) -> Value:
        options = non_default(
            targets=(self.targets, 1), aggregate=(self.aggregate, "sum")
        )
        scores = ops.tree_ensemble(x, *arrays, **options)
        return scores.cast(float32) if self.narrow else scores

    def layer(self, x: Type, *arrays: Type | None) -> Layer | None:
        contents = [None if a is None else a.known for a in arrays]
        contents += [None] * (9 - len(contents))
        if any(k is None for k in contents[:7]):
            return None
        roots, features, _, splits, _, leaf_targets, weights, missing, base = contents
        if splits is None or splits.dtype != float32 or weights is None:
            return None
        assert roots is not None and features is not None and leaf_targets is not None
        options: dict[str, object] = {
            "trees": len(roots),
            "branches": len(features),
            "leaves": len(weights),
        }
        if self.targets > 1:
            options["targets"] = self.targets
        if weights.shape[1] > 1:
            options["leaf_width"] = weights.shape[1]
        if self.aggregate != "sum":
            options["aggregate"] = self.aggregate
        options |= {"missing": True} if missing is not None else {}
        options |= {"base_values": True} if base is not None else {}
        names = ["roots", "features", "modes", "splits", "links", "leaf_targets"]
        names += ["leaf_weights", "missing", "base_values"]
        positions = {
            name: i
            for i, (name, array) in enumerate(zip(names, contents, strict=True), 1)
            if array is not None
        }
        tables = frozenset(positions) - {"splits", "leaf_weights", "base_values"}
        return Layer("TreeEnsemble", (), options, positions, tables=tables)


def trees(
    draft: Draft,
    forest: Forest,
    base: Array | None,
    targets: int,
    aggregate: str,
    single: bool = False,
) -> Step:
    """Return the step that evaluates ``forest``, with stored arrays.

    With ``single`` the result is float32 whatever the weights are.
    """
    arrays = {**checked(forest, targets).operands(), "base_values": base}
    names = [
        None if array is None else store_weight(draft, "trees", name, array)
        for name, array in arrays.items()
    ]
    while names[-1] is None:
        names.pop()
    attrs = {"targets": targets, "aggregate": aggregate.lower()}
    if single and forest.leaf_weights.dtype != float32:
        attrs["narrow"] = 1
    return burn_step("Trees", *names, **attrs)


@operator
class TreeEnsemble(
    Replaced, Op, onnx="TreeEnsemble", versions=(5,), domain="ai.onnx.ml"
):
    tree_roots: tuple[int, ...]
    nodes_modes: Array
    leaf_weights: Array
    leaf_targetids: tuple[int, ...]
    nodes_falsenodeids: tuple[int, ...]
    nodes_trueleafs: tuple[int, ...]
    nodes_featureids: tuple[int, ...]
    nodes_splits: Array
    nodes_falseleafs: tuple[int, ...]
    nodes_truenodeids: tuple[int, ...]
    aggregate_function: Literal[0, 1, 2, 3] = 1
    post_transform: Literal[0, 1, 2, 3, 4] = 0
    nodes_hitrates: Array | None = None
    nodes_missing_value_tracks_true: tuple[int, ...] | None = None
    n_targets: int | None = None
    membership_values: Array | None = None

    def replaced(self, draft: Draft) -> Draft:
        dtype = draft.type(0).dtype
        if not dtypes.is_float(dtype):
            raise InvalidOperand(f"expected a floating dtype, got {draft.type(0).name}")
        targets = self.n_targets
        if targets is None:
            targets = max(self.leaf_targetids, default=0) + 1
        aggregate = AGGREGATES[self.aggregate_function]
        steps = [trees(draft, self.forest(dtype), None, targets, aggregate)]
        steps += _transformed(POST_TRANSFORMS[self.post_transform], targets)
        return chain(draft, matrix(draft), steps)

    def forest(self, dtype: DType) -> Forest:
        """Return the arrays of the trees.

        Raises:
            InvalidOperand: the lists do not match.
        """
        lists = {
            name: np.asarray(getattr(self, name)).reshape(-1)
            for name in ("nodes_modes", "nodes_splits", "nodes_featureids")
        }
        ids = {
            name: np.array(getattr(self, name), np.int64)
            for name in (
                "nodes_truenodeids",
                "nodes_falsenodeids",
                "nodes_trueleafs",
                "nodes_falseleafs",
            )
        }
        count = same_length(**lists, **ids)
        modes = lists["nodes_modes"].astype(np.uint8)
        if modes.max(initial=0) >= len(MODES):
            raise InvalidOperand(f"expected modes up to {len(MODES) - 1}, got {modes}")
        weights = np.asarray(self.leaf_weights).reshape(-1).astype(dtype)
        same_length(leaf_weights=weights, leaf_targetids=self.leaf_targetids)
        tracks = self.nodes_missing_value_tracks_true or ()
        members = self.membership_values
        return from_branches(
            np.array(self.tree_roots, np.int64),
            lists["nodes_featureids"].astype(np.int64),
            modes,
            lists["nodes_splits"].astype(dtype),
            (ids["nodes_truenodeids"], ids["nodes_trueleafs"]),
            (ids["nodes_falsenodeids"], ids["nodes_falseleafs"]),
            (np.array(self.leaf_targetids, np.int64), weights),
            np.array(tracks, bool) if len(tracks) == count else None,
            None if members is None else np.asarray(members).astype(np.float64),
        )


def _transformed(name: str, targets: int) -> list[Step]:
    """Return the steps of a post transform, only probit for a single target."""
    steps = post_transform_steps(name)
    return steps if targets > 1 or name == "PROBIT" else []


@operator
class Listed:
    """The attributes of both older operators, at their newest version."""

    nodes_treeids: tuple[int, ...] | None = None
    nodes_nodeids: tuple[int, ...] | None = None
    nodes_featureids: tuple[int, ...] | None = None
    nodes_modes: tuple[str, ...] | None = None
    nodes_values: tuple[float, ...] | None = None
    nodes_values_as_tensor: Array | None = None
    nodes_hitrates: tuple[float, ...] | None = None
    nodes_hitrates_as_tensor: Array | None = None
    nodes_truenodeids: tuple[int, ...] | None = None
    nodes_falsenodeids: tuple[int, ...] | None = None
    nodes_missing_value_tracks_true: tuple[int, ...] | None = None
    base_values: tuple[float, ...] | None = None
    base_values_as_tensor: Array | None = None
    post_transform: Literal["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"] = (
        "NONE"
    )

    def nodes(self, entries: Entries, dtype: DType) -> Forest:
        """Return the arrays of the trees; ``entries`` are as for ``from_nodes``."""
        values = numbers(
            self.nodes_values, self.nodes_values_as_tensor, "nodes_values", dtype
        )
        nodes = Nodes(
            self.nodes_treeids or (),
            self.nodes_nodeids or (),
            self.nodes_featureids or (),
            self.nodes_modes or (),
            np.zeros(0, dtype) if values is None else values,
            self.nodes_truenodeids or (),
            self.nodes_falsenodeids or (),
            self.nodes_missing_value_tracks_true or (),
        )
        return from_nodes(nodes, entries)

    def base(self, targets: int, dtype: DType) -> Array | None:
        """Return the base values, one for each target.

        Raises:
            InvalidOperand: the number differs.
        """
        base = numbers(
            self.base_values, self.base_values_as_tensor, "base_values", dtype
        )
        if base is not None and len(base) != targets:
            raise InvalidOperand(f"expected {targets} base values, got {len(base)}")
        return base


def computed(draft: Draft) -> DType:
    """Return the dtype of feature comparisons and weight sums."""
    return float64 if draft.type(0).dtype == float64 else float32


@operator
class TreeEnsembleRegressor(
    Listed,
    Replaced,
    Op,
    onnx="TreeEnsembleRegressor",
    versions=(1, 3, 5),
    domain="ai.onnx.ml",
):
    """A tree regressor.

    The specification leaves open what a leaf with several weights for the only target
    means. onnxruntime takes the first, and skl2onnx relies on that: it lists the leaf
    numbers of a classifier once for each class.
    """

    aggregate_function: Literal["AVERAGE", "SUM", "MIN", "MAX"] = "SUM"
    n_targets: int | None = None
    target_treeids: tuple[int, ...] | None = None
    target_nodeids: tuple[int, ...] | None = None
    target_ids: tuple[int, ...] | None = None
    target_weights: tuple[float, ...] | None = None
    target_weights_as_tensor: Array | None = None

    def replaced(self, draft: Draft) -> Draft:
        dtype = computed(draft)
        weights = numbers(
            self.target_weights, self.target_weights_as_tensor, "target_weights", dtype
        )
        ids = self.target_ids or ()
        filled = np.zeros(0, dtype) if weights is None else weights
        targets = max(ids, default=0) + 1 if self.n_targets is None else self.n_targets
        leaves = (self.target_treeids or (), self.target_nodeids or (), ids, filled)
        entries: Entries = first_of_each_leaf(leaves) if targets == 1 else leaves
        forest = self.nodes(entries, dtype)
        base = self.base(targets, dtype)
        steps = [trees(draft, forest, base, targets, self.aggregate_function, True)]
        steps += _transformed(self.post_transform, targets)
        return chain(draft, matrix(draft), steps)


@operator
class TreeEnsembleClassifier(
    Listed,
    Replaced,
    Op,
    onnx="TreeEnsembleClassifier",
    versions=(1, 3, 5),
    domain="ai.onnx.ml",
):
    """A tree classifier.

    If the leaves of a binary classifier name only one class, its score alone
    decides: the class is chosen above 0.5 if no weight is negative, else above 0.
    The specification leaves this open; onnxruntime does the same.
    """

    classlabels_int64s: tuple[int, ...] | None = None
    classlabels_strings: tuple[str, ...] | None = None
    class_treeids: tuple[int, ...] | None = None
    class_nodeids: tuple[int, ...] | None = None
    class_ids: tuple[int, ...] | None = None
    class_weights: tuple[float, ...] | None = None
    class_weights_as_tensor: Array | None = None

    def replaced(self, draft: Draft) -> Draft:
        dtype = computed(draft)
        replacement = numbers(
            self.class_weights, self.class_weights_as_tensor, "class_weights", dtype
        )
        weights = np.zeros(0, dtype) if replacement is None else replacement
        ids = self.class_ids or ()
        entries = (self.class_treeids or (), self.class_nodeids or (), ids, weights)
        forest = self.nodes(entries, dtype)
        labels = labels_of(self.classlabels_int64s, self.classlabels_strings)
        targets, limit, pair = self._decision_rule(len(labels), weights)
        if targets == 1 and len(labels) == 1:
            labels = [0, 1] if isinstance(labels[0], int) else ["0", "1"]
        base = self.base(targets, dtype)
        last = classified(draft, labels, self._transform(targets, pair), limit, pair)
        steps = [trees(draft, forest, base, targets, "SUM", True), last]
        return chain(draft, matrix(draft), steps)

    def _decision_rule(
        self, classes: int, weights: Array
    ) -> tuple[int, float | None, str]:
        """Return the number of scores, the second class's limit, and the pairing."""
        named = set(self.class_ids or ())
        positive = not np.any(weights < 0)
        if classes == 1:
            return 1, 0.0, ""
        if classes > 2 or len(named) != 1:
            return classes, None, ""
        limit = 0.5 if positive else 0.0
        if named == {1}:
            return 2, limit, ""
        alone = len(self.base_values or ()) < 2
        if self.base_values_as_tensor is not None:
            alone = self.base_values_as_tensor.size < 2
        if not alone:
            return 2, None, ""
        return 1, limit, "complement" if positive else "negative"

    def _transform(self, targets: int, pair: str) -> str:
        """Return the post transform, "NONE" for a single unpaired score."""
        alone = targets == 1 and not pair and self.post_transform != "PROBIT"
        return "NONE" if alone else self.post_transform

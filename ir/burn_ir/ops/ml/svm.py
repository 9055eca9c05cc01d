"""Support vector machines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from burn import ops
from burn.dtypes import float32, int64
from burn_ir.errors import InvalidOperand
from burn_ir.op import Op, Type, Value, operator
from burn_ir.ops.ml.linear import Transform
from burn_ir.ops.ml.rewriting import (
    Replaced,
    Step,
    burn_step,
    chain,
    insert_step,
    matrix,
    store_weight,
)
from burn_ir.ops.ml.scores import classified, labels_of
from burn_ir.types import Array
from burn_ir.upgrade import Draft

KernelType = Literal["LINEAR", "POLY", "RBF", "SIGMOID"]
#: Maximum number of stored weights for the decisions of all pairs of classes.
_LIMIT = 2**28


@operator
class SvmKernel(Op, onnx="SvmKernel", versions=(1,), domain="burn"):
    """The kernel of samples [n, f] and support vectors [m, f]: ``ops.svm_kernel``."""

    kernel: Literal["linear", "poly", "rbf", "sigmoid"] = "linear"
    gamma: float = 1.0
    coef0: float = 0.0
    degree: float = 3.0

    def infer(self, x: Type, vectors: Type) -> Type:
        if x.shape is None:
            return x.with_shape(None)
        width = x.shape[-1]
        if isinstance(width, int) and width != vectors.dims[1]:
            raise InvalidOperand(f"expected {vectors.dims[1]} features, got {x.name}")
        return x.with_shape((x.shape[0], vectors.dims[0]))

    def lower(self, x: Value, vectors: Value) -> Value:
        used = {"poly": 3, "sigmoid": 2, "rbf": 1}.get(self.kernel, 0)
        names = ("gamma", "coef0", "degree")[:used]
        options: dict[str, Any] = {n: getattr(self, n) for n in names}
        if self.kernel != "linear":
            options = {"kernel": self.kernel, **options}
        return ops.svm_kernel(x, vectors, **options)


@operator
class Votes(Op, onnx="Votes", versions=(1,), domain="burn"):
    """The number of pairwise wins of each class, [samples, classes]."""

    classes: int = 2

    def infer(self, x: Type) -> Type:
        return Type(int64, None if x.shape is None else (x.shape[0], self.classes))

    def lower(self, x: Value) -> Value:
        return ops.pairwise_votes(x, classes=self.classes)


@operator
class PairwiseProbabilities(
    Op, onnx="PairwiseProbabilities", versions=(1,), domain="burn"
):
    """Probabilities [samples, classes] from the decisions of all pairs of classes."""

    classes: int = 2

    def infer(self, x: Type, a: Type, b: Type) -> Type:
        return x.with_shape(None if x.shape is None else (x.shape[0], self.classes))

    def lower(self, x: Value, a: Value, b: Value) -> Value:
        return ops.pairwise_probabilities(x, a, b)


@operator
class Decide(Op, onnx="Decide", versions=(1,), domain="burn"):
    """1 where a score is above 0, else -1."""

    def infer(self, x: Type) -> Type:
        return x.forget()

    def lower(self, x: Value) -> Value:
        return ops.where(x > 0.0, 1.0, -1.0)


def kernel_step(
    draft: Draft, vectors: Array, kernel: str, params: Sequence[float] | None
) -> Step:
    """Return the kernel step with stored support vectors."""
    attrs = {
        name: float(value)
        for name, value in zip(("gamma", "coef0", "degree"), params or (), strict=False)
    }
    name = draft.constant("support_vectors", vectors)
    return burn_step("SvmKernel", name, kernel=kernel.lower(), **attrs)


def weights(draft: Draft, weight: Array, bias: Array) -> Step:
    """Return a linear layer with stored weights."""
    names = ("weight", weight), ("bias", bias)
    params = [
        store_weight(draft, "decision", n, a.astype(np.float32)) for n, a in names
    ]
    return burn_step("Linear", *params)


def _vectors(values: Sequence[float] | None, count: int) -> Array:
    array = np.array(values or (), np.float32)
    if count < 1 or not len(array) or len(array) % count:
        raise InvalidOperand(f"expected {count} support vectors, got {len(array)}")
    return array.reshape(count, -1)


@operator
class SVMRegressor(
    Replaced, Op, onnx="SVMRegressor", versions=(1,), domain="ai.onnx.ml"
):
    """One score, for which probit is the only effective transform."""

    coefficients: tuple[float, ...] | None = None
    rho: tuple[float, ...] | None = None
    support_vectors: tuple[float, ...] | None = None
    n_supports: int = 0
    kernel_type: KernelType = "LINEAR"
    kernel_params: tuple[float, ...] | None = None
    one_class: int = 0
    post_transform: Transform = "NONE"

    def replaced(self, draft: Draft) -> Draft:
        weight = np.array([self.coefficients or ()], np.float32)
        steps = []
        if self.n_supports:
            vectors = _vectors(self.support_vectors, self.n_supports)
            if weight.size != self.n_supports:
                raise InvalidOperand(
                    f"expected {self.n_supports} coefficients, got {weight.size}"
                )
            steps.append(
                kernel_step(draft, vectors, self.kernel_type, self.kernel_params)
            )
        bias = np.array((self.rho or (0.0,))[:1], np.float32)
        steps.append(weights(draft, weight, bias))
        steps += [burn_step("Decide")] if self.one_class else []
        return chain(draft, matrix(draft, float32), steps)


@operator
class SVMClassifier(
    Replaced, Op, onnx="SVMClassifier", versions=(1,), domain="ai.onnx.ml"
):
    """The class with most pairwise wins, or the largest score of a linear SVM.

    The scores are probabilities if there are coefficients for them, otherwise the
    decisions of all pairs; for two classes the decision and its negative.
    """

    coefficients: tuple[float, ...] | None = None
    rho: tuple[float, ...] | None = None
    support_vectors: tuple[float, ...] | None = None
    vectors_per_class: tuple[int, ...] | None = None
    prob_a: tuple[float, ...] | None = None
    prob_b: tuple[float, ...] | None = None
    kernel_type: KernelType = "LINEAR"
    kernel_params: tuple[float, ...] | None = None
    classlabels_ints: tuple[int, ...] | None = None
    classlabels_strings: tuple[str, ...] | None = None
    post_transform: Transform = "NONE"

    def replaced(self, draft: Draft) -> Draft:
        labels = labels_of(self.classlabels_ints, self.classlabels_strings)
        counts = self.vectors_per_class or ()
        if not sum(counts):
            return self._linear(draft, labels)
        if len(counts) != len(labels):
            raise InvalidOperand(f"expected {len(labels)} counts, got {len(counts)}")
        vectors = _vectors(self.support_vectors, sum(counts))
        x = matrix(draft, float32)
        kernel = kernel_step(draft, vectors, self.kernel_type, self.kernel_params)
        x = insert_step(draft, x, kernel)
        x = insert_step(draft, x, weights(draft, *self._pairs(counts)))
        votes = insert_step(draft, x, burn_step("Votes", classes=len(labels)))
        if self.prob_a:
            x = insert_step(draft, x, self._platt(draft, len(labels)))
        last = classified(
            draft, labels, self.post_transform, None, self._pair(len(labels)), votes
        )
        return chain(draft, x, [last])

    def _linear(self, draft: Draft, labels: list[Any]) -> Draft:
        flat = np.array(self.coefficients or (), np.float32)
        if not flat.size or flat.size % len(labels):
            raise InvalidOperand(
                f"expected coefficients of {len(labels)} classes, got {flat.size}"
            )
        bias = np.full(len(labels), (self.rho or (0.0,))[0], np.float32)
        step = weights(draft, flat.reshape(len(labels), -1), bias)
        last = classified(draft, labels, self.post_transform)
        return chain(draft, matrix(draft, float32), [step, last])

    def _pair(self, classes: int) -> str:
        """Return how the decision of the only pair becomes two scores."""
        if classes != 2 or self.prob_a:
            return ""
        plain = self.post_transform in ("NONE", "LOGISTIC")
        return "negative" if plain else "complement"

    def _pairs(self, counts: Sequence[int]) -> tuple[Array, Array]:
        """Return the weights [pairs, vectors] and biases of all pairs of classes."""
        classes, total = len(counts), sum(counts)
        pairs = classes * (classes - 1) // 2
        flat = np.array(self.coefficients or (), np.float32)
        bias = np.array(self.rho or (), np.float32)
        if flat.size != (classes - 1) * total or bias.size < pairs:
            raise InvalidOperand(
                f"expected {(classes - 1) * total} coefficients and {pairs} numbers "
                f"rho, got {flat.size} and {bias.size}"
            )
        if pairs * total > _LIMIT:
            raise InvalidOperand(f"expected fewer classes, got {classes}")
        coefficients = flat.reshape(classes - 1, total)
        starts = np.concatenate([[0], np.cumsum(counts)])
        weight = np.zeros((pairs, total), np.float32)
        for pair, (i, j) in enumerate(zip(*np.triu_indices(classes, 1), strict=True)):
            for mine, row in ((i, j - 1), (j, i)):
                part = slice(starts[mine], starts[mine + 1])
                weight[pair, part] = coefficients[row, part]
        return weight, bias[:pairs]

    def _platt(self, draft: Draft, classes: int) -> Step:
        pairs = classes * (classes - 1) // 2
        names = []
        for name in ("prob_a", "prob_b"):
            array = np.array(getattr(self, name) or (), np.float32)
            if len(array) < pairs:
                raise InvalidOperand(f"expected {pairs} of {name}, got {len(array)}")
            names.append(draft.constant(name, array[:pairs]))
        return burn_step("PairwiseProbabilities", *names, classes=classes)

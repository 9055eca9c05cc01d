"""Operators that compute labels and probabilities from scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from burn import dtypes, ops
from burn.dtypes import int64
from burn_ir.errors import InvalidOperand
from burn_ir.op import Op, Type, Value, operator
from burn_ir.ops.ml.rewriting import POST_TRANSFORMS, Step, burn_step
from burn_ir.upgrade import Draft


def transform(scores: Value, name: str) -> Value:
    """Return scores [samples, targets] after a post transform."""
    if name == "SOFTMAX":
        return ops.softmax(scores)
    if name == "LOGISTIC":
        return ops.sigmoid(scores)
    if name == "SOFTMAX_ZERO":
        return ops.softmax_zero(scores)
    return ops.probit(scores) if name == "PROBIT" else scores


@operator
class PostTransform(Op, onnx="PostTransform", versions=(1,), domain="burn"):
    """Scores [samples, targets] after a post transform of the domain ai.onnx.ml."""

    transform: Literal["SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"] = "SOFTMAX"

    def infer(self, x: Type) -> Type:
        return x.forget()

    def lower(self, x: Value) -> Value:
        return transform(x, self.transform)


@operator
class Classify(Op, onnx="Classify", versions=(1,), domain="burn"):
    """The labels [samples] and the scores after a post transform.

    The label is that of the largest score or, with a ``limit``, the second of two if
    the last score is above it. With a ``pair`` the only score s is that of the second
    class, and the first class gets 1 - s ("complement") or -s ("negative"). Without
    ``labels`` the classes are numbered. ``votes`` [samples, classes], if present,
    are compared instead of the scores, unless there is a ``limit``.
    """

    transform: Literal["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"] = "NONE"
    limit: float | None = None
    pair: Literal["", "complement", "negative"] = ""

    def infer(
        self, scores: Type, labels: Type | None = None, votes: Type | None = None
    ) -> tuple[Type, Type]:
        dtype = int64 if labels is None else labels.dtype
        if scores.shape is None:
            return Type(dtype, None), scores.forget()
        if len(scores.shape) != 2:
            raise InvalidOperand(f"expected a matrix, got {scores.name}")
        shape = (scores.dims[0], 2) if self.pair else scores.dims
        return Type(dtype, scores.dims[:1]), scores.with_shape(shape)

    def lower(
        self, scores: Value, labels: Value = None, votes: Value = None
    ) -> tuple[Value, ...]:
        if self.limit is None:
            index = ops.argmax(scores if votes is None else votes, 1)
        else:
            index = (scores[:, -1] > self.limit).cast(int64)
        label = index if labels is None else ops.take(labels, index)
        return label, self._transformed(scores)

    def _transformed(self, scores: Value) -> Value:
        if not self.pair:
            return transform(scores, self.transform)
        if self.transform == "LOGISTIC":
            return ops.sigmoid(ops.concat([-scores, scores], 1))
        first = 1.0 - scores if self.pair == "complement" else -scores
        both = ops.concat([first, scores], 1)
        return ops.probit(both) if self.transform == "PROBIT" else both


def labels_of(
    ints: Sequence[int] | None, strings: Sequence[str] | None
) -> list[int] | list[str]:
    """Return the class labels, which are integers or strings.

    Raises:
        InvalidOperand: neither attribute is set, or both are.
    """
    if bool(ints) == bool(strings):
        got = "both" if ints else "neither"
        raise InvalidOperand(f"expected labels, integers or strings, got {got}")
    return list(ints) if ints else list(strings or ())


def classified(
    draft: Draft,
    labels: list[int] | list[str],
    post_transform: str,
    limit: float | None = None,
    pair: str = "",
    votes: str | None = None,
) -> Step:
    """Return the last step of a classifier.

    Raises:
        InvalidOperand: the post transform does not exist.
    """
    if post_transform not in POST_TRANSFORMS:
        raise InvalidOperand(
            f"expected post_transform in {', '.join(POST_TRANSFORMS)}, "
            f"got {post_transform!r}"
        )
    attrs = {"transform": post_transform, "pair": pair}
    if limit is not None:
        attrs["limit"] = limit  # type: ignore[assignment]
    table = None
    if labels != list(range(len(labels))):
        dtype = dtypes.string if isinstance(labels[0], str) else int64
        table = draft.constant("labels", np.array(labels, dtype))
    operands: tuple[str | None, ...] = (table, votes) if votes else (table,)
    return burn_step("Classify", *(operands if any(operands) else ()), **attrs)

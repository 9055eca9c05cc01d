"""Batch normalisation, and what its outputs meant before they had an attribute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from burn import ops
from burn_ir.errors import InvalidOperand
from burn_ir.op import Layer, Op, Type, Value
from burn_ir.ops.functions import expect_float
from burn_ir.ops.norm import check_vectors, stored
from burn_ir.ops.options import changed, shortest
from burn_ir.raw import RawNode
from burn_ir.types import Array
from burn_ir.upgrade import Draft


@dataclass(frozen=True)
class BatchNormalization(Op, onnx="BatchNormalization", versions=(1, 6, 7, 9, 14, 15)):
    """Statistics of rank above 1 have an entry for every element of a sample."""

    epsilon: float = 1e-5
    momentum: float = 0.9
    training_mode: int = 0
    results: int = 1

    def infer(
        self, x: Type, scale: Type, bias: Type, mean: Type, var: Type
    ) -> Type | tuple[Type, ...]:
        if self.results > 1 and not self.training_mode:
            raise InvalidOperand(
                f"expected one output without training_mode, got {self.results}"
            )
        if x.shape is not None and scale.shape is not None and scale.rank == 1:
            check_vectors(x, (scale, bias, mean, var), (*x.shape, 1)[1])
        out = expect_float(x).forget()
        return (out, mean.forget(), var.forget()) if self.training_mode else out

    def lower(
        self, x: Value, scale: Value, bias: Value, mean: Value, var: Value
    ) -> Value:
        options = changed(epsilon=(self.epsilon, 1e-5))
        if self.training_mode:
            return self._train(x, scale, bias, mean, var)
        if len(scale.shape) > 1:
            return (x - mean) / ops.sqrt(var + self.epsilon) * scale + bias
        return ops.batch_norm(x, mean, var, scale, bias, **options)

    def _train(
        self, x: Value, scale: Value, bias: Value, mean: Value, var: Value
    ) -> tuple[Value, ...]:
        options = changed(epsilon=(self.epsilon, 1e-5))
        out, now, spread = ops.batch_norm_train(x, scale, bias, **options)
        kept = self.momentum
        averages = (
            mean * kept + now.cast(mean.dtype) * (1.0 - kept),
            var * kept + spread.cast(var.dtype) * (1.0 - kept),
        )
        return (out, *averages)[: self.results]

    def layer(
        self, x: Type, scale: Type, bias: Type, mean: Type, var: Type
    ) -> Layer | None:
        arrays = stored(scale, bias, mean, var)
        if arrays is None or self.training_mode or arrays[0].ndim != 1:
            return None
        if x.shape is None or not 2 <= x.rank <= 5:
            return None
        # nn.BatchNorm1d takes [N, C] as well as [N, C, L].
        name = f"BatchNorm{max(x.rank - 2, 1)}d"
        weights = {"weight": 1, "bias": 2, "running_mean": 3, "running_var": 4}
        options = changed(
            eps=(self.epsilon, 1e-5), momentum=(shortest(1.0 - self.momentum), 0.1)
        )
        return Layer(name, (len(arrays[0]),), options, weights)


@BatchNormalization.upgrade(1, 6, 7, 9)
def told_by_outputs(draft: Draft) -> Draft:
    """Before 14, the number of outputs told training, whatever ``is_test`` said."""
    outputs = draft.node.outputs
    draft = draft.with_attrs("is_test", "spatial")
    if not any(outputs[1:]):
        return draft
    if draft.rank(1) > 1:
        raise InvalidOperand(
            f"expected spatial=1 in training, got a scale {draft.type(1).name}"
        )
    _saved_statistics(draft)
    node = replace(draft.node, outputs=outputs[:3])
    return replace(draft, node=node).with_attrs(training_mode=1)


def _saved_statistics(draft: Draft) -> None:
    """Nodes for the fourth and fifth output: mean of the batch and inverse deviation.

    The fifth is called variance and said to speed up gradients, which the inverse does;
    onnxruntime gives the inverse.
    """
    x, (mean, inverse) = draft.node.inputs[0], (*draft.node.outputs[3:], None, None)[:2]
    around = np.array([axis for axis in range(draft.rank(0)) if axis != 1])
    axes = draft.constant("around", around)
    if mean is not None:
        draft.insert(_computing(draft, mean, "ReduceMean", [x, axes], keepdims=0))
    if inverse is not None:
        centred = draft.before("Sub", [x, draft.before("ReduceMean", [x, axes])])
        squares = draft.before("Mul", [centred, centred])
        var = draft.before("ReduceMean", [squares, axes], keepdims=0)
        least = draft.constant("epsilon", _like(draft.type(0), draft.attrs))
        deviation = draft.before("Sqrt", [draft.before("Add", [var, least])])
        draft.insert(_computing(draft, inverse, "Reciprocal", [deviation]))


def _like(x: Type, attrs: Mapping[str, Any]) -> Array:
    """The epsilon among the attributes as a scalar of the dtype of ``x``."""
    epsilon = attrs.get("epsilon", BatchNormalization.epsilon)
    return np.array(epsilon).astype(x.dtype)


def _computing(
    draft: Draft, output: str, op_type: str, inputs: Sequence[str | None], **attrs: Any
) -> RawNode:
    """A node for one more output of the draft's."""
    return replace(
        draft.node,
        op_type=op_type,
        attrs=attrs,
        inputs=tuple(inputs),
        outputs=(output,),
    )

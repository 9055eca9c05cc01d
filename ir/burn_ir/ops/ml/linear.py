"""Linear models and feature scaling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from burn import dtypes, ops
from burn.dtypes import float32
from burn_ir.errors import InvalidOperand
from burn_ir.op import Op, Type, Value, operator
from burn_ir.ops.ml.rewriting import (
    FLOAT32,
    Replaced,
    Step,
    burn_step,
    chain,
    matrix,
    onnx,
    post_transform_steps,
    store_weight,
)
from burn_ir.ops.ml.scores import classified, labels_of
from burn_ir.upgrade import Draft

Transform = Literal["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"]


def linear(
    draft: Draft, coefficients: Sequence[float], bias: Sequence[float], targets: int
) -> Step:
    """Return a linear layer with ``targets`` results and stored weights.

    Raises:
        InvalidOperand: the numbers of weights do not match.
    """
    weight = np.array(coefficients, np.float32)
    if targets < 1 or len(weight) % targets:
        raise InvalidOperand(
            f"expected coefficients for {targets} targets, got {len(weight)}"
        )
    names = [store_weight(draft, "linear", "weight", weight.reshape(targets, -1))]
    if len(bias):
        names.append(store_weight(draft, "linear", "bias", np.array(bias, np.float32)))
    return burn_step("Linear", *names)


@operator
class LinearRegressor(
    Replaced, Op, onnx="LinearRegressor", versions=(1,), domain="ai.onnx.ml"
):
    coefficients: tuple[float, ...] | None = None
    intercepts: tuple[float, ...] | None = None
    targets: int = 1
    post_transform: Transform = "NONE"

    def replaced(self, draft: Draft) -> Draft:
        bias = self.intercepts or ()
        step = linear(draft, self.coefficients or (), bias, self.targets)
        # A single score has no softmax.
        alone = self.targets == 1 and self.post_transform != "PROBIT"
        rest = [] if alone else post_transform_steps(self.post_transform)
        return chain(draft, matrix(draft, float32), [step, *rest])


@operator
class LinearClassifier(
    Replaced, Op, onnx="LinearClassifier", versions=(1,), domain="ai.onnx.ml"
):
    """A linear classifier; a single score above 0 means the second class."""

    coefficients: tuple[float, ...]
    intercepts: tuple[float, ...] | None = None
    multi_class: int = 0
    classlabels_strings: tuple[str, ...] | None = None
    classlabels_ints: tuple[int, ...] | None = None
    post_transform: Transform = "NONE"

    def replaced(self, draft: Draft) -> Draft:
        labels = labels_of(self.classlabels_ints, self.classlabels_strings)
        bias = self.intercepts or ()
        targets = len(bias) or self._targets(draft.type(0), len(labels))
        if targets > len(labels):
            raise InvalidOperand(f"expected {targets} labels, got {len(labels)}")
        step = linear(draft, self.coefficients, bias, targets)
        if targets > 1:
            last = classified(draft, labels, self.post_transform)
        elif len(labels) == 2:
            last = classified(draft, labels, self.post_transform, 0.0, "complement")
        else:
            digits = [0, 1] if isinstance(labels[0], int) else ["0", "1"]
            alone = self.post_transform if self.post_transform == "PROBIT" else "NONE"
            last = classified(draft, digits, alone, 0.0)
        return chain(draft, matrix(draft, float32), [step, last])

    def _targets(self, x: Type, classes: int) -> int:
        """Return the number of scores if there are no intercepts."""
        features = x.shape[-1] if x.shape else None
        if isinstance(features, int) and features:
            return len(self.coefficients) // features
        return classes


@operator
class Scaler(Replaced, Op, onnx="Scaler", versions=(1,), domain="ai.onnx.ml"):
    """``(x - offset) * scale``, with one number per feature or one for all."""

    offset: tuple[float, ...] | None = None
    scale: tuple[float, ...] | None = None

    def replaced(self, draft: Draft) -> Draft:
        x = draft.type(0)
        steps = [] if x.dtype == float32 else [onnx("Cast", to=FLOAT32)]
        for op, values, nothing in (("Sub", self.offset, 0), ("Mul", self.scale, 1)):
            if values is None or not np.any(np.array(values) != nothing):
                continue
            name = op.replace("Sub", "offset").replace("Mul", "scale")
            array = np.array(values, np.float32)
            steps.append(onnx(op, draft.constant(name, array)))
        return chain(draft, draft.node.inputs[0], steps or [onnx("Identity")])


@operator
class Normalizer(Op, onnx="Normalizer", versions=(1,), domain="ai.onnx.ml"):
    norm: Literal["MAX", "L1", "L2"] = "MAX"

    def infer(self, x: Type) -> Type:
        if x.dtype == dtypes.string:
            raise InvalidOperand(f"expected numbers, got {x.name}")
        if x.shape is not None and len(x.shape) not in (1, 2):
            raise InvalidOperand(f"expected a matrix, got {x.name}")
        return Type(float32, x.shape)

    def lower(self, x: Value) -> Value:
        x = x if x.dtype == float32 else x.cast(float32)
        return ops.normalize(x, norm=self.norm.lower())

"""Classification losses."""

from __future__ import annotations

from typing import Any, Literal

from burn import dtypes, ops
from burn_ir.errors import InvalidOperand
from burn_ir.op import Op, Type, Value, operator
from burn_ir.ops.elementwise import same_dtype
from burn_ir.ops.functions import expect_float
from burn_ir.ops.norm import check_vectors
from burn_ir.ops.shape import equal_dims


@operator
class Loss:
    """Losses of scores [N, C, ...] and the indices [N, ...] of classes."""

    ignore_index: int | None = None
    reduction: Literal["none", "sum", "mean"] = "mean"

    @property
    def options(self) -> dict[str, Any]:
        """Return the keyword arguments of the primitive."""
        options: dict[str, Any] = {}
        if self.ignore_index is not None:
            options["ignore_index"] = self.ignore_index
        if self.reduction != "mean":
            options["reduction"] = self.reduction
        return options

    def infer_loss(self, x: Type, target: Type, weight: Type | None) -> Type:
        """Return the type of the loss.

        Raises:
            InvalidOperand: the operands do not fit each other.
        """
        expect_float(x)
        if not dtypes.is_integer(target.dtype):
            raise InvalidOperand(f"expected integer targets, got {target.name}")
        if weight is not None:
            same_dtype(x, weight)
        shape = target.shape
        if x.shape is not None:
            if x.rank < 2:
                raise InvalidOperand(f"expected classes on axis 1, got {x.name}")
            check_vectors(x, () if weight is None else (weight,), x.shape[1])
            if target.shape is not None and target.rank != x.rank - 1:
                raise InvalidOperand(
                    f"expected targets of rank {x.rank - 1}, got {target.name}"
                )
            rows = x.with_shape((x.shape[0], *x.shape[2:]))
            shape = equal_dims([rows] if shape is None else [rows, target])
        if self.reduction != "none":
            return Type(x.dtype, ())
        return x.with_shape(shape)


@operator
class NegativeLogLikelihoodLoss(
    Loss, Op, onnx="NegativeLogLikelihoodLoss", versions=(12, 13, 22)
):

    def infer(self, x: Type, target: Type, weight: Type | None = None) -> Type:
        return self.infer_loss(x, target, weight)

    def lower(self, x: Value, target: Value, weight: Value = None) -> Value:
        weights = () if weight is None else (weight,)
        return ops.nll_loss(x, target, *weights, **self.options)


@operator
class SoftmaxCrossEntropyLoss(
    Loss, Op, onnx="SoftmaxCrossEntropyLoss", versions=(12, 13)
):
    results: int = 1

    def infer(
        self, x: Type, target: Type, weight: Type | None = None
    ) -> tuple[Type, ...]:
        return self.infer_loss(x, target, weight), x.forget()

    def lower(self, x: Value, target: Value, weight: Value = None) -> Value:
        weights = () if weight is None else (weight,)
        if self.results == 1:
            return ops.cross_entropy(x, target, *weights, **self.options)
        log_probs = ops.log_softmax(x, axis=1)
        return ops.nll_loss(log_probs, target, *weights, **self.options), log_probs

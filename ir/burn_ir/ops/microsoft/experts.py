"""onnxruntime's mixtures of experts."""

from __future__ import annotations

from typing import Literal

from burn import ops
from burn_ir.errors import InvalidOperand
from burn_ir.op import Op, Type, Value, operator
from burn_ir.ops.elementwise import same_dtype
from burn_ir.ops.functions import expect_float
from burn_ir.ops.microsoft.quantize import DOMAIN
from burn_ir.ops.options import non_default


@operator
class MoE(Op, onnx="MoE", domain=DOMAIN, versions=(1,)):
    activation_alpha: float = 1.0
    activation_beta: float = 0.0
    activation_type: Literal["relu", "gelu", "silu", "swiglu", "identity"] = "relu"
    k: int = 1
    normalize_routing_weights: int = 0
    swiglu_fusion: int = 0
    swiglu_limit: float | None = None
    swiglu_limit_after_activation: int = 0
    use_sparse_mixer: int = 0

    def __post_init__(self) -> None:
        if self.activation_type == "swiglu" and self.swiglu_fusion != 1:
            raise InvalidOperand(
                f"expected swiglu_fusion 1 (interleaved), got {self.swiglu_fusion}"
            )
        if self.use_sparse_mixer or self.swiglu_limit_after_activation:
            raise InvalidOperand(
                "expected use_sparse_mixer and swiglu_limit_after_activation of 0"
            )

    def infer(
        self,
        x: Type,
        router: Type,
        up: Type,
        up_bias: Type | None = None,
        down: Type | None = None,
        down_bias: Type | None = None,
        gate: Type | None = None,
        gate_bias: Type | None = None,
    ) -> Type:
        if gate is not None or gate_bias is not None:
            raise InvalidOperand(
                "expected no weights of fc3, which CPUs do not compute"
            )
        if down is None:
            raise InvalidOperand("expected weights of fc2, got none")
        weights = [w for w in (router, up, up_bias, down, down_bias) if w is not None]
        same_dtype(expect_float(x), *weights)
        for weight in (up, down):
            if weight.shape is not None and weight.rank != 3:
                raise InvalidOperand(f"expected weights of rank 3, got {weight.name}")
        return x.forget()

    def lower(
        self,
        x: Value,
        router: Value,
        up: Value,
        up_bias: Value = None,
        down: Value = None,
        down_bias: Value = None,
        gate: Value = None,
        gate_bias: Value = None,
    ) -> Value:
        biases = [up_bias, down_bias]
        while biases and biases[-1] is None:
            biases.pop()
        options = non_default(
            k=(self.k, 1),
            activation=(self.activation_type, "relu"),
            normalize=(bool(self.normalize_routing_weights), False),
        )
        if self.activation_type == "swiglu":
            options |= non_default(
                alpha=(self.activation_alpha, 1.0),
                beta=(self.activation_beta, 0.0),
                limit=(self.swiglu_limit, None),
            )
        return ops.mixture_of_experts(x, router, up, down, *biases, **options)

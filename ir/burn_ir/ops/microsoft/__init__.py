"""Operators of the domain ``com.microsoft``, which ONNX Runtime's tools write."""

from burn_ir.ops.microsoft import (
    activation,
    attention,
    blocks,
    experts,
    fused,
    integer,
    nchwc,
    norm,
    quantize,
    query,
    rnn,
    tensors,
)

__all__ = [
    "activation",
    "attention",
    "blocks",
    "experts",
    "fused",
    "integer",
    "nchwc",
    "norm",
    "quantize",
    "query",
    "rnn",
    "tensors",
]

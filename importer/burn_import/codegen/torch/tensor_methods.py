"""Tensor methods that forms emit."""

from __future__ import annotations

#: Methods and properties of tensors that forms emit.
TENSOR_METHODS = frozenset(
    {"all", "amax", "amin", "any", "append", "argmax", "argmin", "chunk", "clamp"}
    | {"det", "inv", "solve"}
    | {"cumprod", "cumsum", "detach", "device", "expand", "flatten", "flip", "int"}
    | {"item", "logsumexp", "max", "mean", "min", "numel", "permute", "prod"}
    | {"reshape", "shape", "split", "squeeze", "sum", "tile", "to", "tolist"}
    | {"transpose", "unflatten", "unsqueeze", "var", "vector_norm", "view"}
)

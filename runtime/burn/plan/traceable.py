"""Which primitives are nothing but functions of NumPy, whatever their numbers are."""

from typing import Any

from burn.primitive import Primitive

_MODULES = (
    "activation",
    "elementwise",
    "layer_norm",
    "logic",
    "norm",
    "reduction",
    "padding",
)
_FAMILIES = frozenset(f"burn.ops.{name}" for name in (*_MODULES, "shape", "softmax"))
_OTHERS = frozenset(
    {"embedding", "getitem", "linear", "masked_softmax", "matmul", "resize", "take"}
)


def is_traceable(primitive: Primitive[..., Any]) -> bool:
    """Whether the kernel of ``primitive`` may run on arrays that note what it does."""
    return primitive.__module__ in _FAMILIES or primitive.name in _OTHERS

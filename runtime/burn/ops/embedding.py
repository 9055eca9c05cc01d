"""Embedding lookups, with their special gradients."""

from typing import Any

from burn.ops import bounds
from burn.ops.creation import ones_like
from burn.ops.elementwise import div
from burn.ops.indexing import take, take_grad
from burn.ops.logic import not_equal, where
from burn.ops.shape import unsqueeze
from burn.ops.support import Array
from burn.primitive import primitive


@primitive(traceable=True, bound=bounds.of_first, memory_bound=True)
def embedding(
    weight: Array,
    indices: Array,
    *,
    padding_idx: int | None = None,
    scale_grad_by_freq: bool = False,
) -> Array:
    """Return the rows ``indices`` of ``weight`` [rows, features]: [*indices, features].

    The row ``padding_idx`` receives no gradient. With ``scale_grad_by_freq`` the
    gradient of a row is divided by the number of its lookups.
    """
    return take.kernel(weight, indices)


@embedding.vjp_reading({0: (1,)})
def _(
    grad: Any,
    out: Any,
    weight: Any,
    indices: Any,
    *,
    padding_idx: int | None = None,
    scale_grad_by_freq: bool = False,
) -> Any:
    def gradient() -> Any:
        rows = grad
        if padding_idx is not None:
            read = unsqueeze(not_equal(indices, padding_idx), -1)
            rows = where(read, rows, 0.0)
        if scale_grad_by_freq:
            ones = ones_like(indices, dtype=weight.dtype)
            counts = take_grad(ones, indices, shape=weight.shape[:1])
            rows = div(rows, unsqueeze(take(counts, indices), -1))
        return take_grad(rows, indices, shape=weight.shape)

    return gradient

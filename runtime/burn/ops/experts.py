"""Mixtures of experts: layers whose weights depend on the token."""

from collections.abc import Callable, Mapping
from typing import Any

from burn.ops.activation import clip, gelu, relu, sigmoid, silu
from burn.ops.creation import zeros_like
from burn.ops.elementwise import minimum
from burn.ops.indexing import getitem
from burn.ops.matmul import matmul
from burn.ops.ordering import topk
from burn.ops.reduction import sum as sum_
from burn.ops.scatter import scatter_elements
from burn.ops.shape import reshape, transpose, unsqueeze
from burn.ops.softmax import softmax
from burn.ops.support import Array
from burn.primitive import composite


@composite(outputs=1)
def mixture_of_experts(
    x: Array,
    router: Array,
    up: Array,
    down: Array,
    up_bias: Array = None,
    down_bias: Array = None,
    *,
    k: int = 1,
    activation: str = "relu",
    normalize: bool = False,
    alpha: float = 1.0,
    beta: float = 0.0,
    limit: float | None = None,
) -> Any:
    """Return the weighted sum of the ``k`` experts that each token prefers.

    ``x`` [..., hidden] are tokens and ``router`` [tokens, experts] their scores, whose
    softmax weights the experts; ``normalize`` lets the weights of the chosen ones sum
    to 1. Expert ``e`` computes ``activation(x @ up[e].T + up_bias[e]) @ down[e].T +
    down_bias[e]``, of the activations "relu", "gelu" (by tanh), "silu", "identity" and
    "swiglu". The last one is ``g * sigmoid(alpha * g) * (l + beta)`` of the numbers
    ``g`` at even and ``l`` at odd places, which ``limit`` clips.
    """
    tokens = unsqueeze(reshape(x, (-1, x.shape[-1])), 0)
    hidden = _affine(tokens, up, up_bias)
    if activation == "swiglu":
        hidden = _swiglu(hidden, alpha, beta, limit)
    else:
        hidden = _ACTIVATIONS[activation](hidden)
    results = _affine(hidden, down, down_bias)
    weights = _expert_weights(router, k, normalize)
    weights = unsqueeze(transpose(weights, 0, 1), 2)
    return reshape(sum_(results * weights, 0), x.shape)


def _affine(x: Any, weight: Any, bias: Any) -> Any:
    """Return one layer for each expert: [experts, tokens, out]."""
    product = matmul(x, transpose(weight, 1, 2))
    return product if bias is None else product + unsqueeze(bias, 1)


def _swiglu(x: Any, alpha: float, beta: float, limit: float | None) -> Any:
    gate = getitem(x, (..., slice(0, None, 2)))
    linear = getitem(x, (..., slice(1, None, 2)))
    if limit is not None:
        gate, linear = minimum(gate, limit), clip(linear, -limit, limit)
    return gate * sigmoid(gate * alpha) * (linear + beta)


def _expert_weights(router: Any, k: int, normalize: bool) -> Any:
    """Return the weight of each expert for each token, 0 for those not chosen."""
    values, index = topk(softmax(router, axis=-1), k)
    if normalize:
        values = values / sum_(values, -1, keepdims=True)
    return scatter_elements(zeros_like(router), index, values, axis=-1)


def _gelu_by_tanh(x: Any) -> Any:
    return gelu(x, approximate="tanh")


_ACTIVATIONS: Mapping[str, Callable[[Any], Any]] = {
    "relu": relu,
    "gelu": _gelu_by_tanh,
    "silu": silu,
    "identity": lambda x: x,
}

"""Post-ops: operations on a result in the same pass over memory."""

from typing import Any, TypeAlias

from burn.backend.cpu.onednn.binding.api import (
    BINARY_ADD,
    CLIP,
    ELU,
    GELU_ERF,
    GELU_TANH,
    HARD_SIGMOID,
    HARD_SWISH,
    INFERENCE,
    LINEAR,
    LOGISTIC,
    MISH,
    POST_OPERATION,
    RELU,
    SOFT_RELU,
    SRC_1,
    SWISH,
    TANH,
    Api,
)
from burn.backend.cpu.onednn.binding.memory import Handle
from burn.backend.cpu.onednn.binding.prepared import Description, PostOps, described

#: Names with their numbers, as :mod:`burn.ops.fused` has them.
After: TypeAlias = tuple[tuple[Any, ...], ...]

_KINDS: dict[str, tuple[Any, ...]] = {
    "clip": (CLIP,),
    "elu": (ELU,),
    "gelu": (GELU_ERF,),
    "gelu_tanh": (GELU_TANH,),
    "hard_sigmoid": (HARD_SIGMOID,),
    "hard_swish": (HARD_SWISH, 1 / 6, 0.5),
    "leaky_relu": (RELU,),
    "mish": (MISH,),
    "relu": (RELU,),
    "scale": (LINEAR,),
    "sigmoid": (LOGISTIC,),
    "silu": (SWISH, 1.0),
    "softplus": (SOFT_RELU, 1.0),
    "tanh": (TANH,),
}


def post_ops(
    api: Api,
    after: After,
    residual: Handle | None,
    integers: tuple[float, int, int] | None = None,
) -> PostOps | None:
    """Return the post-ops for ``after``, None if unsupported.

    The addend has the layout ``residual``, or without it is the previous content of the
    result memory; then it may be ``integers`` of a scale, a zero point and a kind.
    """
    if not after:
        return None
    operations = PostOps(api)
    for name, *numbers in after:
        if name == "add":
            if residual is None:
                operations.sum(*(integers or ()))
            else:
                operations.binary(BINARY_ADD, residual)
        else:
            activations(operations, ((name, *numbers),))
    return operations


def activations(operations: PostOps, after: After) -> None:
    """Append post-ops without another operand."""
    for name, *numbers in after:
        operations.activation(*_KINDS[name], *numbers)


def activation_description(api: Api, after: After, line: Handle) -> Description | None:
    """Return a primitive for activations in the layout ``line``, or None."""
    (name, *numbers), *rest = after
    post = PostOps(api)
    activations(post, tuple(rest))
    kind, *parameters = *_KINDS[name], *numbers
    alpha, beta = (*parameters, 0.0, 0.0)[:2]
    return described(
        *(api, "eltwise_forward", api.engine, INFERENCE, kind),
        *(line, line, alpha, beta),
        post=post,
    )


def adds_first(after: After) -> bool:
    """Return whether the addend may be the previous content of the result memory.

    Much of the library's code adds that to the result before all other operations only.
    """
    return after[:1] == (("add",),)


def addend_index(after: After) -> int:
    """Return the index of the execution argument for the addend."""
    return POST_OPERATION * (after.index(("add",)) + 1) | SRC_1

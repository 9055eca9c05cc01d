"""Outputs of a step: the loss, and inputs of metrics."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from burn.backend.autodiff import Gradients
from burn.nn.module import Module
from burn.tensor import Tensor


class Classified(NamedTuple):
    """A loss with the scores [N, C, ...] and classes [N, ...] it is computed from."""

    loss: Tensor
    logits: Tensor
    targets: Tensor


class Regressed(NamedTuple):
    """A loss with the predictions and targets, of equal shape, it is computed from."""

    loss: Tensor
    predictions: Tensor
    targets: Tensor


def loss_of(output: Any) -> Tensor:
    """Return ``output`` itself if it is a tensor, else its ``loss``.

    Raises:
        TypeError: the output is neither.
    """
    loss = output if isinstance(output, Tensor) else field_of(output, "loss")
    if not isinstance(loss, Tensor):
        raise TypeError(
            "expected a loss, or a named tuple or dict with 'loss' such as "
            f"train.Classified(loss, logits, targets), got {describe_output(output)}"
        )
    return loss


def field_of(output: Any, name: str) -> Any:
    """Return a field of a named tuple or dict; None if there is none."""
    if isinstance(output, Mapping):
        return output.get(name)
    return getattr(output, name, None)


def describe_output(output: Any) -> str:
    """Return the type of an output, and the names of its fields if it has any."""
    kind = type(output).__name__
    fields = output if isinstance(output, Mapping) else getattr(output, "_fields", ())
    names = ", ".join(map(str, fields))
    return f"{kind} with {names}" if names else kind


def without_gradient(model: Module, gradients: Gradients) -> list[str]:
    """Return the paths of the trainable parameters that have no gradient."""
    return [
        path
        for path, box in model.parameters()
        if box.requires_grad and box not in gradients
    ]


def describe_untrained(paths: list[str]) -> str:
    """Return a message about trainable parameters without a gradient."""
    shown = ", ".join(paths[:4]) + (f" and {len(paths) - 4} more" * (len(paths) > 4))
    return (
        f"no gradient reaches {shown}: they stay as they are. The loss does not depend "
        "on them, or by operations without a gradient, as quantize and argmax; "
        "model.freeze(path) says that this is wanted"
    )

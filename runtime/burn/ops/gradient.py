"""Derivatives of functions of tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from burn.backend.autodiff import Autodiff, gradients_of
from burn.ops.creation import zeros_like
from burn.tensor import Tensor

__all__ = ["gradient"]


def gradient(
    function: Callable[..., Any], xs: Sequence[Any], others: Sequence[Any] = ()
) -> tuple[Any, ...]:
    """Return the derivative of the sum of ``function(*xs, *others)`` by each of ``xs``.

    Each has the shape and dtype of its x; it is zero if the result does not depend on
    that. ``others`` are constants. Nested calls compute higher derivatives.
    """
    home = max((x.backend for x in xs), key=lambda backend: backend.level)
    tape = Autodiff(home, fresh=True)
    leaves = [Tensor(x, tape).leaf(None) for x in xs]
    gradients = gradients_of(function(*leaves, *others).sum())
    return tuple(
        zeros_like(x) if gradients.get(leaf) is None else gradients.get(leaf)
        for x, leaf in zip(xs, leaves, strict=True)
    )

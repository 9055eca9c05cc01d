"""Kernels that are called whenever a plan runs."""

from typing import Any

import numpy as np

from burn.ops.support import Array
from burn.plan.replay import arguments
from burn.plan.tree import Step, UnforeseenError


def several(step: Step, found: Any) -> list[Any]:
    """The results of a step's kernel as a list."""
    return list(found) if step.primitive.outputs != 1 else [found]


def check(step: Step, results: list[Any]) -> None:
    """Compare results with what was recorded.

    Raises:
        UnforeseenError: they are of other shapes or dtypes.
    """
    for array, shape, dtype in zip(results, step.shapes, step.dtypes, strict=True):
        if np.shape(array) != shape or array.dtype != dtype:
            raise UnforeseenError(f"{step.primitive.name} gives {np.shape(array)}")


def call_kernel(
    kernel: Any, template: list[Any], values: Any, step: Step, targets: list[Array]
) -> None:
    """Call a kernel, and copy its results to where they are expected."""
    args = [arguments(arg, values) for arg in template]
    found = several(step, kernel(*args, **step.static))
    check(step, found)
    for target, array in zip(targets, found, strict=True):
        np.copyto(target, array)

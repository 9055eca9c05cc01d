"""Calls of whole kernels in each run of a plan."""

from typing import Any

import numpy as np

from burn.backend.cpu.bind.numpy_capture import UntraceableError, traced
from burn.ops.support import Array
from burn.plan.plan_ir import Slot, Step, UnforeseenError
from burn.plan.replay import arguments, has_slots


def output_list(step: Step, output: Any) -> list[Any]:
    """Return the results of a step's kernel as a list."""
    return list(output) if step.primitive.outputs != 1 else [output]


def check(step: Step, results: list[Any]) -> None:
    """Compare results with the recording.

    Raises:
        UnforeseenError: shapes or dtypes differ.
    """
    for array, shape, dtype in zip(results, step.shapes, step.dtypes, strict=True):
        if np.shape(array) != shape or array.dtype != dtype:
            raise UnforeseenError(f"{step.primitive.name} gives {np.shape(array)}")


def call_kernel(
    kernel: Any, template: list[Any], values: Any, step: Step, targets: list[Array]
) -> None:
    """Call a kernel, and copy its results to ``targets``."""
    args = [arguments(arg, values) for arg in template]
    outputs = output_list(step, kernel(*args, **step.static))
    check(step, outputs)
    for target, array in zip(targets, outputs, strict=True):
        np.copyto(target, array)


def traced_arguments(
    arg: Any, values: dict[int, Array], constants: set[int], tracer: Any
) -> Any:
    """Return an argument of a step with traced arrays in its slots.

    ``tracer`` is a weak proxy: views of what is traced are in calls of a plan, and
    NumPy's arrays take no part in the search for cycles.

    Raises:
        UntraceableError: a bound of a slice is computed.
    """
    kind = type(arg)
    if kind is Slot:
        array = values[arg.place]
        if type(array) is not np.ndarray:
            return array
        return traced(array, tracer, arg.place in constants)
    if kind is np.ndarray and arg.ndim > 1:  # others may be read in Python, as axes are
        return traced(arg, tracer, constant=True)
    if kind is list or kind is tuple:
        return kind([traced_arguments(a, values, constants, tracer) for a in arg])
    if has_slots(arg):
        raise UntraceableError("a bound of a slice is computed")
    return arg

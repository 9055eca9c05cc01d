"""Calls of whole kernels in each run of a plan."""

from collections.abc import Callable
from typing import Any

import numpy as np

from burn.backend.cpu.bind.numpy_capture import UntraceableError, traced_view
from burn.ops.support import Array
from burn.plan.plan_ir import Slot, Step, UnforeseenError
from burn.plan.replay import arguments, has_bounds, has_slots


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
            raise _unforeseen_result(step, array)


def _unforeseen_result(step: Step, array: Any) -> UnforeseenError:
    return UnforeseenError(f"{step.primitive.name} gives {np.shape(array)}")


class StepCall:
    """A call of a step's whole kernel in each run; copies results to ``targets``.

    ``values`` are the arrays of the slots in ``template``, in memory that stays.
    """

    __slots__ = (
        *("_args", "_kernel", "_outputs", "_static", "_targets", "_template"),
        *("_values", "step"),
    )

    def __init__(
        self,
        kernel: Callable[..., Any],
        template: list[Any],
        values: dict[int, Array],
        step: Step,
        targets: list[Array],
    ) -> None:
        self._kernel, self.step, self._targets = kernel, step, targets
        self._template, self._values = template, values
        self._static = step.static
        # Bounds of slices are read in each run, all else is in the same memory.
        is_fixed = not has_bounds(template)
        self._args = arguments(template, values) if is_fixed else None
        self._outputs = tuple(zip(targets, step.shapes, step.dtypes, strict=True))

    @property
    def is_fixed(self) -> bool:
        """Whether the arguments are the same arrays and numbers in each run."""
        return self._args is not None

    @property
    def targets(self) -> list[Array]:
        """The memory of the results."""
        return self._targets

    @property
    def args(self) -> list[Any]:
        """The arguments of the kernel now."""
        args: list[Any] = arguments(self._template, self._values)
        return args

    def with_kernel(self, kernel: Callable[..., Any]) -> "StepCall":
        """Return the call of another kernel of the same primitive."""
        operands = (self._template, self._values)
        return StepCall(kernel, *operands, self.step, self._targets)

    def __call__(self) -> None:
        args = self.args if self._args is None else self._args
        results = self._kernel(*args, **self._static)
        if self.step.primitive.outputs == 1:
            results = (results,)
        for array, (target, shape, dtype) in zip(results, self._outputs, strict=True):
            if np.shape(array) != shape or array.dtype != dtype:
                raise _unforeseen_result(self.step, array)
            np.copyto(target, array)


def traced_arguments(
    arg: Any, values: dict[int, Array], constants: set[int], tracer: Any
) -> Any:
    """Return an argument of a step with traced arrays in its slots.

    ``tracer`` is a weak proxy: the calls of a plan refer to views of traced arrays, and
    Python's garbage collector does not search NumPy's arrays for cycles.

    Raises:
        UntraceableError: a bound of a slice is computed.
    """
    kind = type(arg)
    if kind is Slot:
        array = values[arg.place]
        if type(array) is not np.ndarray:
            return array
        return traced_view(array, tracer, arg.place in constants)
    if kind is np.ndarray and arg.ndim > 1:  # others may be read in Python, as axes are
        return traced_view(arg, tracer, constant=True)
    if kind is list or kind is tuple:
        return kind([traced_arguments(a, values, constants, tracer) for a in arg])
    if has_slots(arg):
        raise UntraceableError("a bound of a slice is computed")
    return arg

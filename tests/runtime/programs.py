"""The programs that compiled functions run on the CPU."""

from typing import Any

import numpy as np

from burn.backend.cpu.bind.calls import StepCall
from burn.backend.cpu.bind.executable import CpuExecutable
from burn.backend.cpu.bind.optimization import cpu_passes, split_epilogue
from burn.backend.cpu.bind.program import Program
from burn.plan.passes import run_passes
from burn.plan.passes.graph import Inputs
from burn.plan.plan_ir import Segment


def executables_of(compiled: Any) -> list[CpuExecutable]:
    """Return the executable of each plan of ``compiled``, the oldest first."""
    bound = [recordings.executable for recordings in compiled._plans.values()]
    assert all(isinstance(executable, CpuExecutable) for executable in bound)
    return bound


def programs_of(compiled: Any) -> list[Program]:
    """The program of each plan of ``compiled``, the oldest first."""
    programs = [executable.program for executable in executables_of(compiled)]
    return [program for program in programs if program is not None]


def program_of(compiled: Any) -> Program:
    """The program of the only plan of ``compiled``."""
    (program,) = programs_of(compiled)
    return program


def calls_of(compiled: Any) -> list[Any]:
    """The functions that the program of the only plan of ``compiled`` calls."""
    node = program_of(compiled)._node
    assert node is not None
    calls = [entry.call for entry in node.sequence._calls]
    return [
        StepCall if type(call) is StepCall else getattr(call, "func", call)
        for call in calls
    ]


def has_numpy_products(compiled: Any) -> bool:
    """Return whether the only plan calls NumPy for products, or a kernel as a whole."""
    return any(call in (np.matmul, StepCall) for call in calls_of(compiled))


def optimized(
    compiled: Any, inputs: Inputs | None = None, *, may_split: bool = True
) -> Segment:
    """The only plan of ``compiled`` after the passes for the CPU.

    They know the shapes and dtypes of ``inputs``, by default those of the arguments.
    Unless they ``may_split``, activations stay in layers, as with oneDNN.
    """
    (executable,) = executables_of(compiled)
    plan = executable.plan
    plan_inputs = plan.inputs if inputs is None else inputs
    every = tuple(
        each for each in cpu_passes(plan) if may_split or each is not split_epilogue
    )
    return run_passes(plan.root, plan_inputs, every)


def kernels(compiled: Any) -> list[str]:
    """Return the kernels of all calls of the only plan, "" for NumPy's functions."""
    node = program_of(compiled)._node
    assert node is not None
    return [entry.kernel for entry in node.sequence._calls]

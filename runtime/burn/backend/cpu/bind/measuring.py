"""Timed calls of a bound plan, and the reasons why no faster engine computes them."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from burn.backend.cpu.bind.calls import StepCall
from burn.backend.cpu.bind.finite import expect_numbers
from burn.backend.cpu.bind.magnitudes import expect_few_within, expect_within
from burn.backend.cpu.bind.sequence import Sequence
from burn.backend.cpu.jit.calls import parse_call
from burn.backend.cpu.jit.entries import GENERATED, Entry
from burn.backend.cpu.jit.policy import KernelPolicy
from burn.backend.cpu.onednn.binding.engine import current

if TYPE_CHECKING:
    from burn.plan.profile import Profiler

#: The functions that leave a program for numbers outside of its limits.
CHECKS = (expect_numbers, expect_few_within, expect_within)
#: The reason why a supported call is not part of a generated kernel.
ADVICE = {
    KernelPolicy.NONE: "generated=True compiles it",
    KernelPolicy.PROFITABLE: "a kernel saves little; generated=True compiles it",
}


def measure_calls(
    sequence: Sequence, profiler: "Profiler", policy: KernelPolicy
) -> None:
    """Add timers of ``profiler`` to the calls of a bound and fused sequence."""

    def measured(entry: Entry) -> Callable[[], Any]:
        steps, kernel = entry.steps, entry.kernel
        if kernel:
            engine = "LLVM" if kernel == GENERATED else "oneDNN"
            return profiler.measured(entry.call, steps, engine, kernel)
        name = _name(entry)
        if type(entry.call) is partial and entry.call.func in CHECKS:
            return profiler.measured(entry.call, steps, "check", name)
        recorded = (sequence.reasons.get(id(step)) for step in steps)
        reasons = [reason for reason in recorded if reason]
        if current() is None:
            reasons = ["oneDNN is not loaded"]
        if type(entry.call) is StepCall:
            reasons.append("its kernel is called as a whole")
        elif parse_call(entry.call) is None:
            reasons.append("no generated kernel for this function")
        elif policy in ADVICE:
            reasons.append(ADVICE[policy])
        return profiler.measured(entry.call, steps, "NumPy", name, reasons)

    sequence.replace(measured)


def _name(entry: Entry) -> str:
    """Return the name of the function that an entry calls."""
    function: Any = entry.call
    if type(function) is StepCall:
        return f"{function.step.primitive.kernel.__name__}()"
    while type(function) is partial:
        nested = [arg for arg in function.args if type(arg) is partial]
        function = nested[0] if nested else function.func
    owner = getattr(function, "__self__", None)
    owned = getattr(owner, "__name__", "") if owner is not None else ""
    name: str = getattr(function, "__name__", type(function).__name__)
    return f"{owned}.{name}" if owned and owned != "numpy" else name

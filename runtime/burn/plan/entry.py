"""``burn.compile``, with the precisions that it offers."""

from collections.abc import Callable, Iterable
from typing import Any, ParamSpec, TypeVar

from burn.defaults import default_device
from burn.plan.calibration import arguments_of, compared
from burn.plan.compiled import Compiled
from burn.plan.passes import PRECISIONS, Pass
from burn.plan.passes.precision.calibrated import Calibrated, Observing, Ranges

P = ParamSpec("P")
R = TypeVar("R")


def compile(
    function: Callable[P, R],
    *,
    precision: str = "float32",
    calibration: Iterable[Any] = (),
    generated: bool = False,
) -> Compiled[P, R]:
    """``function``, or a module, as a plan that is replayed without Python's detours.

    :class:`Compiled` says what a plan is. With ``precision`` float32 results are those
    of ``function``; less is for the CPU.

    With ``"bf16"`` convolutions and products of matrices, and what is between them, are
    of bfloat16, those of gradients as well; boxes keep their dtype.

    With ``"int8"`` convolutions and linear layers are of integers: by the scales of a
    model that quantizes itself, elsewhere by ``calibration``. Those are examples of
    arguments, each a tuple or a single tensor, whose largest numbers fill the range;
    :attr:`Compiled.accuracy` says what this costs on them. A function of integers sets
    no boxes.

    With ``generated`` kernels on the CPU, NumPy's functions that oneDNN has nothing for
    become loops over memory, on all threads, that LLVM compiles at the first call
    (about 0.05 s each, equal ones once): chains of operations on elements and of sums
    and extremes over axes. This needs the extra ``burn-runtime[jit]``.

    Raises:
        ImportError: ``generated`` kernels without that extra.
        ValueError: there is no such ``precision``, or no plan to calibrate.
        TypeError: an example is neither a tuple nor a tensor.
    """
    if precision not in PRECISIONS:
        names = ", ".join(map(repr, PRECISIONS))
        raise ValueError(f"expected a precision of {names}: {precision!r}")
    samples = [arguments_of(sample) for sample in calibration]
    if samples and precision != "int8":
        raise ValueError(f"expected no calibration with precision {precision!r}")
    default_device().check_compile_options(generated=generated)
    if samples:
        return _calibrated(function, samples, generated)
    return Compiled(function, precision, generated=generated)


def _calibrated(
    function: Callable[P, R], samples: list[tuple[Any, ...]], generated: bool
) -> Compiled[P, R]:
    """A function with integers by the ranges that are seen in ``samples``."""
    ranges = Ranges()
    observing = Compiled(function, "int8", (Observing(ranges),), observed=True)
    watch: Callable[..., R] = observing
    expected = [watch(*sample) for sample in samples]
    if observing.notes or not len(ranges):
        why = observing.notes or ["no layer with weights was seen in a plan"]
        raise ValueError(f"the function cannot be calibrated: {'; '.join(why)}")
    lowering: tuple[Pass, ...] = (Calibrated(ranges), *PRECISIONS["int8"])
    compiled = Compiled(function, "int8", lowering, generated=generated)
    compiled.accuracy = compared(compiled, samples, expected)
    return compiled

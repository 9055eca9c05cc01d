"""``burn.compile``, with its options for precision."""

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
    generated: bool | None = None,
) -> Compiled[P, R]:
    """Return a compiled version of ``function`` (a callable or a module).

    :class:`Compiled` describes plans. With ``precision="float32"`` the results are
    those of ``function``; lower precisions are implemented on the CPU only.

    With ``"bf16"``, convolutions, matrix products and the operations between them run
    in bfloat16, in the backward pass too; boxes keep their dtype.

    With ``"int8"``, convolutions and linear layers run on integers: with the scales of
    a model that quantizes itself, otherwise with scales from ``calibration``. These are
    sample arguments, each a tuple or a single tensor; the largest observed magnitudes
    define the scales. :attr:`Compiled.accuracy` reports the error on the samples. An
    int8 function sets no boxes.

    With ``generated``, LLVM compiles chains of elementwise operations and reductions
    that oneDNN does not implement to multithreaded loops on the CPU. A kernel takes
    about 0.03 s to compile at the first call; equal kernels are compiled once. This
    needs the extra ``burn-runtime[jit]``. Without an argument, and with that extra
    installed, a plan without gradients compiles the kernels that are estimated to save
    their compilation within 20 000 calls.

    Raises:
        ImportError: ``generated`` is set and the extra is not installed.
        ValueError: ``precision`` is unknown, or there is no plan to calibrate.
        TypeError: a sample is neither a tuple nor a tensor.
    """
    if precision not in PRECISIONS:
        names = ", ".join(map(repr, PRECISIONS))
        raise ValueError(f"expected a precision of {names}: {precision!r}")
    samples = [arguments_of(sample) for sample in calibration]
    if samples and precision != "int8":
        raise ValueError(f"expected no calibration with precision {precision!r}")
    default_device().check_compile_options(generated=bool(generated))
    if samples:
        return _calibrated(function, samples, generated)
    return Compiled(function, precision, generated=generated)


def _calibrated(
    function: Callable[P, R], samples: list[tuple[Any, ...]], generated: bool | None
) -> Compiled[P, R]:
    """Return an int8 function that is calibrated with the ranges observed on
    ``samples``.
    """
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

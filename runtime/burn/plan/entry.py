"""``burn.compile``, with its options for precision."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from burn.defaults import default_device
from burn.plan.compiled import Compiled
from burn.plan.precisions import lowering_passes

if TYPE_CHECKING:
    from burn.plan.passes.graph import Pass

P = ParamSpec("P")
R = TypeVar("R")


def compile(
    function: Callable[P, R],
    *,
    precision: str = "float32",
    calibration: Iterable[Any] = (),
    generated: bool | None = None,
    threads: int | None = None,
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
    that oneDNN does not implement to multithreaded loops on the CPU (extra
    ``burn-runtime[jit]``). Without an argument, and with that extra installed, a plan
    without gradients compiles the kernels that are estimated to save their compilation,
    of 0.03 s each, within 50 000 calls. It does so in the third call of a signature.

    With ``threads``, at most so many threads compute a call on the CPU: those of
    oneDNN, generated kernels and NumPy's BLAS (extra ``burn-runtime[threads]``).

    Raises:
        ImportError: ``generated`` or ``threads`` is set and its extra is not installed.
        ValueError: ``precision`` is unknown, ``threads`` is below 1, or there is no
            plan to calibrate.
        TypeError: a sample is neither a tuple nor a tensor.
    """
    samples = list(calibration)
    _check_options(precision, samples, threads)
    default_device().check_compile_options(generated=bool(generated), threads=threads)
    options: dict[str, Any] = {"generated": generated, "threads": threads}
    if samples:
        return _calibrated(function, samples, options)
    return Compiled(function, precision, **options)


def _check_options(precision: str, samples: list[Any], threads: int | None) -> None:
    """Raise ValueError if options have wrong values or contradict each other."""
    lowering_passes(precision)
    if samples and precision != "int8":
        raise ValueError(f"expected no calibration with precision {precision!r}")
    if threads is not None and threads < 1:
        raise ValueError(f"expected at least one of threads: {threads}")


def _calibrated(
    function: Callable[P, R], batches: list[Any], options: dict[str, Any]
) -> Compiled[P, R]:
    """Return an int8 function that is calibrated with the ranges observed on
    the samples.
    """
    from burn.plan.calibration import compare_outputs, sample_arguments
    from burn.plan.passes.precision.calibrated import Calibrated, RangeObserver, Ranges

    samples = [sample_arguments(sample) for sample in batches]
    ranges = Ranges()
    observing = Compiled(function, "int8", (RangeObserver(ranges),), observed=True)
    watch: Callable[..., R] = observing
    expected = [watch(*sample) for sample in samples]
    if observing.notes or not len(ranges):
        why = observing.notes or ["no layer with weights was seen in a plan"]
        raise ValueError(f"the function cannot be calibrated: {'; '.join(why)}")
    lowering: tuple[Pass, ...] = (Calibrated(ranges), *lowering_passes("int8"))
    compiled = Compiled(function, "int8", lowering, **options)
    compiled.accuracy = compare_outputs(compiled, samples, expected)
    return compiled

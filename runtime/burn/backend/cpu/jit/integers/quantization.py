"""Quantization to 8 bits as machine code, with the rounding of NumPy's functions."""

from functools import cache, partial

import numpy as np

from burn.backend.cpu.jit.images.vectors import splat
from burn.backend.cpu.jit.native import FunctionWriter, kernel_of
from burn.backend.cpu.jit.source import Kernel
from burn.backend.cpu.jit.writer import ENTRIES, BranchWriter, part_source
from burn.backend.cpu.onednn.binding.memory import address
from burn.dtypes import integer_limits
from burn.ops.support import Array

#: The floats of an iteration, whose results fill a register. The last ones overlap with
#: those before them.
LANES = 32
_KIND = f"<{LANES} x float>"
#: The most parts of a kernel.
PARTS = 32
#: The costs of an element, in additions.
_COMPARED, _ROUNDED = 1, 4


def extremes_kernel(x: Array, extremes: Array) -> Kernel | None:
    """Return the kernel of the least and the largest numbers of parts of ``x``.

    ``extremes`` is [parts, 2]. None if there are few numbers.
    """
    return _kernel(_extremes_source(), (x, extremes), len(extremes), _COMPARED)


def rounding_kernel(
    x: Array, scale: Array, zero_point: Array | None, out: Array
) -> Kernel | None:
    """Return the kernel of ``x / scale`` rounded, plus a zero point, in 8 bits.

    Arrays have the same memory order, without gaps. None if there are few numbers.
    """
    dtype = None if zero_point is None else zero_point.dtype
    is_signed = None if dtype is None else dtype == np.int8
    text = _rounding_source(is_signed, out.dtype)
    return _kernel(text, (x, scale, zero_point, out), PARTS, _ROUNDED)


def scale_kernel(extremes: Array, scale: Array, zero_point: Array) -> Kernel:
    """Return the kernel of the scale and the zero point of a range."""
    arrays = [extremes, scale, zero_point]
    return kernel_of(_scale_source(), (len(extremes),), extremes.size, arrays)


def _kernel(
    text: str, arrays: tuple[Array | None, ...], parts: int, cost: int
) -> Kernel | None:
    x = arrays[0]
    if x is None or x.size < LANES:
        return None
    units = -(-x.size // LANES)
    addresses = (0 if array is None else address(array) for array in arrays)
    words = (parts, *addresses, units, x.size)
    return Kernel(text, (), words, cost * x.size, parts, owned=arrays)


def _source(body: str) -> str:
    entries = ENTRIES.format(
        loads="  %parts = load i64, ptr %data", given="ptr %data, "
    )
    return "\n".join([body, entries])


def _places(to: BranchWriter, unit: str, pointer: str, size: int) -> str:
    """Return a pointer to the numbers of a unit, of ``size`` bytes each."""
    last = to.do(f"sub i64 %size, {LANES}")
    first = to.limited(to.times(unit, str(LANES)), last, "smin")
    return to.at(pointer, to.times(first, str(size)))


@cache
def _extremes_source() -> str:
    pointers = ("x", "extremes")

    def emit(to: BranchWriter, part: str, bounds: tuple[str, str]) -> None:
        cells = {"minimum": "%low.cell", "maximum": "%high.cell"}
        start = _places(to, bounds[0], "%x", 4)
        first = to.do(f"load {_KIND}, ptr {start}, align 4")
        for cell in cells.values():
            to.head.append(f"  {cell} = alloca {_KIND}")
            to.lines.append(f"  store {_KIND} {first}, ptr {cell}")
        with to.counting(*bounds) as unit:
            x = to.do(f"load {_KIND}, ptr {_places(to, unit, '%x', 4)}, align 4")
            for name, cell in cells.items():
                before = to.do(f"load {_KIND}, ptr {cell}")
                given = f"{_KIND} {before}, {_KIND} {x}"
                both = to.do(f"call {_KIND} @llvm.{name}.v{LANES}f32({given})")
                to.lines.append(f"  store {_KIND} {both}, ptr {cell}")
        place = to.at("%extremes", to.times(part, "8"))
        for offset, (name, cell) in zip("04", cells.items(), strict=True):
            all_ = to.do(f"load {_KIND}, ptr {cell}")
            reduce = f"@llvm.vector.reduce.f{name}.v{LANES}f32({_KIND} {all_})"
            least = to.do(f"call float {reduce}")
            to.lines.append(f"  store float {least}, ptr {to.at(place, offset)}")

    body = part_source((pointers, ("units", "size")), "%units", emit)
    return _source(body)


@cache
def _rounding_source(is_signed: bool | None, dtype: np.dtype[np.generic]) -> str:
    """Return the source for a zero point, None if there is none, and a result."""
    pointers = ("x", "scale", "zero.point", "out")
    limits = integer_limits(dtype)
    emit = partial(_emit_rounding, is_signed, (float(limits.min), float(limits.max)))
    body = part_source((pointers, ("units", "size")), "%units", emit)
    return _source(body)


def _emit_rounding(
    is_signed: bool | None,
    limits: tuple[float, float],
    to: BranchWriter,
    part: str,
    bounds: tuple[str, str],
) -> None:
    """Emit the results of the units between bounds."""
    scale = splat(to, to.do("load float, ptr %scale"), LANES)
    shift = ""
    if is_signed is not None:
        byte = to.do("load i8, ptr %zero.point")
        convert = "sitofp" if is_signed else "uitofp"
        shift = splat(to, to.do(f"{convert} i8 {byte} to float"), LANES)
    low, high = (f"splat (float {limit})" for limit in limits)
    with to.counting(*bounds) as unit:
        x = to.do(f"load {_KIND}, ptr {_places(to, unit, '%x', 4)}, align 4")
        x = to.do(f"fdiv {_KIND} {x}, {scale}")
        x = to.do(f"call {_KIND} @llvm.rint.v{LANES}f32({_KIND} {x})")
        if shift:
            x = to.do(f"fadd {_KIND} {x}, {shift}")
        given = f"{_KIND} {x}, {_KIND} {low}"
        x = to.do(f"call {_KIND} @llvm.maxnum.v{LANES}f32({given})")
        is_high = to.do(f"fcmp ogt {_KIND} {x}, {high}")
        x = to.do(f"select <{LANES} x i1> {is_high}, {_KIND} {high}, {_KIND} {x}")
        whole = to.do(f"fptosi {_KIND} {x} to <{LANES} x i32>")
        bytes_ = to.do(f"trunc <{LANES} x i32> {whole} to <{LANES} x i8>")
        place = _places(to, unit, "%out", 1)
        to.lines.append(f"  store <{LANES} x i8> {bytes_}, ptr {place}, align 1")


@cache
def _scale_source() -> str:
    to = FunctionWriter()
    extremes, scale, zero_point = (to.word("ptr") for _ in range(3))
    count, single = to.word(), np.dtype(np.float32)
    low, high = to.cell(single), to.cell(single)
    for cell in (low, high):
        to.set(cell, single, "0.0")
    with to.counting("0", count) as part:
        for cell, name, offset in ((low, "minimum", "0"), (high, "maximum", "4")):
            place = to.at(extremes, (part, "8"), ("1", offset))
            to.accumulate(name, cell, single, to.load(single, place))
    least, largest = to.get(low, single), to.get(high, single)
    width = to.do(f"fsub float {largest}, {least}")
    quotient = to.do(f"fdiv float {width}, 255.0")
    is_zero = to.do(f"fcmp oeq float {largest}, {least}")
    step = to.do(f"select i1 {is_zero}, float 1.0, float {quotient}")
    to.store(single, step, scale)
    place = to.do(f"fdiv float {to.do(f'fneg float {least}')}, {step}")
    place = to.do(f"call float @llvm.maximum.f32(float {place}, float 0.0)")
    place = to.do(f"call float @llvm.minimum.f32(float {place}, float 255.0)")
    is_number = to.do(f"fcmp ord float {place}, 0.0")
    place = to.do(f"select i1 {is_number}, float {place}, float 0.0")
    whole = to.do(
        f"fptosi float {to.do(f'call float @llvm.rint.f32(float {place})')} to i32"
    )
    byte = to.do(f"trunc i32 {whole} to i8")
    to.lines.append(f"  store i8 {byte}, ptr {zero_point}")
    return to.text()

"""Resampling along one axis as machine code: weighted sums of a few lines."""

from functools import cache, partial

from burn.backend.cpu.jit.images.vectors import splat
from burn.backend.cpu.jit.machine import machine
from burn.backend.cpu.jit.operands import ResamplingOperands
from burn.backend.cpu.jit.source import Kernel
from burn.backend.cpu.jit.writer import ENTRIES, EXPLICIT, BranchWriter, part_source
from burn.backend.cpu.onednn.binding.memory import address

#: The most parts of a kernel.
_PARTS = 64


def resampling_kernel(given: ResamplingOperands) -> Kernel:
    """Return the kernel of the weighted sums of lines."""
    batch, extent, size = given.lines.shape
    results, count = given.taps.shape
    widths = (width for width in (16, 8, 4) if width <= machine().floats)
    lanes = next(width for width in widths if width <= size)
    offsets = given.taps * (4 * size)
    arrays = (given.lines, offsets, given.weights, given.out)
    parts = min(batch * results, _PARTS)
    words = (parts, *map(address, arrays), batch * results)
    words = (*words, results, 4 * extent * size, 4 * size, size)
    return Kernel(
        _source(lanes, count), (), words, given.out.size * count, parts, owned=arrays
    )


@cache
def _source(lanes: int, taps: int) -> str:
    """Return the source for registers of ``lanes`` floats and sums of ``taps``."""
    words = (
        ("lines", "offsets", "weights", "out"),
        ("count", "results", "image.bytes", "line.bytes", "size"),
    )
    body = part_source(words, "%count", partial(_emit, lanes, taps))
    entries = ENTRIES.format(
        loads="  %parts = load i64, ptr %data", given="ptr %data, "
    )
    return "\n".join([EXPLICIT, body, entries])


def _emit(
    lanes: int, taps: int, to: BranchWriter, part: str, bounds: tuple[str, str]
) -> None:
    """Emit the lines of a part of the results."""
    kind = f"<{lanes} x float>"
    with to.counting(*bounds) as line:
        image = to.do(f"udiv i64 {line}, %results")
        first = to.times(to.do(f"urem i64 {line}, %results"), str(taps))
        start = to.at("%lines", to.times(image, "%image.bytes"))
        target = to.at("%out", to.times(line, "%line.bytes"))
        sources, factors = [], []
        for tap in range(taps):
            place = to.do(f"add i64 {first}, {tap}")
            pointer = to.do(f"getelementptr i64, ptr %offsets, i64 {place}")
            sources.append(to.at(start, to.do(f"load i64, ptr {pointer}")))
            pointer = to.do(f"getelementptr float, ptr %weights, i64 {place}")
            factors.append(splat(to, to.do(f"load float, ptr {pointer}"), lanes))
        last = to.do(f"sub i64 %size, {lanes}")
        with to.counting("0", "%size", lanes) as column:
            # The last elements overlap with those before them.
            offset = to.times(to.limited(column, last, "smin"), "4")
            total = "zeroinitializer"
            for source, factor in zip(sources, factors, strict=True):
                x = to.do(f"load {kind}, ptr {to.at(source, offset)}, align 4")
                operands = f"{kind} {x}, {kind} {factor}, {kind} {total}"
                total = to.do(f"call {kind} @llvm.fmuladd.v{lanes}f32({operands})")
            to.lines.append(
                f"  store {kind} {total}, ptr {to.at(target, offset)}, align 4"
            )

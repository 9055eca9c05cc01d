"""The LLVM IR of vectors of floats, whose last ones may be fewer."""

from collections.abc import Callable

from burn.backend.cpu.jit.writer import BranchWriter


def splat(to: BranchWriter, number: str, lanes: int) -> str:
    """Return a vector of one float."""
    kind = f"<{lanes} x float>"
    one = to.do(f"insertelement {kind} poison, float {number}, i64 0")
    zeros = f"<{lanes} x i32> zeroinitializer"
    return to.do(f"shufflevector {kind} {one}, {kind} poison, {zeros}")


def first_lanes(to: BranchWriter, count: str, lanes: int) -> str:
    """Return the mask of the first ``count`` lanes."""
    kind = f"<{lanes} x i32>"
    numbers = ", ".join(f"i32 {lane}" for lane in range(lanes))
    narrow = to.do(f"trunc i64 {count} to i32")
    one = to.do(f"insertelement {kind} poison, i32 {narrow}, i64 0")
    whole = to.do(f"shufflevector {kind} {one}, {kind} poison, {kind} zeroinitializer")
    return to.do(f"icmp slt {kind} <{numbers}>, {whole}")


def loaded(to: BranchWriter, pointer: str, mask: str, lanes: int) -> str:
    """Return the floats in memory that ``mask`` selects, and zeros."""
    kind = f"<{lanes} x float>"
    return to.do(
        f"call {kind} @llvm.masked.load.v{lanes}f32.p0(ptr {pointer}, i32 4, "
        f"<{lanes} x i1> {mask}, {kind} zeroinitializer)"
    )


def in_place(
    to: BranchWriter,
    place: tuple[str, str],
    lanes: int,
    function: Callable[[str], str],
) -> None:
    """Emit a function of vectors for the floats at a pointer, of which there are some.

    Only the last vector is masked, since some processors store others in less time.
    """
    (start, count), kind = place, f"<{lanes} x float>"
    with to.counting("0", count, lanes) as first:
        left = to.do(f"sub i64 {count}, {first}")
        pointer = to.do(f"getelementptr float, ptr {start}, i64 {first}")
        with to.when(to.do(f"icmp uge i64 {left}, {lanes}")):
            result = function(to.do(f"load {kind}, ptr {pointer}, align 4"))
            to.lines.append(f"  store {kind} {result}, ptr {pointer}, align 4")
        with to.when(to.do(f"icmp ult i64 {left}, {lanes}")):
            mask = first_lanes(to, left, lanes)
            result = function(loaded(to, pointer, mask, lanes))
            to.lines.append(
                f"  call void @llvm.masked.store.v{lanes}f32.p0({kind} {result}, "
                f"ptr {pointer}, i32 4, <{lanes} x i1> {mask})"
            )


def declarations(widths: set[int]) -> list[str]:
    """Return the declarations of intrinsics of vectors of so many floats."""
    lines = [f"declare i64 @llvm.{name}.i64(i64, i64)" for name in ("smin", "smax")]
    for lanes in sorted(widths):
        kind, mask, vector = f"<{lanes} x float>", f"<{lanes} x i1>", f"v{lanes}f32"
        lines += [
            f"declare {kind} @llvm.fmuladd.{vector}({kind}, {kind}, {kind})",
            f"declare {kind} @llvm.fma.{vector}({kind}, {kind}, {kind})",
            f"declare {kind} @llvm.masked.load.{vector}.p0(ptr, i32, {mask}, {kind})",
            f"declare void @llvm.masked.store.{vector}.p0({kind}, ptr, i32, {mask})",
        ]
    return lines

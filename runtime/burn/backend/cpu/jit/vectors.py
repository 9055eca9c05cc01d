"""Pieces of LLVM IR that the kernels of vectors of floats have in common."""

from collections.abc import Sequence

from burn.backend.cpu.jit.writer import ENTRIES

#: The functions of a kernel whose ``@part`` reads its words from ``%data``: the number
#: of parts, then those of ``word_loads``.
PART_ENTRIES = ENTRIES.format(
    loads="  %parts = load i64, ptr %data", given="ptr %data, "
)


def word_loads(pointers: Sequence[str], integers: Sequence[str]) -> str:
    """Return the instructions that read named words after the number of parts."""
    kinds = [*((one, "ptr") for one in pointers), *((one, "i64") for one in integers)]
    return "\n".join(
        f"  %{name}.at = getelementptr i64, ptr %data, i64 {number}\n"
        f"  %{name} = load {kind}, ptr %{name}.at"
        for number, (name, kind) in enumerate(kinds, 1)
    )


def vector_fields(lanes: int) -> dict[str, str]:
    """Return the fields of templates for vectors of ``lanes`` floats.

    ``mask`` are the last operands of a masked store of ``%mask``; ``masked`` sets this
    mask to the first ``%left`` lanes.
    """
    fields = {
        "kind": f"<{lanes} x float>",
        "lanes": str(lanes),
        "integers": f"<{lanes} x i32>",
        "bits": f"<{lanes} x i1>",
        "mask": f"i32 4, <{lanes} x i1> %mask",
        "splat": f"<{lanes} x i32> zeroinitializer",
        "numbers": lane_numbers(0, lanes),
    }
    left = _LEFT.format(**fields)
    return {**fields, "left": left, "masked": f"{left}\n{_MASK.format(**fields)}"}


def lane_numbers(first: int, lanes: int) -> str:
    """Return the elements of a vector: ``first`` and the integers after it."""
    return ", ".join(f"i32 {first + lane}" for lane in range(lanes))


_LEFT = """\
  %left.narrow = trunc i64 %left to i32
  %left.one = insertelement {integers} poison, i32 %left.narrow, i64 0
  %left.all = shufflevector {integers} %left.one, {integers} poison, {splat}"""
_MASK = "  %mask = icmp ult {integers} <{numbers}>, %left.all"


def vector_declarations(lanes: int) -> str:
    """Return the declarations of the intrinsics of vectors of ``lanes`` floats."""
    return _DECLARATIONS.format(**vector_fields(lanes))


_DECLARATIONS = """\
declare {kind} @llvm.fmuladd.v{lanes}f32({kind}, {kind}, {kind})
declare {kind} @llvm.masked.load.v{lanes}f32.p0(ptr, i32, {bits}, {kind})
declare void @llvm.masked.store.v{lanes}f32.p0({kind}, ptr, i32, {bits})"""

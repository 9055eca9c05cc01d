"""The LLVM IR of products of 8-bit integers."""

from functools import cache

from burn.backend.cpu.jit.images.convolution_source import Tiles, line_source
from burn.backend.cpu.jit.writer import ENTRIES, EXPLICIT, BranchWriter, part_source

#: The words of a kernel after the number of parts.
_POINTERS = ("x", "zero.point", "panels", "factors", "bias", "out", "scratch")
_INTEGERS = (
    *("units", "panel.count", "block", "rows", "depth", "outputs"),
    *("panel.bytes", "scratch.bytes"),
)
#: The numbers that are converted together, and may be written behind a row.
PADDING = 16
#: The pairs of a pass: the weights of a panel for it stay in the L1 cache.
PASS = 384
#: The bytes of a row of a pass: several lines of the cache, and no power of two.
ROW = 2 * (2 * PASS + 2 * PADDING)


@cache
def source_of(tiles: Tiles, *, is_signed: bool) -> str:
    """Return the source for numbers of int8 if ``is_signed``, else of uint8."""
    lanes = tiles.channels
    functions = [
        *(_tile(size, lanes) for size in tiles.pixels),
        line_source(tiles, "product", _PRODUCT.format(row=ROW)),
        part_source(
            (_POINTERS, _INTEGERS),
            "%units",
            lambda to, part, bounds: _blocks(to, (lanes, is_signed), part, bounds),
        ),
    ]
    entries = ENTRIES.format(
        loads="  %parts = load i64, ptr %data", given="ptr %data, "
    )
    mask, declared = f"<{lanes} x i1>", ["declare i64 @llvm.smin.i64(i64, i64)"]
    declared.append("declare i64 @llvm.smax.i64(i64, i64)")
    for name, vector in (("float", f"v{lanes}f32"), ("i32", f"v{lanes}i32")):
        kind = f"<{lanes} x {name}>"
        declared += [
            f"declare {kind} @llvm.masked.load.{vector}.p0(ptr, i32, {mask}, {kind})",
            f"declare void @llvm.masked.store.{vector}.p0({kind}, ptr, i32, {mask})",
        ]
    return "\n".join([EXPLICIT, *functions, entries, *declared, ""])


def _blocks(
    to: BranchWriter, form: tuple[int, bool], part: str, bounds: tuple[str, str]
) -> None:
    """Emit the products of the units between bounds: a block of rows and a panel each.

    All panels are multiplied by the numbers of a pass, which stay in the cache.
    """
    (first, last), count = bounds, "%panel.count"
    scratch = to.at("%scratch", to.times(part, "%scratch.bytes"))
    low = to.do(f"udiv i64 {first}, {count}")
    end = to.do(f"add i64 {last}, {count}")
    high = to.do(f"udiv i64 {to.do(f'sub i64 {end}, 1')}, {count}")
    with to.counting(low, high) as block:
        before = to.times(block, count)
        own = (
            to.limited(to.do(f"sub i64 {first}, {before}"), "0", "smax"),
            to.limited(to.do(f"sub i64 {last}, {before}"), count, "smin"),
        )
        start = to.times(block, "%block")
        rows = to.limited("%block", to.do(f"sub i64 %rows, {start}"), "smin")
        with to.counting("0", "%depth", 2 * PASS) as k:
            _widen(to, form[1], scratch, k, (start, rows))
            with to.counting(*own) as panel:
                _product(to, form[0], scratch, panel, k, (start, rows))


def _product(
    to: BranchWriter,
    lanes: int,
    scratch: str,
    panel: str,
    k: str,
    rows: tuple[str, str],
) -> None:
    """Emit the products of a pass from number ``k`` on, with a panel."""
    start, count = rows
    column = to.times(panel, str(lanes))
    skipped = to.times(column, "4")
    step = to.times("%outputs", "4")
    out = to.at(to.at("%out", to.times(start, step)), skipped)
    w = to.at("%panels", to.times(panel, "%panel.bytes"))
    w = to.at(w, to.times(k, str(2 * lanes)))
    factors, bias = (to.at(f"%{name}", skipped) for name in ("factors", "bias"))
    left = to.do(f"sub i64 %outputs, {column}")
    rest = to.do(f"sub i64 %depth, {k}")
    more = to.do(f"udiv i64 {to.do(f'add i64 {rest}, 1')}, 2")
    pairs = to.limited(more, str(PASS), "smin")
    is_first = to.do(f"icmp eq i64 {k}, 0")
    is_last = to.do(f"icmp ule i64 {rest}, {2 * PASS}")
    to.lines.append(
        f"  call void @product(ptr {scratch}, ptr {w}, ptr {out}, ptr {factors}, "
        f"ptr {bias}, i64 {pairs}, i64 {step}, i64 {left}, i1 {is_first}, "
        f"i1 {is_last}, i64 {count})"
    )


def _widen(
    to: BranchWriter, is_signed: bool, scratch: str, k: str, rows: tuple[str, str]
) -> None:
    """Emit the copy of the numbers of a pass from ``k`` on, less their zero point.

    The last of an odd number is followed by 0.
    """
    start, count = rows
    kind, extend = f"<{PADDING} x i16>", "sext" if is_signed else "zext"
    zero = to.do(f"trunc i32 {to.do('load i32, ptr %zero.point')} to i16")
    one = to.do(f"insertelement {kind} poison, i16 {zero}, i64 0")
    splat = f"<{PADDING} x i32> zeroinitializer"
    zeros = to.do(f"shufflevector {kind} {one}, {kind} poison, {splat}")
    size = to.limited(to.do(f"sub i64 %depth, {k}"), str(2 * PASS), "smin")
    whole = to.do(f"and i64 {size}, {-PADDING}")
    has_some = to.do(f"icmp ne i64 {whole}, 0")
    has_rest = to.do(f"icmp ult i64 {whole}, {size}")
    with to.counting("0", count) as row:
        number = to.do(f"add i64 {start}, {row}")
        source = to.at(to.at("%x", to.times(number, "%depth")), k)
        target = to.at(scratch, to.times(row, str(ROW)))
        for condition, bounds, width, shift in (
            (has_some, ("0", whole), PADDING, zeros),
            (has_rest, (whole, size), 1, zero),
        ):
            byte, wide = ("i8", "i16") if width == 1 else (f"<{width} x i8>", kind)
            with to.when(condition), to.counting(*bounds, width) as place:
                x = to.do(f"load {byte}, ptr {to.at(source, place)}, align 1")
                x = to.do(f"{extend} {byte} {x} to {wide}")
                x = to.do(f"sub {wide} {x}, {shift}")
                moved = to.at(target, to.times(place, "2"))
                to.lines.append(f"  store {wide} {x}, ptr {moved}, align 2")
        end = to.at(target, to.times(size, "2"))
        to.lines.append(f"  store i16 0, ptr {end}, align 2")


#: The parameters of a block of rows and a panel, the move to a row, the function of a
#: tile, and its arguments.
_PRODUCT = """
ptr %x, ptr %w, ptr %out, ptr %factors, ptr %bias, i64 %pairs, i64 %pixel, \
i64 %left, i1 %is.first, i1 %is.last, i64 %pixels
%x.done = mul i64 %i, {row}
tile
ptr %x.tile, ptr %w, ptr %out.tile, ptr %factors, ptr %bias, i64 %pairs, \
i64 %pixel, i64 %left, i1 %is.first, i1 %is.last
"""


def _tile(size: int, lanes: int) -> str:
    """Return the function of ``size`` rows and a panel."""
    common = {
        "lanes": lanes,
        "sums": f"<{lanes} x i32>",
        "kind": f"<{lanes} x float>",
        "halves": f"<{lanes} x i16>",
        "pairs": f"<{2 * lanes} x i16>",
        "mask": f"i32 4, <{lanes} x i1> %mask",
        "even": ", ".join(f"i32 {2 * lane}" for lane in range(lanes)),
        "odd": ", ".join(f"i32 {2 * lane + 1}" for lane in range(lanes)),
        "numbers": ", ".join(f"i32 {lane}" for lane in range(lanes)),
    }
    lines = {
        name: "\n".join(
            template.format(i=i, offset=i * ROW, **common) for i in range(size)
        )
        for name, template in _ROWS.items()
    }
    return _TILE.format(size=size, **common, **lines)


#: The instructions of a tile for each of its rows ``i``.
_ROWS = {
    "places": """\
  %skip{i} = mul i64 %step, {i}
  %to{i} = getelementptr i8, ptr %out, i64 %skip{i}""",
    "earlier": """\
  %earlier{i} = call {sums} @llvm.masked.load.v{lanes}i32.p0(ptr %to{i}, {mask}, \
{sums} zeroinitializer)""",
    "starts": """\
  %start{i} = phi {sums} [ zeroinitializer, %entry ], [ %earlier{i}, %more ]""",
    "running": """\
  %sum{i} = phi {sums} [ %start{i}, %start ], [ %added{i}, %pair ]""",
    "products": """\
  %from{i} = getelementptr i8, ptr %x.c, i64 {offset}
  %number{i} = load i32, ptr %from{i}, align 4
  %first{i} = insertelement {sums} poison, i32 %number{i}, i64 0
  %both{i} = shufflevector {sums} %first{i}, {sums} poison, {sums} zeroinitializer
  %a{i} = bitcast {sums} %both{i} to {pairs}
  %a.even{i} = shufflevector {pairs} %a{i}, {pairs} poison, <{lanes} x i32> <{even}>
  %a.odd{i} = shufflevector {pairs} %a{i}, {pairs} poison, <{lanes} x i32> <{odd}>
  %a.even.wide{i} = sext {halves} %a.even{i} to {sums}
  %a.odd.wide{i} = sext {halves} %a.odd{i} to {sums}
  %even{i} = mul nsw {sums} %a.even.wide{i}, %b.even.wide
  %odd{i} = mul nsw {sums} %a.odd.wide{i}, %b.odd.wide
  %two{i} = add nsw {sums} %even{i}, %odd{i}
  %added{i} = add {sums} %two{i}, %sum{i}""",
    "results": """\
  %real{i} = sitofp {sums} %added{i} to {kind}
  %scaled{i} = fmul {kind} %real{i}, %factor
  %last{i} = fadd {kind} %scaled{i}, %shift""",
    "kept": """\
  call void @llvm.masked.store.v{lanes}i32.p0({sums} %added{i}, ptr %to{i}, {mask})""",
    "whole": """\
  store {kind} %last{i}, ptr %to{i}, align 4""",
    "part": """\
  call void @llvm.masked.store.v{lanes}f32.p0({kind} %last{i}, ptr %to{i}, {mask})""",
}
_TILE = """\
define internal void @tile{size}(ptr %x, ptr %w, ptr %out, ptr %factors, ptr %bias, \
i64 %pairs, i64 %step, i64 %left, i1 %is.first, i1 %is.last) noinline {{
entry:
  %left.narrow = trunc i64 %left to i32
  %left.one = insertelement {sums} poison, i32 %left.narrow, i64 0
  %left.all = shufflevector {sums} %left.one, {sums} poison, {sums} zeroinitializer
  %mask = icmp ult {sums} <{numbers}>, %left.all
{places}
  br i1 %is.first, label %start, label %more
more:
{earlier}
  br label %start
start:
{starts}
  br label %pair
pair:
  %c = phi i64 [ 0, %start ], [ %c.next, %pair ]
  %w.c = phi ptr [ %w, %start ], [ %w.next, %pair ]
{running}
  %b = load {pairs}, ptr %w.c, align 4
  %b.even = shufflevector {pairs} %b, {pairs} poison, <{lanes} x i32> <{even}>
  %b.odd = shufflevector {pairs} %b, {pairs} poison, <{lanes} x i32> <{odd}>
  %b.even.wide = sext {halves} %b.even to {sums}
  %b.odd.wide = sext {halves} %b.odd to {sums}
  %x.c = getelementptr i32, ptr %x, i64 %c
{products}
  %w.next = getelementptr i32, ptr %w.c, i64 {lanes}
  %c.next = add nuw nsw i64 %c, 1
  %c.more = icmp ult i64 %c.next, %pairs
  br i1 %c.more, label %pair, label %summed
summed:
  br i1 %is.last, label %end, label %keep
keep:
{kept}
  ret void
end:
  %factor = call {kind} @llvm.masked.load.v{lanes}f32.p0(ptr %factors, {mask}, \
{kind} zeroinitializer)
  %shift = load {kind}, ptr %bias, align 4
{results}
  %is.whole = icmp uge i64 %left, {lanes}
  br i1 %is.whole, label %whole, label %part
whole:
{whole}
  ret void
part:
{part}
  ret void
}}
"""

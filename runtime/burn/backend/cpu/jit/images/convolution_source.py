"""The LLVM IR of convolutions."""

from functools import cache
from typing import NamedTuple

from burn.backend.cpu.jit.images.activation_source import activation_source
from burn.backend.cpu.jit.writer import ENTRIES, EXPLICIT


class Tiles(NamedTuple):
    """The numbers of pixels of tiles, the largest first, and of their channels."""

    pixels: tuple[int, ...]
    channels: int


#: Those of processors by the floats of a register: 28 of 32 registers hold sums, or 12
#: of 16.
TILES = {
    16: Tiles((14, 7, 3, 1), 32),
    8: Tiles((6, 3, 1), 16),
    4: Tiles((6, 3, 1), 8),
}
#: Those for groups of few channels, which are a register wide.
NARROW = {
    16: Tiles((14, 7, 3, 1), 16),
    8: Tiles((14, 7, 3, 1), 8),
    4: Tiles((12, 6, 3, 1), 4),
}

_WORDS = (
    *("x", "b", "out", "res", "bias", "limits", "offsets", "passes"),
    *(
        "pass.count",
        "panels",
        "panel.bytes",
        "rows",
        "width",
        "total",
        "x.row",
        "x.image",
    ),
    *("out.row", "out.image", "out.pixel", "outputs", "together"),
    *("group.panels", "group.bytes"),
)
_POINTERS = 8


@cache
def source_of(tiles: Tiles, pixel: int) -> str:
    """Return the source for images whose windows are ``pixel`` bytes apart."""
    lanes = tiles.channels
    kind = f"<{lanes} x float>"
    loads = []
    for number, name in enumerate(_WORDS, 1):
        which = "ptr" if number <= _POINTERS else "i64"
        loads.append(f"  %{name}.at = getelementptr i64, ptr %data, i64 {number}")
        loads.append(f"  %{name} = load {which}, ptr %{name}.at")
    body = _PART.format(
        loads="\n".join(loads),
        lanes=lanes,
        pixel=pixel,
        choices=tile_choices(tiles, "tile", _ARGUMENTS),
    )
    entries = ENTRIES.format(
        loads="  %parts = load i64, ptr %data", given="ptr %data, "
    )
    vector = f"v{lanes}f32"
    mask = f"<{lanes} x i1>"
    declared = [
        f"declare {kind} @llvm.fmuladd.{vector}({kind}, {kind}, {kind})",
        f"declare {kind} @llvm.masked.load.{vector}.p0(ptr, i32, {mask}, {kind})",
        f"declare void @llvm.masked.store.{vector}.p0({kind}, ptr, i32, {mask})",
    ]
    functions = tile_source(tiles, pixel, is_clip=True)
    return "\n".join([EXPLICIT, functions, body, entries, *declared, ""])


_PARAMETERS = (
    "ptr %x, ptr %b, ptr %out, ptr %res, ptr %bias, ptr %limits, ptr %offsets, "
    "i64 %taps, i64 %channels, i64 %step, i64 %left, i1 %is.first, i1 %is.last"
)
_ARGUMENTS = (
    "ptr %x.tile, ptr %b.pass, ptr %out.tile, ptr %res.tile, ptr %bias.panel, "
    "ptr %limits, ptr %offsets.pass, i64 %taps, i64 %channels, i64 %out.pixel, "
    "i64 %left, i1 %is.first, i1 %is.last"
)


def tile_source(tiles: Tiles, pixel: int, *, is_clip: bool, name: str = "tile") -> str:
    """Return the functions ``@tile1`` etc. of tiles, by their numbers of pixels.

    Pixels of the image are ``pixel`` bytes apart. The activation of the sums is a
    piecewise linear function, or one that ``is_clip``.
    """
    return "\n".join(
        _tile(f"{name}{size}", size, tiles.channels, pixel, is_clip)
        for size in tiles.pixels
    )


def _tile(name: str, size: int, lanes: int, pixel: int, is_clip: bool) -> str:
    """Return the function that adds the products of a pass to ``size`` pixels."""
    common = {
        "kind": f"<{lanes} x float>",
        "lanes": lanes,
        "mask": f"i32 4, <{lanes} x i1> %mask",
        "splat": f"<{lanes} x i32> zeroinitializer",
    }
    rows = {
        key: "\n".join(
            template.format(i=i, offset=i * pixel, **common) for i in range(size)
        )
        for key, template in _ROWS.items()
    }
    return _TILE.format(
        name=name,
        parameters=_PARAMETERS,
        integers=f"<{lanes} x i32>",
        numbers=", ".join(f"i32 {lane}" for lane in range(lanes)),
        activated=activation_source("end", size, lanes, is_clip),
        **common,
        **rows,
    )


#: The instructions of a tile for each of its pixels ``i``.
_ROWS = {
    "places": """\
  %skip{i} = mul i64 %step, {i}
  %to{i} = getelementptr i8, ptr %out, i64 %skip{i}""",
    "earlier": """\
  %earlier{i} = call {kind} @llvm.masked.load.v{lanes}f32.p0(ptr %to{i}, {mask}, \
{kind} zeroinitializer)""",
    "sums": """\
  %sum{i} = phi {kind} [ %shift, %fresh ], [ %earlier{i}, %more ], \
[ %added{i}, %tap.end ]""",
    "totals": """\
  %total{i} = phi {kind} [ %sum{i}, %tap ], [ %added{i}, %channel ]""",
    "products": """\
  %from{i} = getelementptr i8, ptr %x.c, i64 {offset}
  %number{i} = load float, ptr %from{i}
  %first{i} = insertelement {kind} poison, float %number{i}, i64 0
  %factor{i} = shufflevector {kind} %first{i}, {kind} poison, {splat}
  %added{i} = call {kind} @llvm.fmuladd.v{lanes}f32({kind} %factor{i}, {kind} %w, \
{kind} %total{i})""",
    "others": """\
  %other.at{i} = getelementptr i8, ptr %res, i64 %skip{i}
  %other{i} = call {kind} @llvm.masked.load.v{lanes}f32.p0(ptr %other.at{i}, {mask}, \
{kind} zeroinitializer)
  %both{i} = fadd {kind} %added{i}, %other{i}""",
    "ends": """\
  %end{i} = phi {kind} [ %added{i}, %end ], [ %both{i}, %residual ]""",
    "whole": """\
  store {kind} %last{i}, ptr %to{i}, align 4""",
    "part": """\
  call void @llvm.masked.store.v{lanes}f32.p0({kind} %last{i}, ptr %to{i}, {mask})""",
    "stored": """\
  call void @llvm.masked.store.v{lanes}f32.p0({kind} %added{i}, ptr %to{i}, {mask})""",
}
_TILE = """\
define internal void @{name}({parameters}) noinline {{
entry:
  %left.narrow = trunc i64 %left to i32
  %left.one = insertelement <{lanes} x i32> poison, i32 %left.narrow, i64 0
  %left.all = shufflevector {integers} %left.one, {integers} poison, \
{integers} zeroinitializer
  %mask = icmp ult <{lanes} x i32> <{numbers}>, %left.all
{places}
  br i1 %is.first, label %fresh, label %more
fresh:
  %shift = load {kind}, ptr %bias, align 4
  br label %tap
more:
{earlier}
  br label %tap
tap:
  %t = phi i64 [ 0, %fresh ], [ 0, %more ], [ %t.next, %tap.end ]
  %b.t = phi ptr [ %b, %fresh ], [ %b, %more ], [ %b.next, %tap.end ]
{sums}
  %offset.at = getelementptr i64, ptr %offsets, i64 %t
  %offset = load i64, ptr %offset.at
  %x.t = getelementptr i8, ptr %x, i64 %offset
  br label %channel
channel:
  %c = phi i64 [ 0, %tap ], [ %c.next, %channel ]
  %b.c = phi ptr [ %b.t, %tap ], [ %b.next, %channel ]
{totals}
  %w = load {kind}, ptr %b.c, align 4
  %x.c = getelementptr float, ptr %x.t, i64 %c
{products}
  %b.next = getelementptr float, ptr %b.c, i64 {lanes}
  %c.next = add nuw nsw i64 %c, 1
  %c.more = icmp ult i64 %c.next, %channels
  br i1 %c.more, label %channel, label %tap.end
tap.end:
  %t.next = add nuw nsw i64 %t, 1
  %t.more = icmp ult i64 %t.next, %taps
  br i1 %t.more, label %tap, label %sums.end
sums.end:
  br i1 %is.last, label %end, label %keep
keep:
{stored}
  ret void
end:
  %has.residual = icmp ne ptr %res, null
  br i1 %has.residual, label %residual, label %bounded
residual:
{others}
  br label %bounded
bounded:
{ends}
{activated}
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
# Lines of an image are done together, so that they are in the cache for all panels.
_PART = """\
define internal void @part(ptr %data, i64 %part.low, i64 %part.high) noinline {{
entry:
{loads}
  br label %block
block:
  %low = phi i64 [ %part.low, %entry ], [ %high, %block.end ]
  %wanted = add i64 %low, %together
  %high = call i64 @llvm.umin.i64(i64 %wanted, i64 %part.high)
  br label %pass
pass:
  %p = phi i64 [ 0, %block ], [ %p.next, %pass.end ]
  %word = mul i64 %p, 5
  %tap.at = getelementptr i64, ptr %passes, i64 %word
  %taps.at = getelementptr i64, ptr %tap.at, i64 1
  %skipped.at = getelementptr i64, ptr %tap.at, i64 2
  %channels.at = getelementptr i64, ptr %tap.at, i64 3
  %b.skipped.at = getelementptr i64, ptr %tap.at, i64 4
  %tap = load i64, ptr %tap.at
  %taps = load i64, ptr %taps.at
  %skipped = load i64, ptr %skipped.at
  %channels = load i64, ptr %channels.at
  %b.skipped = load i64, ptr %b.skipped.at
  %offsets.pass = getelementptr i64, ptr %offsets, i64 %tap
  %x.pass = getelementptr i8, ptr %x, i64 %skipped
  %is.first = icmp eq i64 %p, 0
  %p.next = add i64 %p, 1
  %is.last = icmp eq i64 %p.next, %pass.count
  br label %panel
panel:
  %j = phi i64 [ 0, %pass ], [ %j.next, %panel.end ]
  %group = udiv i64 %j, %group.panels
  %within = urem i64 %j, %group.panels
  %start = mul i64 %within, {lanes}
  %left = sub i64 %outputs, %start
  %earlier = mul i64 %group, %outputs
  %column = add i64 %earlier, %start
  %x.moved = mul i64 %group, %group.bytes
  %x.panel = getelementptr i8, ptr %x.pass, i64 %x.moved
  %b.offset = mul i64 %j, %panel.bytes
  %b.panel = getelementptr i8, ptr %b, i64 %b.offset
  %b.pass = getelementptr i8, ptr %b.panel, i64 %b.skipped
  %bias.panel = getelementptr float, ptr %bias, i64 %column
  %out.panel = getelementptr float, ptr %out, i64 %column
  %has.res = icmp ne ptr %res, null
  br label %line
line:
  %row = phi i64 [ %low, %panel ], [ %row.next, %line.end ]
  %image = udiv i64 %row, %rows
  %y = urem i64 %row, %rows
  %x.far = mul i64 %image, %x.image
  %x.near = mul i64 %y, %x.row
  %x.offset = add i64 %x.far, %x.near
  %x.line = getelementptr i8, ptr %x.panel, i64 %x.offset
  %out.far = mul i64 %image, %out.image
  %out.near = mul i64 %y, %out.row
  %out.offset = add i64 %out.far, %out.near
  %before = mul i64 %y, %width
  %rest = sub i64 %total, %before
  %pixels = call i64 @llvm.umin.i64(i64 %width, i64 %rest)
  br label %pixel
pixel:
  %i = phi i64 [ 0, %line ], [ %i.next, %next ]
  %remaining = sub i64 %pixels, %i
  %x.skipped = mul i64 %i, {pixel}
  %x.tile = getelementptr i8, ptr %x.line, i64 %x.skipped
  %out.done = mul i64 %i, %out.pixel
  %out.skipped = add i64 %out.offset, %out.done
  %out.tile = getelementptr i8, ptr %out.panel, i64 %out.skipped
  %res.panel = getelementptr float, ptr %res, i64 %column
  %res.moved = getelementptr i8, ptr %res.panel, i64 %out.skipped
  %res.tile = select i1 %has.res, ptr %res.moved, ptr null
{choices}
  %i.next = add i64 %i, %used
  %i.more = icmp ult i64 %i.next, %pixels
  br i1 %i.more, label %pixel, label %line.end
line.end:
  %row.next = add i64 %row, 1
  %row.more = icmp ult i64 %row.next, %high
  br i1 %row.more, label %line, label %panel.end
panel.end:
  %j.next = add i64 %j, 1
  %j.more = icmp ult i64 %j.next, %panels
  br i1 %j.more, label %panel, label %pass.end
pass.end:
  br i1 %is.last, label %block.end, label %pass
block.end:
  %more.lines = icmp ult i64 %high, %part.high
  br i1 %more.lines, label %block, label %exit
exit:
  ret void
}}

declare i64 @llvm.umin.i64(i64, i64)
"""


def tile_choices(tiles: Tiles, callee: str, arguments: str) -> str:
    """Return the call of the largest tile that fits ``%remaining`` pixels.

    ``%used`` is then the number of pixels of the tile.
    """
    lines = [f"  br label %size{tiles.pixels[0]}"]
    for size, smaller in zip(tiles.pixels, (*tiles.pixels[1:], 0), strict=True):
        least = f"  %fits{size} = icmp uge i64 %remaining, {size}"
        other = f"size{smaller}" if smaller else "next"
        branch = f"  br i1 %fits{size}, label %use{size}, label %{other}"
        call = f"  call void @{callee}{size}({arguments})"
        lines += [f"size{size}:", least, branch, f"use{size}:", call]
        lines.append("  br label %next")
    used = ", ".join(f"[ {size}, %use{size} ]" for size in tiles.pixels)
    used += f", [ 1, %size{tiles.pixels[-1]} ]"
    return "\n".join([*lines, "next:", f"  %used = phi i64 {used}"])


def line_source(tiles: Tiles, name: str, text: str) -> str:
    """Return the function that calls the tiles of a line, for its pixels."""
    parameters, advance, callee, arguments = text.strip().split("\n")
    return _LINE.format(
        name=name,
        parameters=parameters,
        advance=advance,
        choices=tile_choices(tiles, callee, arguments),
    )


#: The parameters of a line of a pointwise convolution, the move to a pixel, the
#: function of a tile, and its arguments.
POINTWISE = """
ptr %x, ptr %b, ptr %out, ptr %bias, ptr %limits, ptr %offsets, i64 %taps, \
i64 %inner, i64 %pixel, i64 %left, i64 %pixels
%x.done = mul i64 %i, {pixel}
{tile}
ptr %x.tile, ptr %b, ptr %out.tile, ptr null, ptr %bias, ptr %limits, ptr %offsets, \
i64 %taps, i64 %inner, i64 %pixel, i64 %left, i1 true, i1 true
"""
_LINE = """\
define internal void @{name}({parameters}) noinline {{
entry:
  br label %tile
tile:
  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]
  %remaining = sub i64 %pixels, %i
  {advance}
  %x.tile = getelementptr i8, ptr %x, i64 %x.done
  %out.done = mul i64 %i, %pixel
  %out.tile = getelementptr i8, ptr %out, i64 %out.done
{choices}
  %i.next = add i64 %i, %used
  %i.more = icmp ult i64 %i.next, %pixels
  br i1 %i.more, label %tile, label %exit
exit:
  ret void
}}
"""

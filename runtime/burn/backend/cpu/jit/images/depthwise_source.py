"""The LLVM IR of a pointwise convolution and the depthwise one that reads it."""

from functools import cache
from typing import NamedTuple

import numpy as np

from burn.backend.cpu.jit.functions import bounded_exp
from burn.backend.cpu.jit.images.activation_source import activation_source
from burn.backend.cpu.jit.images.convolution_source import (
    POINTWISE,
    Tiles,
    line_source,
    tile_source,
)
from burn.backend.cpu.jit.images.vectors import declarations, in_place
from burn.backend.cpu.jit.native import INT64
from burn.backend.cpu.jit.operands import SCALED, SILU
from burn.backend.cpu.jit.writer import ENTRIES, EXPLICIT, BranchWriter, part_source

FLOAT32 = np.dtype(np.float32)
#: The words of a kernel after the number of parts: pointers, and integers. Strides are
#: in bytes.
POINTERS = (
    *("x", "panels", "bias", "limits", "weight", "shift", "ends", "ring", "zeros"),
    *("tables", "no.offsets", "out"),
)
INTEGERS = (
    *("rows", "height", "width", "channels", "inner", "panel.count", "panel.bytes"),
    *("taps", "stride", "top", "left.bytes", "lines", "columns"),
    *("ring.bytes", "row.bytes", "held.pixel", "table.bytes"),
)


class Form(NamedTuple):
    """What a source depends on: the tiles of both convolutions, and their activations.

    Pixels of the image are ``pixel`` bytes apart. The last channels of the pointwise
    convolution have ``half`` as many registers as ``wide`` tiles, if they fit.
    """

    wide: Tiles
    half: Tiles
    narrow: Tiles
    pixel: int
    activations: tuple[str, str]
    has_half: bool


@cache
def source_of(form: Form) -> str:
    """Return the source of a form."""
    wide, half, narrow, pixel, activations, _ = form
    is_clip = activations[0] != SCALED
    functions = [
        tile_source(wide, pixel, is_clip=is_clip),
        line_source(wide, "pointwise", POINTWISE.format(pixel=pixel, tile="tile")),
        line_source(narrow, "depthwise", _DEPTHWISE),
    ]
    if form.has_half:
        functions += [
            tile_source(half, pixel, is_clip=is_clip, name="half"),
            line_source(half, "remaining", POINTWISE.format(pixel=pixel, tile="half")),
        ]
    is_clip = activations[1] != SCALED
    functions += [_tile(size, narrow.channels, is_clip) for size in narrow.pixels]
    if SILU in activations:
        functions.append(_silu_source(wide.channels))
    entries = ENTRIES.format(
        loads="  %parts = load i64, ptr %data", given="ptr %data, "
    )
    widths = {wide.channels, half.channels, narrow.channels}
    return "\n".join(
        [EXPLICIT, *functions, _part_source(form), entries, *declarations(widths), ""]
    )


def _silu_source(lanes: int) -> str:
    """Return the function ``@silu``, which activates ``%count`` floats in place."""
    to = BranchWriter()

    def activated(x: str) -> str:
        kind = f"<{lanes} x float>"
        power = bounded_exp(to, to.do(f"fneg {kind} {x}"), lanes)
        sum_ = to.do(f"fadd {kind} {power}, splat (float 1.0)")
        return to.do(f"fdiv {kind} {x}, {sum_}")

    in_place(to, ("%x", "%count"), lanes, activated)
    return _SILU.format(body="\n".join(to.lines))


def _part_source(form: Form) -> str:
    """Return the function of the rows of some parts."""
    words = (POINTERS, INTEGERS)
    return part_source(words, "%rows", lambda *given: _rows(given[0], form, *given[1:]))


def _rows(to: BranchWriter, form: Form, part: str, bounds: tuple[str, str]) -> None:
    """Emit the rows of the result between bounds."""
    first, last = bounds
    ring = to.at("%ring", to.times(part, "%ring.bytes"))
    table = to.at("%tables", to.times(part, "%table.bytes"))
    done = to.cell(INT64)
    to.set(done, INT64, "0")
    with to.counting(first, last) as row:
        image = to.do(f"udiv i64 {row}, %lines")
        y = to.do(f"urem i64 {row}, %lines")
        top = to.do(f"sub i64 {to.times(y, '%stride')}, %top")
        starts = to.do(f"icmp eq i64 {row}, {first}")
        is_new = to.do(f"or i1 {starts}, {to.do(f'icmp eq i64 {y}, 0')}")
        earlier = to.do(f"select i1 {is_new}, i64 0, i64 {to.get(done, INT64)}")
        next_ = to.limited(earlier, top, "smax")
        bottom = to.do(f"add i64 {top}, %taps")
        end = to.limited(bottom, "%height", "smin")
        with to.when(to.do(f"icmp slt i64 {next_}, {end}")):
            _produce(to, form, ring, image, (next_, end))
        to.set(done, INT64, to.limited(next_, end, "smax"))
        _fill_table(to, ring, table, top)
        _consume(to, form, table, row)


def _produce(
    to: BranchWriter, form: Form, ring: str, image: str, bounds: tuple[str, str]
) -> None:
    """Emit the pointwise convolution of lines of an image to the ring."""
    before = to.times(image, "%height")
    wide = form.wide.channels
    with to.counting(*bounds) as line:
        slot = to.do(f"urem i64 {line}, %taps")
        target = to.at(ring, to.times(slot, "%row.bytes"))
        target = to.at(target, "%left.bytes")
        number = to.do(f"add i64 {before}, {line}")
        pixels = to.times(number, "%width")
        x = to.at("%x", to.times(to.times(pixels, "%inner"), "4"))
        with to.counting("0", "%panel.count") as panel:
            column = to.times(panel, str(wide))
            left = to.do(f"sub i64 %channels, {column}")
            skipped = to.times(column, "4")
            panels = to.at("%panels", to.times(panel, "%panel.bytes"))
            bias, out = to.at("%bias", skipped), to.at(target, skipped)
            given = (
                f"ptr {x}, ptr {panels}, ptr {out}, ptr {bias}, ptr %limits, "
                f"ptr %no.offsets, i64 1, i64 %inner, i64 %held.pixel, i64 {left}, "
                "i64 %width"
            )
            _call_pointwise(to, form, left, given)
        if form.activations[0] == SILU:
            count = to.do(f"udiv i64 {to.times('%width', '%held.pixel')}, 4")
            to.lines.append(f"  call void @silu(ptr {target}, i64 {count})")


def _call_pointwise(to: BranchWriter, form: Form, left: str, given: str) -> None:
    """Emit the call for a panel, which has ``left`` channels at least."""
    if not form.has_half:
        to.lines.append(f"  call void @pointwise({given})")
        return
    for compare, name in (("ugt", "pointwise"), ("ule", "remaining")):
        with to.when(to.do(f"icmp {compare} i64 {left}, {form.half.channels}")):
            to.lines.append(f"  call void @{name}({given})")


def _fill_table(to: BranchWriter, ring: str, table: str, top: str) -> None:
    """Emit the pointers to the first pixel of each tap."""
    with to.counting("0", "%taps") as dy:
        line = to.do(f"add i64 {top}, {dy}")
        is_inside = to.do(f"icmp ult i64 {line}, %height")
        slot = to.do(f"urem i64 {line}, %taps")
        held = to.at(ring, to.times(slot, "%row.bytes"))
        start = to.do(f"select i1 {is_inside}, ptr {held}, ptr %zeros")
        with to.counting("0", "%taps") as dx:
            number = to.do(f"add i64 {to.times(dy, '%taps')}, {dx}")
            pointer = to.at(start, to.times(dx, "%held.pixel"))
            place = to.do(f"getelementptr ptr, ptr {table}, i64 {number}")
            to.lines.append(f"  store ptr {pointer}, ptr {place}")


def _consume(to: BranchWriter, form: Form, table: str, row: str) -> None:
    """Emit a row of the depthwise convolution."""
    lanes = form.narrow.channels
    pixel = to.times("%channels", "4")
    out = to.at("%out", to.times(to.times(row, "%columns"), pixel))
    moved = to.times("%held.pixel", "%stride")
    count = to.times("%taps", "%taps")
    blocks = to.do(f"udiv i64 {to.do(f'add i64 %channels, {lanes - 1}')}, {lanes}")
    with to.counting("0", blocks) as block:
        column = to.times(block, str(lanes))
        skipped = to.times(column, "4")
        left = to.do(f"sub i64 %channels, {column}")
        offset = to.at("null", skipped)
        weight = to.at("%weight", to.times(skipped, count))
        shift, target = to.at("%shift", skipped), to.at(out, skipped)
        to.lines.append(
            f"  call void @depthwise(ptr {table}, ptr {offset}, ptr {weight}, "
            f"ptr {target}, ptr {shift}, ptr %ends, i64 {count}, i64 {moved}, "
            f"i64 {pixel}, i64 {left}, i64 %columns)"
        )
    if form.activations[1] == SILU:
        length = to.times("%columns", "%channels")
        to.lines.append(f"  call void @silu(ptr {out}, i64 {length})")


#: The line of a depthwise convolution, as that of a pointwise one.
_DEPTHWISE = """
ptr %table, ptr %x, ptr %w, ptr %out, ptr %bias, ptr %limits, i64 %taps, \
i64 %x.pixel, i64 %pixel, i64 %left, i64 %pixels
%x.done = mul i64 %i, %x.pixel
apart
ptr %table, ptr %x.tile, ptr %w, ptr %out.tile, ptr %bias, ptr %limits, i64 %taps, \
i64 %x.pixel, i64 %pixel, i64 %left
"""


def _tile(size: int, lanes: int, is_clip: bool) -> str:
    """Return the function of ``size`` pixels of the depthwise convolution."""
    common = {
        "kind": f"<{lanes} x float>",
        "lanes": lanes,
        "mask": f"i32 4, <{lanes} x i1> %mask",
    }
    rows = {
        name: "\n".join(template.format(i=i, **common) for i in range(size))
        for name, template in _ROWS.items()
    }
    return _TILE.format(
        size=size,
        integers=f"<{lanes} x i32>",
        numbers=", ".join(f"i32 {lane}" for lane in range(lanes)),
        activated=activation_source("added", size, lanes, is_clip),
        **common,
        **rows,
    )


#: The instructions of a tile for each of its pixels ``i``.
_ROWS = {
    "places": """\
  %offset{i} = mul i64 %x.pixel, {i}
  %skip{i} = mul i64 %pixel, {i}
  %to{i} = getelementptr i8, ptr %out, i64 %skip{i}""",
    "sums": """\
  %sum{i} = phi {kind} [ %shift, %entry ], [ %added{i}, %tap ]""",
    "products": """\
  %from{i} = getelementptr i8, ptr %x.t, i64 %offset{i}
  %number{i} = load {kind}, ptr %from{i}, align 4
  %added{i} = call {kind} @llvm.fmuladd.v{lanes}f32({kind} %number{i}, {kind} %w.t, \
{kind} %sum{i})""",
    "stored": """\
  call void @llvm.masked.store.v{lanes}f32.p0({kind} %last{i}, ptr %to{i}, {mask})""",
}
_TILE = """\
define internal void @apart{size}(ptr %table, ptr %x, ptr %w, ptr %out, ptr %bias, \
ptr %limits, i64 %taps, i64 %x.pixel, i64 %pixel, i64 %left) noinline {{
entry:
  %left.narrow = trunc i64 %left to i32
  %left.one = insertelement {integers} poison, i32 %left.narrow, i64 0
  %left.all = shufflevector {integers} %left.one, {integers} poison, \
{integers} zeroinitializer
  %mask = icmp ult {integers} <{numbers}>, %left.all
  %skipped = ptrtoint ptr %x to i64
  %shift = load {kind}, ptr %bias, align 4
{places}
  br label %tap
tap:
  %t = phi i64 [ 0, %entry ], [ %t.next, %tap ]
{sums}
  %start.at = getelementptr ptr, ptr %table, i64 %t
  %start = load ptr, ptr %start.at
  %x.t = getelementptr i8, ptr %start, i64 %skipped
  %w.at = getelementptr {kind}, ptr %w, i64 %t
  %w.t = load {kind}, ptr %w.at, align 4
{products}
  %t.next = add nuw nsw i64 %t, 1
  %t.more = icmp ult i64 %t.next, %taps
  br i1 %t.more, label %tap, label %end
end:
{activated}
{stored}
  ret void
}}
"""
_SILU = """\
define internal void @silu(ptr %x, i64 %count) noinline {{
entry:
  br label %start
start:
{body}
  ret void
}}
"""

"""The LLVM IR of a pointwise convolution and the depthwise one that reads it."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import NamedTuple

import numpy as np

from burn.backend.cpu.jit.functions import EXP_PLUS_ONE, write
from burn.backend.cpu.jit.images.activation_source import activation_source
from burn.backend.cpu.jit.images.convolution_source import (
    Tiles,
    tile_choices,
    tile_source,
)
from burn.backend.cpu.jit.native import INT64
from burn.backend.cpu.jit.vectors import (
    PART_ENTRIES,
    vector_declarations,
    vector_fields,
    word_loads,
)
from burn.backend.cpu.jit.writer import LlvmWriter

FLOAT32 = np.dtype(np.float32)
#: The kinds of activations: a clip, another piecewise linear function, and SiLU.
CLIP, SCALED, SILU = "clip", "scaled", "silu"
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


class _Writer(LlvmWriter):
    """A builder with conditional blocks."""

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """Emit a block that runs if ``condition`` (i1) holds."""
        self._names += 1
        number = self._names
        self.lines.append(f"  br i1 {condition}, label %y{number}, label %z{number}")
        self.lines.append(f"y{number}:")
        self._block = f"y{number}"
        yield
        self.lines += [f"  br label %z{number}", f"z{number}:"]
        self._block = f"z{number}"

    def at(self, pointer: str, bytes_: str) -> str:
        """Return a pointer moved by some bytes."""
        return self.do(f"getelementptr i8, ptr {pointer}, i64 {bytes_}")

    def times(self, one: str, other: str) -> str:
        """Return a product of integers."""
        return self.do(f"mul i64 {one}, {other}")

    def limited(self, one: str, other: str, which: str) -> str:
        """Return the least or the largest of two integers (smin, smax)."""
        return self.do(f"call i64 @llvm.{which}.i64(i64 {one}, i64 {other})")


class Form(NamedTuple):
    """The parameters of a source: tiles and activations of both convolutions.

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
        _line(wide, "pointwise", _POINTWISE.format(pixel=pixel, tile="tile")),
        _line(narrow, "depthwise", _DEPTHWISE),
    ]
    if form.has_half:
        functions += [
            tile_source(half, pixel, is_clip=is_clip, name="half"),
            _line(half, "remaining", _POINTWISE.format(pixel=pixel, tile="half")),
        ]
    is_clip = activations[1] != SCALED
    functions += [_tile(size, narrow.channels, is_clip) for size in narrow.pixels]
    if SILU in activations:
        functions.append(_silu_source())
    widths = sorted({wide.channels, half.channels, narrow.channels})
    declared = [_LIMITS, *map(vector_declarations, widths), ""]
    return "\n".join([*functions, _part_source(form), PART_ENTRIES, *declared])


def _silu_source() -> str:
    """Return the function ``@silu``, which activates ``%count`` floats in place."""
    to = _Writer()
    with to.counting("0", "%count") as i:
        place = to.do(f"getelementptr float, ptr %x, i64 {i}")
        x = to.do(f"load float, ptr {place}")
        sum_ = write(EXP_PLUS_ONE, to, FLOAT32, (to.do(f"fneg float {x}"),))
        to.lines.append(
            f"  store float {to.do(f'fdiv float {x}, {sum_}')}, ptr {place}"
        )
    return _SILU.format(body="\n".join(to.lines))


def _part_source(form: Form) -> str:
    """Return the function of the rows of some parts."""
    to = _Writer()
    loads = [word_loads(POINTERS, INTEGERS), "  %all.parts = load i64, ptr %data"]
    with to.counting("%low", "%high") as part:
        first, last = (
            to.do(f"udiv i64 {to.times(number, '%rows')}, %all.parts")
            for number in (part, to.do(f"add i64 {part}, 1"))
        )
        with to.when(to.do(f"icmp ult i64 {first}, {last}")):
            _rows(to, form, part, (first, last))
    body = "\n".join([*loads, *to.head, "  br label %start", "start:", *to.lines])
    return _PART.format(body=body)


def _rows(to: _Writer, form: Form, part: str, bounds: tuple[str, str]) -> None:
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
    to: _Writer, form: Form, ring: str, image: str, bounds: tuple[str, str]
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
                f"ptr %no.offsets, i64 %inner, i64 %held.pixel, i64 {left}, i64 %width"
            )
            _call_pointwise(to, form, left, given)
        if form.activations[0] == SILU:
            count = to.do(f"udiv i64 {to.times('%width', '%held.pixel')}, 4")
            to.lines.append(f"  call void @silu(ptr {target}, i64 {count})")


def _call_pointwise(to: _Writer, form: Form, left: str, given: str) -> None:
    """Emit the call for a panel, which has ``left`` channels at least."""
    if not form.has_half:
        to.lines.append(f"  call void @pointwise({given})")
        return
    for compare, name in (("ugt", "pointwise"), ("ule", "remaining")):
        with to.when(to.do(f"icmp {compare} i64 {left}, {form.half.channels}")):
            to.lines.append(f"  call void @{name}({given})")


def _fill_table(to: _Writer, ring: str, table: str, top: str) -> None:
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


def _consume(to: _Writer, form: Form, table: str, row: str) -> None:
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


def _line(tiles: Tiles, name: str, text: str) -> str:
    """Return the function that calls the tiles of a line, for its pixels."""
    parameters, advance, callee, arguments = text.strip().split("\n")
    choices = tile_choices(tiles, callee, arguments)
    return _LINE.format(
        name=name, parameters=parameters, advance=advance, choices=choices
    )


#: The parameters, the move to a pixel, the function of a tile, and its arguments.
_POINTWISE = """
ptr %x, ptr %b, ptr %out, ptr %bias, ptr %limits, ptr %offsets, i64 %inner, \
i64 %pixel, i64 %left, i64 %pixels
%x.done = mul i64 %i, {pixel}
{tile}
ptr %x.tile, ptr %b, ptr %out.tile, ptr null, ptr %bias, ptr %limits, ptr %offsets, \
i64 1, i64 %inner, i64 %pixel, i64 %left, i1 true, i1 true
"""
_DEPTHWISE = """
ptr %table, ptr %x, ptr %w, ptr %out, ptr %bias, ptr %limits, i64 %taps, \
i64 %x.pixel, i64 %pixel, i64 %left, i64 %pixels
%x.done = mul i64 %i, %x.pixel
apart
ptr %table, ptr %x.tile, ptr %w, ptr %out.tile, ptr %bias, ptr %limits, i64 %taps, \
i64 %x.pixel, i64 %pixel, i64 %left
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


def _tile(size: int, lanes: int, is_clip: bool) -> str:
    """Return the function of ``size`` pixels of the depthwise convolution."""
    common = vector_fields(lanes)
    rows = {
        name: "\n".join(template.format(i=i, **common) for i in range(size))
        for name, template in _ROWS.items()
    }
    return _TILE.format(
        size=size,
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
{masked}
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
declare float @llvm.fma.f32(float, float, float)
"""
_PART = """\
define internal void @part(ptr %data, i64 %low, i64 %high) noinline {{
entry:
{body}
  ret void
}}
"""
_LIMITS = """\
declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)"""

"""The LLVM IR of attention: two products and the softmax between them.

A thread computes the scores of a block of rows, which stay in its cache. The softmax
is not divided by its sums; the rows of the second product are.
"""

from functools import cache
from typing import NamedTuple

from burn.backend.cpu.jit.functions import EXP_BOUNDS, exp_of_bounded
from burn.backend.cpu.jit.images.convolution_source import (
    POINTWISE,
    Tiles,
    line_source,
    tile_source,
)
from burn.backend.cpu.jit.images.vectors import (
    declarations,
    first_lanes,
    in_place,
    loaded,
    splat,
)
from burn.backend.cpu.jit.native import INT64
from burn.backend.cpu.jit.writer import ENTRIES, EXPLICIT, BranchWriter, part_source

#: The words of a kernel after the number of parts. Strides and sizes of memory are in
#: bytes; ``values.offset`` etc. are places in the scratch memory of a part.
POINTERS = (
    *("query", "key", "value", "mask", "out"),
    *("scratch", "offsets", "zeros", "limits"),
)
INTEGERS = (
    *("units", "heads", "repeats", "blocks", "block", "rows", "keys"),
    *("taps", "channels", "size", "columns", "scale.bits"),
    *("query.batch", "query.head", "query.row", "key.batch", "key.head", "key.row"),
    *("value.batch", "value.head", "value.row", "out.batch", "out.head", "out.row"),
    *("mask.batch", "mask.head", "mask.row"),
    *(
        "scratch.bytes",
        "values.offset",
        "query.offset",
        "scores.offset",
        "factors.offset",
    ),
    *("key.panel", "value.panel", "tap.bytes"),
)


class Form(NamedTuple):
    """What a source depends on: the tiles, and how scores are masked."""

    tiles: Tiles
    has_mask: bool
    is_causal: bool
    empty_is_zero: bool


@cache
def source_of(form: Form) -> str:
    """Return the source of a form."""
    tiles, lanes = form.tiles, form.tiles.channels
    functions = [
        tile_source(tiles, 4 * lanes, is_clip=True),
        line_source(tiles, "product", POINTWISE.format(pixel=4 * lanes, tile="tile")),
        _softmax_source(form),
        part_source(
            (POINTERS, INTEGERS), "%units", lambda *a: _units(a[0], form, *a[1:])
        ),
    ]
    entries = ENTRIES.format(
        loads="  %parts = load i64, ptr %data", given="ptr %data, "
    )
    kind = f"<{lanes} x float>"
    more = [
        f"declare float @llvm.vector.reduce.fmax.v{lanes}f32({kind})",
        f"declare float @llvm.vector.reduce.fadd.v{lanes}f32(float, {kind})",
    ]
    return "\n".join(
        [EXPLICIT, *functions, entries, *declarations({lanes, lanes // 2}), *more, ""]
    )


def _units(to: BranchWriter, form: Form, part: str, bounds: tuple[str, str]) -> None:
    """Emit the blocks of rows between bounds, each of which is a unit of a head."""
    scratch = to.at("%scratch", to.times(part, "%scratch.bytes"))
    packed = to.cell(INT64)
    to.set(packed, INT64, "-1")
    with to.counting(*bounds) as unit:
        head = to.do(f"udiv i64 {unit}, %blocks")
        block = to.do(f"urem i64 {unit}, %blocks")
        index = to.do(f"udiv i64 {head}, %heads"), to.do(f"urem i64 {head}, %heads")
        group = to.do(f"udiv i64 {index[1]}, %repeats")
        is_new = to.do(f"icmp ne i64 {to.get(packed, INT64)}, {head}")
        with to.when(is_new):
            key, value = (
                _start(to, name, (index[0], group)) for name in ("key", "value")
            )
            _pack_keys(to, form, key, scratch)
            _pack_values(to, form, value, to.at(scratch, "%values.offset"))
            to.set(packed, INT64, head)
        first = to.times(block, "%block")
        left = to.do(f"sub i64 %rows, {first}")
        count = to.limited("%block", left, "smin")
        places = {
            name: to.at(_start(to, name, index), to.times(first, f"%{name}.row"))
            for name in ("query", "mask", "out")
        }
        _block(to, form, scratch, places, (first, count))


def _start(to: BranchWriter, name: str, index: tuple[str, str]) -> str:
    """Return the start of the matrix of a batch and a head."""
    batch, head = index
    moved = to.at(f"%{name}", to.times(batch, f"%{name}.batch"))
    return to.at(moved, to.times(head, f"%{name}.head"))


def _pack_keys(to: BranchWriter, form: Form, key: str, target: str) -> None:
    """Emit the copy of keys to panels of transposed ones.

    Squares of a register's floats are transposed. Behind the last float of a panel's
    keys others follow, which the next panel, or the values, overwrite.
    """
    lanes = form.tiles.channels
    width = lanes // 2
    with to.counting("0", "%keys", width) as first:
        panel = to.times(to.do(f"udiv i64 {first}, {lanes}"), "%key.panel")
        lane = to.times(to.do(f"urem i64 {first}, {lanes}"), "4")
        start = to.at(to.at(target, panel), lane)
        last = to.do("sub i64 %keys, 1")
        rows = [
            to.limited(to.do(f"add i64 {first}, {i}"), last, "smin")
            for i in range(width)
        ]
        sources = [to.at(key, to.times(row, "%key.row")) for row in rows]
        with to.counting("0", "%size", width) as column:
            mask = first_lanes(to, to.do(f"sub i64 %size, {column}"), width)
            bytes_ = to.times(column, "4")
            square = [loaded(to, to.at(each, bytes_), mask, width) for each in sources]
            place = to.at(start, to.times(column, str(4 * lanes)))
            for number, each in enumerate(_transposed(to, square)):
                at = to.at(place, str(4 * lanes * number))
                to.lines.append(f"  store <{width} x float> {each}, ptr {at}, align 4")


def _transposed(to: BranchWriter, square: list[str]) -> list[str]:
    """Return the columns of a square of rows: blocks of 1, 2 etc. are exchanged."""
    size, step = len(square), 1
    kind = f"<{size} x float>"
    while step < size:
        rows = list(square)
        for i in (i for i in range(size) if not i & step):
            for number, is_second in ((i, False), (i + step, True)):
                order = ", ".join(
                    f"i32 {_source(lane, step, size, is_second)}"
                    for lane in range(size)
                )
                rows[number] = to.do(
                    f"shufflevector {kind} {square[i]}, {kind} {square[i + step]}, "
                    f"<{size} x i32> <{order}>"
                )
        square, step = rows, 2 * step
    return square


def _source(lane: int, step: int, size: int, is_second: bool) -> int:
    """Return the lane of two rows that an exchange of blocks of ``step`` reads."""
    if is_second:
        return lane + size if lane & step else lane + step
    return lane - step + size if lane & step else lane


def _pack_values(to: BranchWriter, form: Form, value: str, target: str) -> None:
    """Emit the copy of values to panels of some columns, with zeros behind the last."""
    lanes = form.tiles.channels
    kind = f"<{lanes} x float>"
    with to.counting("0", "%columns", lanes) as first:
        panel = to.times(to.do(f"udiv i64 {first}, {lanes}"), "%value.panel")
        start = to.at(target, panel)
        mask = first_lanes(to, to.do(f"sub i64 %columns, {first}"), lanes)
        moved = to.at(value, to.times(first, "4"))
        with to.counting("0", "%keys") as row:
            numbers = loaded(to, to.at(moved, to.times(row, "%value.row")), mask, lanes)
            place = to.at(start, to.times(row, str(4 * lanes)))
            to.lines.append(f"  store {kind} {numbers}, ptr {place}, align 4")
        filled = to.times("%keys", str(4 * lanes))
        has_gap = to.do(f"icmp ult i64 {filled}, %value.panel")
        with to.when(has_gap), to.counting(filled, "%value.panel", 4 * lanes) as byte:
            place = to.at(start, byte)
            to.lines.append(f"  store {kind} zeroinitializer, ptr {place}, align 4")


def _float(to: BranchWriter, start: str, index: str) -> str:
    pointer = to.do(f"getelementptr float, ptr {start}, i64 {index}")
    return to.do(f"load float, ptr {pointer}")


def _block(
    to: BranchWriter,
    form: Form,
    scratch: str,
    places: dict[str, str],
    bounds: tuple[str, str],
) -> None:
    """Emit the result of some rows, whose operands start at ``places``."""
    lanes, (first, count) = form.tiles.channels, bounds
    query, scores = (to.at(scratch, f"%{name}.offset") for name in ("query", "scores"))
    _copy_query(to, form, places["query"], (query, count))
    seen = "%keys"
    if form.is_causal:
        seen = to.limited(seen, to.do(f"add i64 {first}, {count}"), "smin")
    panels = to.do(f"udiv i64 {to.do(f'add i64 {seen}, {lanes - 1}')}, {lanes}")
    shared = "ptr %zeros, ptr %limits, ptr %offsets"
    with to.counting("0", panels) as panel:
        keys = to.at(scratch, to.times(panel, "%key.panel"))
        target = to.at(scores, to.times(panel, "%tap.bytes"))
        to.lines.append(
            f"  call void @product(ptr {query}, ptr {keys}, ptr {target}, {shared}, "
            f"i64 %taps, i64 %channels, i64 {4 * lanes}, i64 {lanes}, i64 {count})"
        )
    factors = to.at(scratch, "%factors.offset")
    _weigh(to, form, (scores, places["mask"], factors), panels, bounds)
    values = to.at(scratch, "%values.offset")
    with to.counting("0", "%columns", lanes) as column:
        panel = to.do(f"udiv i64 {column}, {lanes}")
        packed = to.at(values, to.times(panel, "%value.panel"))
        target = to.at(places["out"], to.times(column, "4"))
        left = to.do(f"sub i64 %columns, {column}")
        to.lines.append(
            f"  call void @product(ptr {scores}, ptr {packed}, ptr {target}, {shared}, "
            f"i64 {panels}, i64 {lanes}, i64 %out.row, i64 {left}, i64 {count})"
        )
    _divide(to, lanes, places["out"], (factors, count))


def _weigh(
    to: BranchWriter,
    form: Form,
    operands: tuple[str, str, str],
    panels: str,
    bounds: tuple[str, str],
) -> None:
    """Emit the softmax of the rows of a block, without its division by sums."""
    scores, masks, factors = operands
    lanes, (first, count) = form.tiles.channels, bounds
    with to.counting("0", count) as row:
        seen = "%keys"
        if form.is_causal:
            number = to.do(f"add i64 {to.do(f'add i64 {first}, {row}')}, 1")
            seen = to.limited(seen, number, "smin")
        moved = to.at(scores, to.times(row, str(4 * lanes)))
        mask = to.at(masks, to.times(row, "%mask.row"))
        factor = to.at(factors, to.times(row, "4"))
        to.lines.append(
            f"  call void @softmax(ptr {moved}, ptr {mask}, i64 {panels}, "
            f"i64 %tap.bytes, i64 {seen}, ptr {factor})"
        )


def _copy_query(
    to: BranchWriter, form: Form, source: str, target: tuple[str, str]
) -> None:
    """Emit the copy of rows times the scale, in taps of some channels."""
    (start, count), lanes = target, form.tiles.channels
    kind = f"<{lanes} x float>"
    bits = to.do("trunc i64 %scale.bits to i32")
    scale = splat(to, to.do(f"bitcast i32 {bits} to float"), lanes)
    mask = first_lanes(to, "%channels", lanes)
    with to.counting("0", count) as row, to.counting("0", "%taps") as tap:
        given = to.at(source, to.times(row, "%query.row"))
        given = to.at(given, to.times(to.times(tap, "%channels"), "4"))
        place = to.at(start, to.times(tap, "%tap.bytes"))
        place = to.at(place, to.times(row, str(4 * lanes)))
        scaled = to.do(f"fmul {kind} {loaded(to, given, mask, lanes)}, {scale}")
        to.lines.append(f"  store {kind} {scaled}, ptr {place}, align 4")


def _divide(to: BranchWriter, lanes: int, out: str, rows: tuple[str, str]) -> None:
    """Emit the multiplication of rows by the reciprocals of their sums."""
    factors, count = rows
    with to.counting("0", count) as row:
        factor = splat(to, _float(to, factors, row), lanes)
        start = to.at(out, to.times(row, "%out.row"))
        in_place(
            to,
            (start, "%columns"),
            lanes,
            lambda x: to.do(f"fmul <{lanes} x float> {x}, {factor}"),
        )


def _softmax_source(form: Form) -> str:
    """Return the function of a row of scores, which become powers in place.

    Scores from ``%seen`` on become 0. ``%factor`` is set to the reciprocal of the sum.
    """
    lanes = form.tiles.channels
    kind = f"<{lanes} x float>"
    to = BranchWriter()
    parts = {}
    for name in ("a", "b"):
        to.lines = []
        _read_scores(to, form, name)
        parts[name] = "\n".join(to.lines)
    to.lines = []
    shifted = to.do(f"fsub {kind} %b.seen, %most.all")
    least, bound = (f"splat (float {float(n)})" for n in (EXP_BOUNDS[0],) * 2)
    is_low = to.do(f"fcmp olt {kind} {shifted}, {least}")
    bounded = to.do(f"select <{lanes} x i1> {is_low}, {kind} {bound}, {kind} {shifted}")
    power = exp_of_bounded(to, bounded, lanes)
    to.lines.append(
        f"  %power = select <{lanes} x i1> {is_low}, {kind} zeroinitializer, "
        f"{kind} {power}"
    )
    is_empty = "oeq" if form.empty_is_zero else "false"
    return _SOFTMAX.format(
        kind=kind,
        lanes=lanes,
        largest=parts["a"],
        scores=parts["b"],
        power="\n".join(to.lines),
        empty=is_empty,
    )


def _read_scores(to: BranchWriter, form: Form, name: str) -> None:
    """Emit ``%a.seen``: the scores of panel ``%a``, minus infinity where hidden."""
    lanes = form.tiles.channels
    kind = f"<{lanes} x float>"
    at = f"%{name}.at"
    to.lines.append(f"  %{name}.moved = mul i64 %{name}, %panel.bytes")
    to.lines.append(f"  {at} = getelementptr i8, ptr %scores, i64 %{name}.moved")
    scores = to.do(f"load {kind}, ptr {at}, align 4")
    first = to.times(f"%{name}", str(lanes))
    is_seen = first_lanes(to, to.do(f"sub i64 %seen, {first}"), lanes)
    if form.has_mask:
        place = to.do(f"getelementptr float, ptr %mask, i64 {first}")
        added = loaded(to, place, is_seen, lanes)
        scores = to.do(f"fadd {kind} {scores}, {added}")
    to.lines.append(
        f"  %{name}.seen = select <{lanes} x i1> {is_seen}, {kind} {scores}, "
        f"{kind} splat (float 0xFFF0000000000000)"
    )


_SOFTMAX = """\
define internal void @softmax(ptr %scores, ptr %mask, i64 %panels, i64 %panel.bytes, \
i64 %seen, ptr %factor) noinline {{
entry:
  br label %compare
compare:
  %a = phi i64 [ 0, %entry ], [ %a.next, %compare ]
  %most.lanes = phi {kind} [ splat (float 0xFFF0000000000000), %entry ], \
[ %larger, %compare ]
{largest}
  %is.larger = fcmp ogt {kind} %a.seen, %most.lanes
  %larger = select <{lanes} x i1> %is.larger, {kind} %a.seen, {kind} %most.lanes
  %a.next = add nuw nsw i64 %a, 1
  %a.more = icmp ult i64 %a.next, %panels
  br i1 %a.more, label %compare, label %compared
compared:
  %most = call nnan float @llvm.vector.reduce.fmax.v{lanes}f32({kind} %larger)
  %is.empty = fcmp {empty} float %most, 0xFFF0000000000000
  %most.some = select i1 %is.empty, float 0.0, float %most
  %most.one = insertelement {kind} poison, float %most.some, i64 0
  %most.all = shufflevector {kind} %most.one, {kind} poison, \
<{lanes} x i32> zeroinitializer
  br label %weigh
weigh:
  %b = phi i64 [ 0, %compared ], [ %b.next, %weigh ]
  %sum = phi {kind} [ zeroinitializer, %compared ], [ %summed, %weigh ]
{scores}
{power}
  store {kind} %power, ptr %b.at, align 4
  %summed = fadd {kind} %sum, %power
  %b.next = add nuw nsw i64 %b, 1
  %b.more = icmp ult i64 %b.next, %panels
  br i1 %b.more, label %weigh, label %weighed
weighed:
  %total = call reassoc float @llvm.vector.reduce.fadd.v{lanes}f32(float 0.0, \
{kind} %summed)
  %inverse = fdiv float 1.0, %total
  %factor.some = select i1 %is.empty, float 0.0, float %inverse
  store float %factor.some, ptr %factor
  ret void
}}
"""

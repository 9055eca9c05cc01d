"""Batch norms by constant factors and addends as machine code.

The channels of a pixel are read from several images. The concatenation before a batch
norm in a dense block is therefore not copied.
"""

from functools import cache

import numpy as np

from burn.backend.cpu.jit.source import Kernel
from burn.backend.cpu.jit.writer import ENTRIES
from burn.backend.cpu.onednn.binding.memory import address, channels_last
from burn.ops.support import Array

_FLOAT32 = np.dtype(np.float32)


def scaled_images_kernel(
    images: list[Array], scale: Array, shift: Array, out: Array, has_relu: bool
) -> Kernel | None:
    """Return the kernel of the images side by side, times ``scale`` plus ``shift``.

    None if an image is not dense and channels-last, or if ``out`` is written over an
    image whose elements are read later.
    """
    if not all(map(_is_readable, [*images, out])):
        return None
    is_in_place = len(images) == 1 and address(images[0]) == address(out)
    if not is_in_place and any(np.may_share_memory(each, out) for each in images):
        return None
    channels = out.shape[1]
    pixels = out.size // channels
    words = [*map(address, (out, scale, shift)), channels, len(images)]
    for image in images:
        words += [address(image), image.shape[1]]
    owned = (*images, scale, shift, out)
    return Kernel(
        _text(has_relu), (), (pixels, *words), 2 * out.size, pixels, owned=owned
    )


def _is_readable(image: Array) -> bool:
    """Return whether all pixels, and their channels, are side by side."""
    if image.dtype != _FLOAT32 or not image.size:
        return False
    dense = (_FLOAT32.itemsize * step for step in channels_last(image.shape))
    return all(
        extent == 1 or mine == step
        for extent, mine, step in zip(image.shape, image.strides, dense, strict=True)
    )


def _vector(name: str, start: str, *, has_relu: bool, mask: str = "") -> str:
    """Return the instructions for 16 channels from ``start``, or those of ``mask``."""
    kind = "<16 x float>"
    lines = []
    for each, pointer in (("x", "%x"), ("factor", "%scale"), ("addend", "%shift")):
        lines.append(
            f"%{name}.{each}.at = getelementptr float, ptr {pointer}, i64 {start}"
        )
        where = f"ptr %{name}.{each}.at"
        read = f"load {kind}, {where}, align 4"
        if mask:
            given = f"{where}, i32 4, <16 x i1> {mask}, {kind} zeroinitializer"
            read = f"call {kind} @llvm.masked.load.v16f32.p0({given})"
        lines.append(f"%{name}.{each} = {read}")
    result, nothing = f"%{name}.sum", f"{kind} zeroinitializer"
    lines += [
        f"%{name}.product = fmul {kind} %{name}.x, %{name}.factor",
        f"{result} = fadd {kind} %{name}.product, %{name}.addend",
        f"%{name}.to = getelementptr float, ptr %row, i64 {start}",
    ]
    if has_relu:
        lines.append(f"%{name}.more = fcmp ogt {kind} {result}, zeroinitializer")
        choice = f"<16 x i1> %{name}.more, {kind} {result}, {nothing}"
        result = f"%{name}.relu"
        lines.append(f"{result} = select {choice}")
    write = f"store {kind} {result}, ptr %{name}.to, align 4"
    if mask:
        given = f"{kind} {result}, ptr %{name}.to, i32 4, <16 x i1> {mask}"
        write = f"call void @llvm.masked.store.v16f32.p0({given})"
    return "\n".join(f"  {line}" for line in (*lines, write))


@cache
def _text(has_relu: bool) -> str:
    """Return the source, whose data are the number of pixels and other words."""
    return _TEXT.format(
        vector=_vector("v", "%c", has_relu=has_relu),
        rest=_vector("r", "%full", has_relu=has_relu, mask="%mask"),
        lanes=", ".join(f"i32 {lane}" for lane in range(16)),
        entries=ENTRIES.format(
            loads="  %parts = load i64, ptr %data", given="ptr %data, "
        ),
    )


# LLVM makes several vectors of one where those of the processor are shorter.
_TEXT = """\
define internal void @part(ptr %data, i64 %low, i64 %high) noinline {{
entry:
  %out.at = getelementptr i64, ptr %data, i64 1
  %scale.at = getelementptr i64, ptr %data, i64 2
  %shift.at = getelementptr i64, ptr %data, i64 3
  %channels.at = getelementptr i64, ptr %data, i64 4
  %count.at = getelementptr i64, ptr %data, i64 5
  %table = getelementptr i64, ptr %data, i64 6
  %out = load ptr, ptr %out.at
  %scale = load ptr, ptr %scale.at
  %shift = load ptr, ptr %shift.at
  %channels = load i64, ptr %channels.at
  %count = load i64, ptr %count.at
  br label %pixel
pixel:
  %p = phi i64 [ %low, %entry ], [ %p.next, %pixel.end ]
  %done = mul i64 %p, %channels
  %row = getelementptr float, ptr %out, i64 %done
  br label %image
image:
  %k = phi i64 [ 0, %pixel ], [ %k.next, %image.end ]
  %first = phi i64 [ 0, %pixel ], [ %end, %image.end ]
  %k.word = shl i64 %k, 1
  %start.at = getelementptr i64, ptr %table, i64 %k.word
  %width.at = getelementptr i64, ptr %start.at, i64 1
  %start = load ptr, ptr %start.at
  %width = load i64, ptr %width.at
  %end = add i64 %first, %width
  %skipped = mul i64 %p, %width
  %offset = sub i64 %skipped, %first
  %x = getelementptr float, ptr %start, i64 %offset
  %whole = and i64 %width, -16
  %full = add i64 %first, %whole
  %has.vector = icmp ne i64 %whole, 0
  br i1 %has.vector, label %vector, label %rest
vector:
  %c = phi i64 [ %first, %image ], [ %c.next, %vector ]
{vector}
  %c.next = add i64 %c, 16
  %c.more = icmp ult i64 %c.next, %full
  br i1 %c.more, label %vector, label %rest
rest:
  %has.rest = icmp ult i64 %full, %end
  br i1 %has.rest, label %masked, label %image.end
masked:
  %left = sub i64 %end, %full
  %left.narrow = trunc i64 %left to i32
  %one = insertelement <16 x i32> poison, i32 %left.narrow, i64 0
  %all = shufflevector <16 x i32> %one, <16 x i32> poison, <16 x i32> zeroinitializer
  %mask = icmp ult <16 x i32> <{lanes}>, %all
{rest}
  br label %image.end
image.end:
  %k.next = add i64 %k, 1
  %k.more = icmp ult i64 %k.next, %count
  br i1 %k.more, label %image, label %pixel.end
pixel.end:
  %p.next = add i64 %p, 1
  %p.more = icmp ult i64 %p.next, %high
  br i1 %p.more, label %pixel, label %exit
exit:
  ret void
}}

{entries}
declare <16 x float> @llvm.masked.load.v16f32.p0(ptr, i32, <16 x i1>, <16 x float>)
declare void @llvm.masked.store.v16f32.p0(<16 x float>, ptr, i32, <16 x i1>)
"""

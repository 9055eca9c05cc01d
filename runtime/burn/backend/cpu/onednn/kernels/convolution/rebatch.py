"""Convolutions of single pixels over other images than those that are there.

It does not matter which pixels are one image to a window of one. Code for AMX lets each
thread have some of the images; where there are fewer than threads, or small ones, it
takes up to 1.4 times as long as if each thread has one with as many pixels as others.
"""

from math import gcd, prod
from typing import NamedTuple

from burn.ops.window import Windows, windows

#: Images of more pixels, one for each thread at least, are left as they are.
_PIXELS = 1000


class Form(NamedTuple):
    """Extents [N, C, *size] of what goes in and comes out, and the windows."""

    x: tuple[int, ...]
    shape: tuple[int, ...]
    wins: Windows


def shared(form: Form, implementation: str, threads: int) -> Form | None:
    """The same with one image for each thread, or several.

    None where it is not possible, or not known to pay with this ``implementation``.
    """
    wins, batch = form.wins, form.x[0]
    if not implementation.endswith("amx") or threads < 2:
        return None
    if wins.taps > 1 or any(map(any, wins.pads)):
        return None
    if batch >= threads and prod(wins.count) > _PIXELS:
        return None
    if set(wins.stride) == {1}:
        return _flat(form, threads)
    return _cut(form, threads // gcd(batch, threads))


def _flat(form: Form, parts: int) -> Form | None:
    """All pixels in so many images of one row."""
    pixels, rest = divmod(form.x[0] * prod(form.wins.size), parts)
    if rest:
        return None
    size = (*form.wins.kernel[1:], pixels)
    x, shape = ((parts, extents[1], *size) for extents in (form.x, form.shape))
    return Form(x, shape, windows(size, form.wins.kernel))


def _cut(form: Form, parts: int) -> Form | None:
    """Images each of which is cut into so many, between rows."""
    (batch, inputs, height, *rest), wins = form.x, form.wins
    rows, stride = wins.count[0], wins.stride[0]
    if parts == 1 or rows % parts or rows * stride != height:
        return None
    x = (batch * parts, inputs, height // parts, *rest)
    shape = (batch * parts, form.shape[1], rows // parts, *wins.count[1:])
    return Form(x, shape, windows(x[2:], wins.kernel, wins.stride))

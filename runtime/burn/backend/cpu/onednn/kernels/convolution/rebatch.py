"""Pointwise convolutions, regrouped into another number of images.

Pixels are independent in 1 x 1 convolutions. AMX code distributes images over threads;
with fewer images than threads, or small ones, it takes up to 1.4 times as long as with
one image of equal size per thread.
"""

from math import gcd, prod
from typing import NamedTuple

from burn.ops.window import Windows, windows

#: Images of more pixels, one for each thread at least, are left as they are.
_PIXELS = 1000


class Form(NamedTuple):
    """The extents [N, C, *size] of the input and the result, and the windows."""

    x: tuple[int, ...]
    shape: tuple[int, ...]
    wins: Windows


def rebatched(form: Form, implementation: str, threads: int) -> Form | None:
    """Return the convolution with one image or several per thread.

    None if impossible, or not known to be faster with this ``implementation``.
    """
    wins, batch = form.wins, form.x[0]
    if not implementation.endswith("amx") or threads < 2:
        return None
    if wins.taps > 1 or any(map(any, wins.pads)):
        return None
    if batch >= threads and prod(wins.count) > _PIXELS:
        return None
    if set(wins.stride) == {1}:
        return _as_rows(form, threads)
    return _split_rows(form, threads // gcd(batch, threads))


def _as_rows(form: Form, parts: int) -> Form | None:
    """Return all pixels as ``parts`` images of one row, or None."""
    pixels, rest = divmod(form.x[0] * prod(form.wins.size), parts)
    if rest:
        return None
    size = (*form.wins.kernel[1:], pixels)
    x, shape = ((parts, extents[1], *size) for extents in (form.x, form.shape))
    return Form(x, shape, windows(size, form.wins.kernel))


def _split_rows(form: Form, parts: int) -> Form | None:
    """Return images that are each split into ``parts`` between rows, or None."""
    (batch, inputs, height, *rest), wins = form.x, form.wins
    rows, stride = wins.count[0], wins.stride[0]
    if parts == 1 or rows % parts or rows * stride != height:
        return None
    x = (batch * parts, inputs, height // parts, *rest)
    shape = (batch * parts, form.shape[1], rows // parts, *wins.count[1:])
    return Form(x, shape, windows(x[2:], wins.kernel, wins.stride))

"""Convolutions with BLAS: products of im2col tiles with weights.

The windows of some lines of the result are copied at a time; the tile stays in the
cache until bias and activation are applied. Constant weights are reordered once, and
memory is reused: padded images, and one tile of windows.
"""

from collections.abc import Callable, Iterator
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np

from burn.backend.cpu.blas.generated_convolution import (
    ending_of,
    generated,
    is_generated,
)
from burn.backend.cpu.onednn.binding.capture import Notes, do, noting
from burn.ops.conv import conv as conv_op
from burn.ops.depthwise import channel_taps, depthwise, depthwise_into
from burn.ops.fused import After, apply_after, conv_then as conv_then_op
from burn.ops.support import Array
from burn.ops.window import Windows, every_window, windows

#: The bytes of windows that are made at once, and the least rows of a product.
TILE, ROWS = 1 << 20, 784
#: The bytes of a result that is activated while it is in the cache, and the elements
#: of a row for that.
HOT, WIDE = 1 << 18, 8192
#: Images of no more channels, which windows take two steps apart, are folded.
FEW = 4


_BOUNDS: dict[str, tuple[np.ufunc, ...]] = {
    "relu": (np.maximum,),
    "clip": (np.maximum, np.minimum),
}


class _Epilogue(NamedTuple):
    """The epilogue of each tile of a result; ``residual`` is channels-last."""

    bias: Array | None
    residual: Array | None
    after: After

    def finish(self, tile: Array, key: Any) -> None:
        """Apply the epilogue to the tile ``key`` of the result, now and in each run.

        Rows of the tile are joined and parameters repeated: NumPy is twice as fast with
        two long rows as with short ones, or with a row and a scalar.
        """
        channels, is_generated = tile.shape[-1], _is_generated()
        joined = 1 if is_generated else _joined_rows(tile)
        wide = tile if joined == 1 else tile.reshape(-1, joined * channels)
        if self.bias is not None:
            do(partial(np.add, wide, self._repeated(joined), out=wide))
        for name, *numbers in self.after:
            if name == "add":
                assert self.residual is not None
                do(partial(np.add, tile, self.residual[key], out=tile))
            elif name in _BOUNDS:
                limits = numbers or (0.0,)
                for function, limit in zip(_BOUNDS[name], limits, strict=True):
                    row: Any = limit
                    if not is_generated:
                        row = np.full(joined * channels, limit, tile.dtype)
                    do(partial(function, wide, row, out=wide))
            elif name == "scale":
                do(partial(np.multiply, tile, numbers[0], out=tile))
            else:
                do(partial(_activate, tile, ((name, *numbers),)))

    def _repeated(self, times: int) -> Array:
        """Return the bias repeated ``times`` times."""
        notes, bias = noting(), self.bias
        assert notes is not None
        assert bias is not None
        if notes.is_constant(bias):
            return np.tile(bias, times)
        row = notes.empty((times, len(bias)), bias.dtype)
        notes.assign(row, bias)
        return row.reshape(-1)


def _is_generated() -> bool:
    notes = noting()
    return notes is not None and notes.workspaces.is_generated


def _joined_rows(tile: Array) -> int:
    """Return how many rows of the tile are merged into one."""
    channels = tile.shape[-1]
    rows = tile.size // channels
    counts = range(1, max(WIDE // channels, 1) + 1)
    return max(n for n in counts if rows % n == 0)


def _activate(tile: Array, after: After) -> None:
    np.copyto(tile, apply_after(tile, None, after))


def conv(x: Array, weight: Array, bias: Array | None = None, **static: Any) -> Array:
    """Compute :func:`burn.ops.conv` in a plan with BLAS, if supported."""
    out = _planned(x, weight, _Epilogue(bias, None, ()), static)
    return conv_op.kernel(x, weight, bias, **static) if out is None else out


def conv_then(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    residual: Array | None = None,
    *,
    after: After,
    **static: Any,
) -> Array:
    """Compute :func:`burn.ops.fused.conv_then` in a plan with BLAS, if supported."""
    last = None if residual is None else _channels_last(residual)
    out = _planned(x, weight, _Epilogue(bias, last, after), static)
    if out is None:
        return conv_then_op.kernel(x, weight, bias, residual, after=after, **static)
    return out


#: The kernels of primitives for plans without an engine.
KERNELS: dict[Any, Callable[..., Any]] = {conv_op: conv, conv_then_op: conv_then}


def _planned(x: Array, weight: Array, end: _Epilogue, static: Any) -> Array | None:
    """Return the result, channels-last in memory; None if not supported."""
    notes, groups = noting(), static.get("groups", 1)
    steps = (static.get(name, 1) for name in ("stride", "padding", "dilation"))
    stride, padding, dilation = steps
    padding = static.get("padding", 0)
    operands = [x, weight, *(a for a in (end.bias, end.residual) if a is not None)]
    if notes is None or {a.dtype for a in operands} - {np.dtype(np.float32)}:
        return None
    if not x.size or not weight.size or x.ndim < 3:
        return None
    is_depthwise = groups == x.shape[1] == weight.shape[0] and groups > 1
    is_whole = is_generated(notes, weight, end.bias) and weight.ndim <= 4
    if x.shape[1] != weight.shape[1] * groups or weight.shape[0] % groups:
        return None
    if groups > 1 and not (is_depthwise or is_whole):
        return None
    wins = windows(x.shape[2:], weight.shape[2:], stride, padding, dilation)
    if not prod(wins.count):
        return None
    last = _channels_last(x)
    if is_depthwise:
        out = _depthwise(notes, last, weight, wins, end)
    elif is_whole:
        out = _in_one_call(notes, last, weight, wins, end)
    elif _is_folded(x, wins):
        out = _fold_stride(notes, last, weight, wins, end)
    else:
        covered = _covered(notes, last, wins, strided=True)
        out = _dense(notes, covered, _matrix(notes, weight), wins, end)
    return out.transpose(0, out.ndim - 1, *range(1, out.ndim - 1))


def _in_one_call(
    notes: Notes, x: Array, weight: Array, wins: Windows, end: _Epilogue
) -> Array:
    covered = _covered(notes, x, wins, strided=True)
    if covered.strides[-1] != covered.itemsize and covered.shape[-1] > 1:
        memory = notes.empty(covered.shape, covered.dtype)
        notes.assign(memory, covered)
        covered = memory
    adds, limits, rest = ending_of(end.after)
    residual = end.residual if adds else None
    out = generated(notes, covered, weight, end.bias, residual, wins, limits)
    finish(out, None, end.residual, rest)
    return out


def finish(
    out: Array, bias: Array | None, residual: Array | None, after: After
) -> None:
    """Apply an epilogue to a channels-last result, now and in each run."""
    _Epilogue(bias, residual, after).finish(out, ...)


def _channels_last(x: Array) -> Array:
    return x.transpose(0, *range(2, x.ndim), 1)


def _matrix(notes: Notes, weight: Array) -> Array:
    """Return ``weight`` [O, C, *K] as [K * C, O]."""
    turned = weight.transpose(*range(2, weight.ndim), 1, 0)
    return _laid_out(notes, weight, turned).reshape(-1, weight.shape[0])


def _laid_out(notes: Notes, weight: Array, view: Array) -> Array:
    """Return ``view`` of weights in row-major memory, copied once if constant."""
    if notes.is_constant(weight):
        memory = np.ascontiguousarray(view)
        notes.keep(memory, constant=True)
        return memory
    memory = notes.empty(view.shape, view.dtype)
    notes.assign(memory, view)
    return memory


def _covered(notes: Notes, x: Array, wins: Windows, *, strided: bool = False) -> Array:
    """Return padded ``x`` [N, *size, C], in memory that steps share.

    ``strided`` windows of one position may be read from a view.
    """
    pads = wins.exact
    if all(before <= 0 and after <= 0 for before, after in pads):
        view: Array = wins.cover(x, 1, 0)
        is_read_once = strided and wins.taps == 1 and prod(wins.stride) > 1
        if view.flags.c_contiguous or is_read_once:
            return view
        memory = notes.empty(view.shape, view.dtype)
        notes.assign(memory, view)
        return memory
    if any(before < 0 or after < 0 for before, after in pads):
        covered: Array = wins.cover(x, 1, 0, plain=True)
        memory = notes.empty(covered.shape, covered.dtype)
        do(partial(_cover, wins, x, memory))
        return memory
    shape = (x.shape[0], *wins.needed, x.shape[-1])
    whole = notes.workspaces.shared(("covered", shape, pads), shape, zeros=True)
    ends = zip(pads, wins.size, strict=True)
    inside = whole[:, *(slice(before, before + n) for (before, _), n in ends)]
    notes.assign(inside, x)
    return whole


def _cover(wins: Windows, x: Array, memory: Array) -> None:
    np.copyto(memory, wins.cover(x, 1, 0, plain=True))


def _dense(
    notes: Notes, covered: Array, matrix: Array, wins: Windows, end: _Epilogue
) -> Array:
    """Return products of windows with ``matrix`` [K * C, O]."""
    width, channels = matrix.shape
    out = notes.empty((covered.shape[0], *wins.count, channels), covered.dtype)
    if wins.taps == 1 and prod(wins.stride) == 1:
        rows, flat = covered.reshape(-1, width), out.reshape(-1, channels)
        if end.residual is not None:
            end = _with_flat_pixels(notes, end, flat.shape)
        together = max(WIDE // channels, 1)
        step = max(HOT // (channels * out.itemsize), ROWS)
        step = -(-step // together) * together
        for start in range(0, len(rows), step):
            some = slice(start, start + step)
            do(partial(np.matmul, rows[some], matrix, out=flat[some]))
            end.finish(flat[some], some)
        return out
    view = every_window(covered, wins, 1, True)[0]
    line = prod(wins.count[1:])
    lines = max(max(TILE // (width * out.itemsize), ROWS) // line, 1)
    lines = min(lines, wins.count[0])
    columns = notes.workspaces.shared("columns", (lines * line * width,))
    for key in _tiles(len(out), wins.count[0], lines):
        part, target = view[key], out[key]
        count = prod(target.shape[:-1])
        tile = columns[: count * width]
        do(partial(np.copyto, tile.reshape(part.shape), part))
        into = target.reshape(count, channels)
        do(partial(np.matmul, tile.reshape(count, width), matrix, out=into))
        end.finish(target, key)
    return out


def _tiles(batch: int, count: int, lines: int) -> Iterator[tuple[int, slice]]:
    """Yield the keys of tiles of so many ``lines`` of each image."""
    for image in range(batch):
        for start in range(0, count, lines):
            yield image, slice(start, min(start + lines, count))


def _with_flat_pixels(
    notes: Notes, end: _Epilogue, shape: tuple[int, ...]
) -> _Epilogue:
    """Return ``end`` for a result in which only the channels are an axis."""
    residual = end.residual
    assert residual is not None
    if not residual.flags.c_contiguous:
        copy = notes.empty(residual.shape, residual.dtype)
        notes.assign(copy, residual)
        residual = copy
    return end._replace(residual=residual.reshape(shape))


def _is_folded(x: Array, wins: Windows) -> bool:
    return (
        x.ndim == 4
        and x.shape[1] <= FEW
        and wins.stride == (2, 2)
        and wins.dilation == (1, 1)
        and min(wins.kernel) > 1
        and min(map(min, wins.pads)) >= 0
    )


def _fold_stride(
    notes: Notes, x: Array, weight: Array, wins: Windows, end: _Epilogue
) -> Array:
    """Compute a stride-2 convolution as a stride-1 one over 2 x 2 blocks.

    The rows of windows are then longer, with four times as many channels.
    """
    kernel = tuple((n + 1) // 2 for n in wins.kernel)
    size = tuple(n + k - 1 for n, k in zip(wins.count, kernel, strict=True))
    batch, channels, outputs = x.shape[0], x.shape[-1], weight.shape[0]
    shape = (batch, *size, 2, 2, channels)
    blocks = notes.workspaces.shared(("blocks", shape, wins.pads), shape, zeros=True)
    for phase in np.ndindex(2, 2):
        targets, sources = [], []
        for axis, first in enumerate(phase):
            before = wins.pads[axis][0]
            start = (before - first + 1) // 2  # of the first block with an element
            skipped = 2 * start + first - before
            count = len(range(skipped, wins.size[axis], 2))
            count = min(count, size[axis] - start)
            targets.append(slice(start, start + count))
            sources.append(slice(skipped, skipped + 2 * count, 2))
        notes.assign(blocks[:, *targets, *phase], x[:, *sources])
    wide = notes.empty((outputs, channels, 2 * kernel[0], 2 * kernel[1]), x.dtype)
    if notes.is_constant(weight):
        wide = np.zeros(wide.shape, wide.dtype)
        wide[:, :, : wins.kernel[0], : wins.kernel[1]] = weight
        notes.keep(wide, constant=True)
    else:
        do(partial(wide.fill, 0.0))
        notes.assign(wide[:, :, : wins.kernel[0], : wins.kernel[1]], weight)
    parts = wide.reshape(outputs, channels, kernel[0], 2, kernel[1], 2)
    matrix = _laid_out(notes, wide, parts.transpose(2, 4, 3, 5, 1, 0))
    inner = windows(size, kernel, 1, 0, 1)
    covered = blocks.reshape(batch, *size, 4 * channels)
    return _dense(notes, covered, matrix.reshape(-1, outputs), inner, end)


def _depthwise(
    notes: Notes, x: Array, weight: Array, wins: Windows, end: _Epilogue
) -> Array:
    """Return the depthwise convolution, [N, *count, C]."""
    covered = _covered(notes, x, wins)
    out = notes.empty((x.shape[0], *wins.count, x.shape[-1]), x.dtype)
    if not notes.is_constant(weight):
        do(partial(_compute, covered, weight, wins, out))
        end.finish(out, ...)
        return out
    if _is_generated():
        _shifted(notes, covered, weight, wins, out)
        end.finish(out, ...)
        return out
    taps = channel_taps(weight, wins)
    line = prod(out.shape[2:]) * out.itemsize
    lines = max(HOT // line, 1)
    for key in _tiles(len(out), wins.count[0], lines):
        do(depthwise_into(covered, taps, wins, out, key))
        end.finish(out[key], key)
    return out


def _shifted(
    notes: Notes, covered: Array, weight: Array, wins: Windows, out: Array
) -> None:
    """Compute sums of elementwise products, which become one generated kernel."""
    term = notes.empty(out.shape, out.dtype)
    for index, (tap, keys) in enumerate(wins.places()):
        factor = np.ascontiguousarray(weight[:, 0][:, *tap])
        view = covered[:, *keys]
        do(partial(np.multiply, view, factor, out=term if index else out))
        if index:
            do(partial(np.add, out, term, out=out))


def _compute(covered: Array, weight: Array, wins: Windows, out: Array) -> None:
    np.copyto(out, depthwise(covered, weight, wins, covered.shape[-1]))

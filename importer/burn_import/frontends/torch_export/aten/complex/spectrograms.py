"""Short-time Fourier transforms and their inverses."""

from burn_import.frontends.torch_export.aten.complex.fourier import (
    NUMBER,
    ROOT,
    as_signal,
    inverse_half,
)
from burn_import.frontends.torch_export.aten.shape.concatenation import pad_value
from burn_import.frontends.torch_export.builder import INT64, Builder, Value
from burn_import.frontends.torch_export.complex_as_real import (
    is_complex,
    reals,
    to_pairs,
)
from burn_import.frontends.torch_export.registry import COMPLEX, rule
from burn_ir import UnsupportedModel

#: The rank of a batch of signals.
_BATCH = 2


def whole_window(
    g: Builder, window: Value | None, n_fft: int, win_length: int | None
) -> Value:
    """Return the window [n_fft]: a shorter one is centered in zeros, none is ones."""
    of = reals(g)
    size = n_fft if win_length is None else win_length
    if window is not None and is_complex(window):
        raise UnsupportedModel("expected a window of real numbers")
    values = of.constant([1.0] * size, of.dtype) if window is None else of.cast(window)
    before = (n_fft - size) // 2
    if size == n_fft:
        return values
    return of.op("Pad", values, [before, n_fft - size - before])


@rule("aten.stft.default")
@rule("aten.stft.default", table=COMPLEX)
def stft(
    g: Builder,
    self: Value,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Value | None = None,
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Value:
    """Return the spectrum [..., n_fft, frames] of frames of a signal, or half of it."""
    if return_complex and not is_complex(g.results[0]):
        raise UnsupportedModel("expected a result of real numbers")
    if align_to_window:
        raise UnsupportedModel("expected frames that are not aligned to the window")
    of = reals(g)
    alone = self.rank < _BATCH
    signal = as_signal(g, self)
    signal = of.op("Unsqueeze", signal, [0]) if alone else signal
    half = not is_complex(self) if onesided is None else onesided
    frames = of.op(
        "STFT",
        signal,
        g.constant(n_fft // 4 if hop_length is None else hop_length),
        whole_window(g, window, n_fft, win_length),
        g.constant(n_fft),
        onesided=int(half),
    )
    frames = of.op("Transpose", frames, perm=(0, 2, 1, 3))
    frames = of.op("Squeeze", frames, [0]) if alone else frames
    return of.op("Mul", frames, n_fft**-0.5) if normalized else frames


@rule("aten.stft.center")
@rule("aten.stft.center", table=COMPLEX)
def stft_center(
    g: Builder,
    self: Value,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Value | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Value:
    """Return the spectrum of frames that are centered on their sample."""
    signal = self
    if center:
        ends = [n_fft // 2] * 2
        pairs = to_pairs(self)
        ends = [0, 0, *ends] if is_complex(self) else ends
        wide = pad_value(g.at(pairs.dtype), pairs, ends, pad_mode)
        dims = None if self.dims is None else (*self.dims[:-1], -1)
        signal = Value(wide.name, self.dtype, dims)
    rest = (hop_length, win_length, window, normalized, onesided)
    return stft(g, signal, n_fft, *rest, return_complex, align_to_window)


@rule("aten.istft.default", table=COMPLEX)
def istft(
    g: Builder,
    self: Value,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Value | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | Value | None = None,
    return_complex: bool = False,
) -> Value:
    """Return the signal [..., length] of a spectrum, by overlapping addition."""
    if return_complex:
        raise UnsupportedModel("expected a signal of real numbers")
    of, step = reals(g), n_fft // 4 if hop_length is None else hop_length
    x = self
    if self.rank == _BATCH:
        pairs = of.op("Unsqueeze", to_pairs(self), [0])
        x = Value(pairs.name, self.dtype, (1, *(self.dims or ())))
    line = of.op("Unsqueeze", whole_window(g, window, n_fft, win_length), [0, 2])
    # The first half of the spectrum determines the rest.
    frames = inverse_half(g, x, [1], [n_fft], ROOT if normalized else NUMBER)
    every = of.op("Expand", of.op("Mul", line, line), [1, 1, g.extent(self, -1)])
    start = n_fft // 2 if center else 0
    parts = [
        without_padding(
            g, overlap_add(g, each, n_fft, step, g.extent(self, -1)), start, length
        )
        for each in (of.op("Mul", frames, line), every)
    ]
    signal = of.op("Div", *parts)
    if length is not None:
        signal = _padded_to(of, signal, length)
    return of.op("Squeeze", signal, [0]) if self.rank == _BATCH else signal


def _padded_to(of: Builder, signal: Value, length: int | Value) -> Value:
    """Return a signal [batch, n] with zeros up to ``length``."""
    whole = of.at(INT64)
    size = whole.op("Shape", signal, start=1)
    missing = whole.op("Sub", of.ints([length]), size)
    ends = whole.op("Concat", [0], missing, axis=0)
    return of.op("Pad", signal, ends, None, [1])


def overlap_add(
    g: Builder, frames: Value, n_fft: int, step: int, count: int | Value
) -> Value:
    """Return the sum [N, length] of overlapping frames [N, n_fft, count]."""
    if isinstance(count, int):
        size: int | Value = n_fft + step * (count - 1)
    else:
        whole = g.at(INT64)
        size = whole.op("Add", whole.op("Mul", count, step), n_fft - step)
    columns = reals(g).op("Col2Im", frames, [1, size], [1, n_fft], strides=(1, step))
    return reals(g).op("Squeeze", columns, [1, 2])


def without_padding(
    g: Builder, x: Value, start: int, length: int | Value | None
) -> Value:
    """Return a signal [N, length] without its padding at the start and the end."""
    if not start and length is None:
        return x
    end: int | Value = -start
    if isinstance(length, int):
        end = start + length
    elif length is not None:
        end = g.at(INT64).op("Add", g.at(INT64).cast(length), start)
    return reals(g).op("Slice", x, [start], g.ints([end]), [1])

"""Examples of Fourier transforms and windows."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.strategies.registry import Array, Draw, Example, case, extents, floats


def scalar(value: Any, dtype: Any = np.int64) -> Array:
    """A tensor of one number."""
    return np.array(value, dtype)


@case("HannWindow", "HammingWindow", "BlackmanWindow")
def window(draw: Draw, version: int) -> Example:
    attrs = {"periodic": draw(st.integers(0, 1))}
    if draw(st.booleans()):
        attrs["output_datatype"] = draw(st.sampled_from([1, 11, 7, 2]))
    dtype = draw(st.sampled_from([np.int32, np.int64]))
    size = scalar(draw(st.integers(1, 40)), dtype)
    if attrs.get("output_datatype") in (2, 7):
        size = scalar(draw(st.sampled_from([3, 5, 7])), dtype)
    return Example(attrs, [size], stored=frozenset({0}), rtol=1e-4, atol=1e-6)


@case("MelWeightMatrix")
def mel(draw: Draw, version: int) -> Example:
    rate = draw(st.sampled_from([8000, 16000]))
    operands = [
        scalar(draw(st.integers(2, 12))),
        scalar(draw(st.sampled_from([64, 128, 256]))),
        scalar(rate),
        scalar(draw(st.sampled_from([0.0, 20.0, 125.5])), np.float32),
        scalar(draw(st.sampled_from([0.45, 0.31])) * rate, np.float32),
    ]
    attrs = {"output_datatype": 11} if draw(st.booleans()) else {}
    stored = frozenset(range(5))
    discrete = frozenset({3, 4})
    return Example(attrs, operands, stored=stored, discrete=discrete)


@case("DFT")
def transform(draw: Draw, version: int) -> Example:
    inverse, onesided = draw(st.integers(0, 1)), draw(st.integers(0, 1))
    parts = 2 if inverse and onesided else 1 if onesided else draw(st.integers(1, 2))
    *shape, _ = extents(draw, 4, 5, least=2, most=4)
    axis = draw(st.integers(0 if version >= 20 else 1, len(shape) - 1))
    shape[axis] = draw(st.integers(2, 9))
    if draw(st.booleans()):
        axis -= len(shape) + 1
    dtype = draw(st.sampled_from([np.float32, np.float64, np.float16]))
    attrs = {"inverse": inverse, "onesided": onesided}
    operands: list[Array | None] = [floats(draw, (*shape, parts), dtype)]
    length = scalar(draw(st.integers(2, 11))) if draw(st.booleans()) else None
    if version < 20:
        if axis != 1:
            attrs["axis"] = axis
        operands += [] if length is None else [length]
    elif axis != -2 or draw(st.booleans()):
        operands += [length, scalar(axis)]
    elif length is not None:
        operands.append(length)
    expected = None
    if dtype is np.float16 or (inverse and onesided and length is not None):
        size = None if length is None else int(length)
        expected = [transformed(operands[0], size, axis, inverse, onesided)]
    return Example(
        attrs,
        operands,
        symbols={0: (*(f"n{extent}" for extent in shape), parts)},
        expected=expected,
        rtol=1e-4,
        atol=1e-5,
    )


def transformed(
    x: Any, size: int | None, axis: int, inverse: int, onesided: int
) -> Array:
    """The transform by NumPy."""
    work = x.astype(np.float32) if x.dtype == np.float16 else x
    signal = work[..., 0] + 1j * work[..., 1] if x.shape[-1] == 2 else work[..., 0]
    transform = getattr(np.fft, "i" * inverse + "r" * onesided + "fft")
    y = transform(signal, size, axis % x.ndim)
    parts = [y] if inverse and onesided else [y.real, y.imag]
    return np.stack(parts, -1).astype(x.dtype)


@case("STFT")
def short_time(draw: Draw, version: int) -> Example:
    onesided = draw(st.integers(0, 1))
    attrs = {} if onesided and draw(st.booleans()) else {"onesided": onesided}
    parts = 1 if onesided else draw(st.integers(1, 2))
    batch, extent = draw(st.integers(1, 3)), draw(st.integers(8, 20))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    size = draw(st.integers(3, 8))
    operands: list[Array | None] = [
        floats(draw, (batch, extent, parts), dtype),
        scalar(draw(st.integers(1, 5))),
    ]
    kind = draw(st.sampled_from(["window", "length", "both"]))
    operands.append(None if kind == "length" else floats(draw, (size,), dtype))
    operands += [] if kind == "window" else [scalar(size)]
    symbols = {0: (f"n{batch}", f"m{extent}", parts), 2: (size,)}
    return Example(
        attrs,
        operands,
        symbols=symbols,
        always_stored=frozenset({1} if draw(st.booleans()) else ()),
        rtol=1e-4,
        atol=1e-5,
    )

"""Fourier transforms: ONNX's ``DFT``, axis by axis, on pairs of numbers."""

from collections.abc import Sequence
from typing import Any

from burn_import.frontends.torch_export.aten.complex.arithmetic import conj
from burn_import.frontends.torch_export.builder import INT64, Builder, Value
from burn_import.frontends.torch_export.complex_as_real import (
    axes_of,
    count,
    is_complex,
    reals,
    to_pairs,
)
from burn_import.frontends.torch_export.registry import COMPLEX, RULES, Rule, rule
from burn_ir import UnsupportedModel

Extent = int | Value
Sizes = Sequence[Extent]
#: ATen's normalization modes: divide the sum by 1, by the square root of the number of
#: terms, or by the number.
NOTHING, ROOT, NUMBER = range(3)
#: The modes of a transform and its inverse, by the value of ``norm``.
MODES: dict[str | None, tuple[int, int]] = {
    None: (NOTHING, NUMBER),
    "backward": (NOTHING, NUMBER),
    "ortho": (ROOT, ROOT),
    "forward": (NUMBER, NOTHING),
}


def as_signal(g: Builder, x: Value) -> Value:
    """Return ``x`` as a signal [..., 1], or [..., 2] if it is complex."""
    if is_complex(x):
        return to_pairs(x)
    return reals(g).op("Unsqueeze", reals(g).cast(x), [-1])


def dft_along(
    g: Builder, x: Value, axis: int, length: Extent | None = None, **flags: int
) -> Value:
    """Return the DFT of a signal along an axis; the inverse divides by the length."""
    size = None if length is None else g.value(length, INT64)
    attrs: dict[str, Any] = {**flags}
    return reals(g).op("DFT", x, size, g.constant(axis), **attrs)


def normalize(g: Builder, x: Value, number: Extent, mode: int, inverse: bool) -> Value:
    """Return the result of transforms, normalized as ``mode`` says."""
    if mode == (NUMBER if inverse else NOTHING):
        return x
    if isinstance(number, int):
        power = {NOTHING: 0.0, ROOT: -0.5, NUMBER: -1.0}[mode] + inverse
        return reals(g).op("Mul", x, float(number) ** power)
    factor = reals(g).cast(number)
    if mode == ROOT:
        factor = reals(g).op("Sqrt", factor)
    return reals(g).op("Mul" if inverse else "Div", x, factor)


def forward(
    g: Builder, self: Value, axes: Sequence[int], sizes: Sizes, mode: int, half: bool
) -> Value:
    """Return the transform of ``self``, one-sided along the last axis if ``half``."""
    signal = as_signal(g, self)
    for axis, size in reversed(list(zip(axes, sizes, strict=True))):
        flags = {"onesided": 1} if half and axis == axes[-1] else {}
        signal = dft_along(g, signal, axis, new_length(self, axis, size), **flags)
    return normalize(g, signal, count(g, sizes), mode, False)


def inverse(
    g: Builder, self: Value, axes: Sequence[int], sizes: Sizes, mode: int
) -> Value:
    """Return the inverse transform."""
    signal = as_signal(g, self)
    for axis, size in zip(axes, sizes, strict=True):
        signal = dft_along(g, signal, axis, new_length(self, axis, size), inverse=1)
    return normalize(g, signal, count(g, sizes), mode, True)


def inverse_half(
    g: Builder, self: Value, axes: Sequence[int], sizes: Sizes, mode: int
) -> Value:
    """Return the real inverse of a one-sided transform."""
    signal = as_signal(g, self)
    if not is_complex(self):
        signal = reals(g).op("Pad", signal, [0, 1], None, [-1])
    for axis, size in zip(axes[:-1], sizes[:-1], strict=True):
        signal = dft_along(g, signal, axis, new_length(self, axis, size), inverse=1)
    flags = {"inverse": 1, "onesided": 1}
    signal = dft_along(g, signal, axes[-1], sizes[-1], **flags)
    signal = reals(g).op("Squeeze", signal, [-1])
    return normalize(g, signal, count(g, sizes), mode, True)


def new_length(x: Value, axis: int, size: Extent) -> Extent | None:
    """Return the requested length; None if it is the extent of the axis."""
    return None if x.dims is not None and x.dims[axis] == size else size


def extents(g: Builder, x: Value, axes: Sequence[int]) -> list[Extent]:
    return [g.extent(x, axis) for axis in axes]


@rule("aten._fft_r2c.default", table=COMPLEX)
def r2c(
    g: Builder, self: Value, dim: Sequence[int], normalization: int, onesided: bool
) -> Value:
    axes = axes_of(self, dim)
    return forward(g, self, axes, extents(g, self, axes), normalization, onesided)


def c2c(
    g: Builder, self: Value, dim: Sequence[int], normalization: int, forward: bool
) -> Value:
    """Return the complex transform; the parameter has the schema's name."""
    axes = axes_of(self, dim)
    sizes = extents(g, self, axes)
    if forward:
        return _forward(g, self, axes, sizes, normalization, False)
    return inverse(g, self, axes, sizes, normalization)


_forward = forward
rule("aten._fft_c2c.default", table=COMPLEX)(c2c)


@rule("aten._fft_c2r.default", table=COMPLEX)
def c2r(
    g: Builder,
    self: Value,
    dim: Sequence[int],
    normalization: int,
    last_dim_size: Extent,
) -> Value:
    axes = axes_of(self, dim)
    sizes = [*extents(g, self, axes[:-1]), last_dim_size]
    return inverse_half(g, self, axes, sizes, normalization)


def lengths(g: Builder, x: Value, axes: Sequence[int], s: Any, half: bool) -> Sizes:
    """Return the transformed length along each axis; -1 keeps the extent.

    With ``half`` the last axis has the one-sided transform of an even number of
    elements.
    """
    requested = [s] if isinstance(s, int | Value) else list(s or [-1] * len(axes))
    extents: list[Extent] = []
    for axis, size in zip(axes, requested, strict=True):
        whole = half and axis == axes[-1]
        if isinstance(size, int) and size < 0:
            size = g.extent(x, axis)
            if whole and isinstance(size, int):
                size = 2 * (size - 1)
            elif whole:
                of = g.at(INT64)
                size = of.op("Mul", of.op("Sub", size, 1), 2)
        extents.append(size)
    return extents


def chosen_axes(x: Value, s: Any, dim: Any) -> list[int]:
    """Return the axes of a call: those given, else the last ones, else all."""
    if dim is None and s is not None:
        return list(range(x.rank - len(s), x.rank))
    return axes_of(x, dim)


def modes_of(norm: str | None) -> tuple[int, int]:
    """Return the normalization modes of a transform and its inverse.

    Raises:
        UnsupportedModel: ``norm`` is unknown.
    """
    if norm not in MODES:
        raise UnsupportedModel(
            f"expected norm backward, ortho or forward, got {norm!r}"
        )
    return MODES[norm]


def transform(is_inverse: bool, half: bool, whole_axes: Any = None) -> Rule:
    """Return the rule of a transform along an axis, or several (``whole_axes``).

    Its parameters have the names of both families of operators.
    """

    def apply(
        g: Builder,
        self: Value,
        n: Any = None,
        dim: Any = whole_axes,
        norm: str | None = None,
        s: Any = None,
    ) -> Value:
        size = s if n is None else n
        axes = chosen_axes(self, size, dim)
        sizes = lengths(g, self, axes, size, half and is_inverse)
        mode = modes_of(norm)[is_inverse]
        if not is_inverse:
            return forward(g, self, axes, sizes, mode, half)
        return (inverse_half if half else inverse)(g, self, axes, sizes, mode)

    return apply


for _name, _kind in {
    "fft": (False, False),
    "ifft": (True, False),
    "rfft": (False, True),
    "irfft": (True, True),
}.items():
    for _table in (COMPLEX, RULES) if _name == "irfft" else (COMPLEX,):
        rule(f"aten.fft_{_name}.default", table=_table)(transform(*_kind, -1))
        rule(f"aten.fft_{_name}2.default", table=_table)(transform(*_kind, (-2, -1)))
        rule(f"aten.fft_{_name}n.default", table=_table)(transform(*_kind))


@rule("aten.fft_hfft.default")
@rule("aten.fft_hfft.default", table=COMPLEX)
def hfft(
    g: Builder, self: Value, n: Any = None, dim: int = -1, norm: str | None = None
) -> Value:
    """Return the real transform of a one-sided symmetric signal."""
    axes = axes_of(self, dim)
    sizes = lengths(g, self, axes, n, True)
    conjugate = self
    if is_complex(self):
        conjugate = Value(conj(g, self).name, self.dtype, self.dims)
    return inverse_half(g, conjugate, axes, sizes, modes_of(norm)[0])


@rule("aten.fft_ihfft.default", table=COMPLEX)
def ihfft(
    g: Builder, self: Value, n: Any = None, dim: int = -1, norm: str | None = None
) -> Value:
    """Return the one-sided inverse transform of a real signal."""
    axes = axes_of(self, dim)
    sizes = lengths(g, self, axes, n, False)
    signal = forward(g, self, axes, sizes, modes_of(norm)[1], True)
    return conj(g, Value(signal.name, g.dtype, self.dims))

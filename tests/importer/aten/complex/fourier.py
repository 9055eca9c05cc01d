"""Fourier transforms, of complex numbers that are pairs in a module."""

from __future__ import annotations

from typing import Any

import numpy as np

from burn_ir.types import Array
from tests.importer.aten.case import Case, c64, case, dtype_of, f32, f64
from tests.importer.aten.complex.complex_numbers import single

X, Z = f32("n", 6, 5), c64("n", 6, 5)
COMPLEX = dtype_of("complex64")
#: ATen's normalization modes: 1, the square root of the number of elements, the number.
NORMS: Any = ("backward", "ortho", "forward")
INVERSE: Any = ("forward", "ortho", "backward")


def real(function: Any) -> Any:
    """Return ``function`` with its result in float32."""
    return lambda *xs: np.asarray(function(*xs)).astype(np.float32)


def both(x: Array, axes: Any, norm: Any, half: bool) -> Array:
    """Return the transform over axes, one-sided along the last axis if ``half``."""
    out = (np.fft.rfft if half else np.fft.fft)(x, axis=axes[-1], norm=norm)
    for axis in axes[:-1]:
        out = np.fft.fft(out, axis=axis, norm=norm)
    return out


def back(x: Array, axes: Any, size: int, norm: Any) -> Array:
    """Return the real inverse of a one-sided transform."""
    out = x
    for axis in axes[:-1]:
        out = np.fft.ifft(out, axis=axis, norm=norm)
    return np.fft.irfft(out, size, axes[-1], norm=norm)


CORE: tuple[Case, ...] = (
    *(
        case(
            "_fft_r2c.default",
            single(lambda x, m=mode, h=half: both(x, (1, 2), NORMS[m], h)),
            label=f"{mode} {half}",
            self=X,
            dim=[1, 2],
            normalization=mode,
            onesided=half,
        )
        for mode in range(3)
        for half in (True, False)
    ),
    case(
        "_fft_r2c.default",
        single(lambda x: both(x, (0,), "ortho", True)),
        label="varying",
        self=X,
        dim=[0],
        normalization=1,
        onesided=True,
    ),
    case(
        "_fft_r2c.default",
        lambda x: both(x, (2, 1), "forward", True),
        label="double",
        self=f64("n", 3, 4),
        dim=[2, 1],
        normalization=2,
        onesided=True,
    ),
    *(
        case(
            "_fft_c2r.default",
            real(lambda x, m=mode, s=size: back(x, (1, 2), s, INVERSE[m])),
            label=f"{mode} {size}",
            self=c64("n", 6, 4),
            dim=[1, 2],
            normalization=mode,
            last_dim_size=size,
        )
        for mode, size in ((0, 6), (1, 7), (2, 7))
    ),
    case(
        "_fft_c2r.default",
        real(lambda x: back(x, (0, 1), 5, "forward")),
        label="varying",
        self=c64("n", 3, 2),
        dim=[0, 1],
        normalization=0,
        last_dim_size=5,
    ),
    *(
        case(
            "_fft_c2c.default",
            single(
                lambda x, m=mode, f=forward: (
                    np.fft.fftn(x, axes=(0, 2), norm=NORMS[m])
                    if f
                    else np.fft.ifftn(x, axes=(0, 2), norm=INVERSE[m])
                )
            ),
            label=f"{mode} {forward}",
            self=Z,
            dim=[0, 2],
            normalization=mode,
            forward=forward,
        )
        for mode in range(3)
        for forward in (True, False)
    ),
)


def named(name: str) -> Any:
    """Return NumPy's function for a name of PyTorch."""
    return getattr(np.fft, name)


LINES: tuple[Case, ...] = (
    *(
        case(
            f"fft_{name}.default",
            (real if name in ("irfft", "hfft") else single)(
                lambda x, f=name, n=size, m=norm: named(f)(x, n, 1, m)
            ),
            label=f"{size} {norm}",
            self=X if name in ("rfft", "ihfft") else Z,
            n=size,
            dim=1,
            norm=norm,
        )
        for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
        for size, norm in ((None, None), (4, "ortho"), (9, "forward"))
    ),
    case("fft_fft.default", single(np.fft.fft), label="real", self=X),
    case("fft_ifft.default", single(np.fft.ifft), label="real", self=X),
    case("fft_irfft.default", real(np.fft.irfft), label="real", self=X),
    case("fft_hfft.default", real(np.fft.hfft), label="real", self=X),
)
PLANES: tuple[Case, ...] = (
    *(
        case(
            f"fft_{name}2.default",
            (real if name == "irfft" else single)(
                lambda x, f=name, s=size: named(f"{f}2")(x, s, (1, 2), "ortho")
            ),
            label=str(size),
            self=X if name == "rfft" else Z,
            s=size,
            dim=[1, -1],
            norm="ortho",
        )
        for name in ("fft", "ifft", "rfft", "irfft")
        for size in (None, [4, 8])
    ),
    *(
        case(
            f"fft_{name}n.default",
            (real if name == "irfft" else single)(
                lambda x, f=name: named(f"{f}n")(x, (3, 7), (1, 2))
            ),
            label="size",
            self=X if name == "rfft" else Z,
            s=[3, 7],
        )
        for name in ("fft", "ifft", "rfft", "irfft")
    ),
    case("fft_fftn.default", single(np.fft.fftn), self=Z),
    case("fft_rfftn.default", single(np.fft.rfftn), self=X),
    case("fft_fft2.default", single(np.fft.fft2), label="real", self=X),
)
CASES: tuple[Case, ...] = (*CORE, *LINES, *PLANES)

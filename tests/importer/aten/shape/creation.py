"""New tensors: ranges, windows, and filled tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.importer.aten.case import Case, N, case, f32, i64
from tests.importer.aten.inputs import F32, WHOLE, X

F64, I64 = np.dtype("float64"), np.dtype("int64")


def like(number: float, dtype: Any = None) -> Any:
    """Return a filled tensor with the shape of the operand."""
    return lambda x: np.full_like(x, number, dtype=dtype)


Y = f32("n", 3)
DEFAULTS: dict[str, Any] = {}
SYMMETRIC: dict[str, Any] = {"periodic": False}
F32_ = np.dtype("float32")


def window(name: str, length: int, periodic: bool) -> Any:
    """Return the function that makes a window."""
    result = getattr(np, name)(length + periodic)[:length].astype(np.float32)
    return lambda: result


CASES: tuple[Case, ...] = (
    case("arange.default", lambda: np.arange(5), end=5),
    case("arange.default", lambda x: np.arange(len(x)), label="sized", sized=Y, end=N),
    case(
        "arange.start",
        lambda x: np.arange(-2, len(x), dtype=np.float32),
        sized=Y,
        start=-2,
        end=N,
        dtype=F32_,
    ),
    case("arange.start_step", lambda: np.arange(1, 9, 3), start=1, end=9, step=3),
    case(
        "arange.start_step",
        lambda: np.arange(0.5, 2, 0.25).astype(F32),
        label="float",
        start=0.5,
        end=2.0,
        step=0.25,
    ),
    *(
        case(
            f"fft_{kind}.default",
            lambda make=make: make(7, 0.5).astype(F32),
            n=7,
            d=0.5,
        )
        for kind, make in (("fftfreq", np.fft.fftfreq), ("rfftfreq", np.fft.rfftfreq))
    ),
    *(
        case(
            f"fft_{kind}.default",
            lambda x, make=make: make(len(x), 0.25).astype(F32),
            label="sized",
            sized=Y,
            n=N,
            d=0.25,
        )
        for kind, make in (("fftfreq", np.fft.fftfreq), ("rfftfreq", np.fft.rfftfreq))
    ),
    case(
        "full.default",
        lambda x: np.full((len(x), 2), F32(2.5)),
        sized=Y,
        size=[N, 2],
        fill_value=2.5,
    ),
    case(
        "full.default",
        lambda: np.full((3, 2), 7),
        label="int",
        size=[3, 2],
        fill_value=7,
    ),
    case("zeros.default", lambda x: np.zeros((3, len(x)), F32), sized=Y, size=[3, N]),
    case("ones.default", lambda: np.ones((3, 2), np.int64), size=[3, 2], dtype=I64),
    case("scalar_tensor.default", lambda: F32(2.5), s=2.5),
    case(
        "linspace.default",
        lambda: np.linspace(-1, 2, 7, dtype=F32),
        start=-1,
        end=2,
        steps=7,
    ),
    case(
        "linspace.default",
        lambda x: np.linspace(-1, 2, len(x), dtype=F32),
        label="sized",
        sized=Y,
        start=-1.0,
        end=2.0,
        steps=N,
    ),
    case(
        "linspace.default",
        lambda x: np.linspace(-1, 2, len(x), dtype=F32),
        label="one",
        sized=f32(1),
        start=-1.0,
        end=2.0,
        steps=N,
    ),
    case(
        "logspace.default",
        lambda: np.logspace(0, 2, 5, base=2, dtype=F32),
        start=0.0,
        end=2.0,
        steps=5,
        base=2.0,
    ),
    case("eye.default", lambda x: np.eye(len(x), dtype=F32), sized=Y, n=N),
    case("eye.m", lambda: np.eye(3, 5, dtype=np.int64), n=3, m=5, dtype=I64),
    case(
        "tril_indices.default",
        lambda: np.stack(np.tril_indices(4, 1, 3)),
        row=4,
        col=3,
        offset=1,
    ),
    case(
        "triu_indices.default",
        lambda: np.stack(np.triu_indices(4, -1, 3)),
        row=4,
        col=3,
        offset=-1,
    ),
    *(
        case(
            f"{name}_window.{overload}",
            window(made, 7, periodic),
            window_length=7,
            **how,
        )
        for name, made in (
            ("hann", "hanning"),
            ("hamming", "hamming"),
            ("blackman", "blackman"),
            ("bartlett", "bartlett"),
        )
        for overload, periodic, how in (
            ("default", True, DEFAULTS),
            ("periodic", False, SYMMETRIC),
        )
    ),
    case(
        "kaiser_window.default",
        lambda: np.kaiser(8, 12.0)[:7].astype(F32),
        window_length=7,
    ),
    case(
        "kaiser_window.beta",
        lambda: np.kaiser(7, 5.0).astype(F32),
        window_length=7,
        periodic=False,
        beta=5.0,
    ),
    case("full_like.default", like(2.5), self=X, fill_value=2.5),
    case(
        "full_like.default", like(3, I64), label="int", self=X, fill_value=3, dtype=I64
    ),
    case("zeros_like.default", like(0), self=X),
    case("ones_like.default", like(1, F64), self=WHOLE, dtype=F64),
    case(
        "new_full.default",
        lambda x: np.full((2, len(x)), F32(1.5)),
        self=X,
        size=[2, N],
        fill_value=1.5,
    ),
    case(
        "new_zeros.default", lambda x: np.zeros((len(x), 2), F32), self=X, size=[N, 2]
    ),
    case(
        "new_ones.default",
        lambda x: np.ones((2, 3), np.int64),
        self=X,
        size=[2, 3],
        dtype=I64,
    ),
    case("vander.default", lambda x: np.vander(x, 3).astype(F32), x=f32("n"), N=3),
    case(
        "vander.default",
        lambda x: np.vander(x, increasing=True),
        label="up",
        x=i64(3),
        increasing=True,
    ),
)

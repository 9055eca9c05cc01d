"""Other overloads, and operators that occur only in decompositions or composites."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np

from burn_ir.types import Array
from tests.importer.aten.case import Case, N, case, f32, first_result, fixed, i64
from tests.importer.aten.inputs import F32, POSITIVE, X, single
from tests.importer.aten.math.functions import digamma, each, trigamma
from tests.importer.aten.nn.conv import conv
from tests.importer.aten.nn.norm import EPS, SIX, batch
from tests.importer.aten.nn.pool import unpooled
from tests.importer.aten.nn.resize import BLOCK, IMAGE

BAGS = fixed("int64", [0, 2, 2, 5])
INDICES = fixed("int64", [1, 3, 0, 0, 4, 2])
Y = f32("n", 3, 4)


def bagged(end: Any, padding: int | None = None) -> Any:
    """Return the rows of each bag but those of ``padding``, reduced by ``end``."""

    def run(w: Array, i: Array, o: Array, per: Array | None = None) -> Any:
        rows = w[i] if per is None else w[i] * per[:, None]
        bags = zip(np.split(rows, o[1:]), np.split(i, o[1:]), strict=True)
        parts = [p[q != padding] if padding is not None else p for p, q in bags]
        return np.stack([end(p, 0) if len(p) else np.zeros(3, F32) for p in parts])

    return run


def consecutive(x: Array) -> Any:
    flat = x.ravel()
    starts = np.flatnonzero(np.concatenate([[True], flat[1:] != flat[:-1]]))
    counts = np.diff(np.append(starts, x.size))
    return flat[starts], np.repeat(np.arange(len(starts)), counts), counts


def by_rows(x: Array) -> Any:
    result, inverse, counts = np.unique(
        x, return_inverse=True, return_counts=True, axis=0
    )
    return result, inverse.ravel(), counts


def entropy(x: Array) -> Any:
    return -x * np.log(x)


def antialiased(x: Array, size: tuple[int, int], a: float | None = None) -> Any:
    """Return ``x`` downsampled with antialiasing."""
    out = x.astype(np.float64)
    for axis, new in zip((2, 3), size, strict=True):
        old = out.shape[axis]
        scale = max(old / new, 1.0)
        rows = np.zeros((new, old))
        for i in range(new):
            center = (i + 0.5) * old / new
            reach = scale * (1 if a is None else 2)
            low, high = max(int(center - reach + 0.5), 0), min(
                int(center + reach + 0.5), old
            )
            taps = [kernel((j - center + 0.5) / scale, a) for j in range(low, high)]
            rows[i, low:high] = np.array(taps) / sum(taps)
        out = np.moveaxis(np.tensordot(out, rows, (axis, 1)), -1, axis)
    return out.astype(x.dtype)


def kernel(t: float, a: float | None) -> float:
    t = abs(t)
    if a is None:
        return max(1 - t, 0.0)
    if t < 1:
        return ((a + 2) * t - (a + 3)) * t * t + 1
    return (((t - 5) * t + 8) * t - 4) * a if t < 2 else 0.0


def normal(x: float) -> float:
    return 0.5 * (1 + math.erf(x / math.sqrt(2)))


CASES: tuple[Case, ...] = (
    case(
        "isclose.default",
        lambda x, y: np.isclose(x, y, 0.1, 0.2),
        self=X,
        other=Y,
        rtol=0.1,
        atol=0.2,
    ),
    case(
        "ldexp.Tensor",
        lambda x, y: np.ldexp(x, y),
        self=X,
        other=i64(3, 1, low=-2, high=3),
    ),
    case(
        "linalg_slogdet.default",
        lambda x: tuple(np.linalg.slogdet(x)),
        tolerance=1e-4,
        A=f32("n", 3, 3),
    ),
    case("special_entr.default", entropy, self=POSITIVE),
    case("special_expit.default", lambda x: 1 / (1 + np.exp(-x)), self=X),
    case("special_ndtr.default", single(lambda x: np.vectorize(normal)(x)), self=X),
    case(
        "special_ndtri.default",
        each(NormalDist().inv_cdf),
        self=f32("n", 3, low=0.01, high=0.99),
    ),
    case("polygamma.default", each(trigamma), n=1, self=POSITIVE),
    case("special_polygamma.default", each(digamma), n=0, self=POSITIVE),
    case(
        "mvlgamma.default",
        each(lambda x: math.lgamma(x) + math.lgamma(x - 0.5) + math.log(math.pi) / 2),
        self=f32("n", 3, low=0.7, high=4.0),
        p=2,
    ),
    case(
        "special_xlog1py.default", lambda x, y: x * np.log1p(y), self=X, other=POSITIVE
    ),
    case(
        "to.dtype_layout", lambda x: x.astype(np.int64), self=X, dtype=np.dtype("int64")
    ),
    case("real.default", lambda x: x, self=X),
    case("feature_alpha_dropout.default", lambda x: x, input=X, p=0.5, train=False),
    case(
        "unique_consecutive.default",
        consecutive,
        self=fixed("int64", [1, 1, 2, 2, 2, 1]),
        return_inverse=True,
        return_counts=True,
    ),
    case(
        "unique_dim.default",
        by_rows,
        self=fixed("int64", [[1, 2], [0, 1], [1, 2]]),
        dim=0,
        return_inverse=True,
        return_counts=True,
    ),
    case(
        "max_unpool3d.default",
        lambda x, i: unpooled(x[:, :, 0], i[:, :, 0])[:, :, None],
        self=f32(2, 3, 1, 3, 3),
        indices=fixed(
            "int64",
            np.broadcast_to(np.arange(30).reshape(5, 6)[::2, 1::2], (2, 3, 1, 3, 3)),
        ),
        output_size=[1, 5, 6],
        stride=[1, 2, 2],
        padding=[0, 0, 0],
    ),
    *(
        first_result(
            "_embedding_bag.default",
            bagged(end),
            label=label,
            weight=f32(5, 3),
            indices=INDICES,
            offsets=BAGS,
            mode=mode,
        )
        for mode, label, end in (
            (0, "sum", np.sum),
            (1, "mean", np.mean),
            (2, "max", np.max),
        )
    ),
    first_result(
        "_embedding_bag.default",
        bagged(np.sum),
        label="weights",
        weight=f32(5, 3),
        indices=INDICES,
        offsets=BAGS,
        per_sample_weights=f32(6),
    ),
    first_result(
        "_native_batch_norm_legit_no_training.default",
        batch,
        input=f32("n", 6, 3, 4),
        weight=SIX,
        bias=SIX,
        running_mean=SIX,
        running_var=f32(6, low=0.5),
        momentum=0.1,
        eps=EPS,
    ),
    *(
        first_result(
            "embedding_bag.padding_idx",
            bagged(end, padding),
            label=label,
            weight=f32(5, 3),
            indices=INDICES,
            offsets=BAGS,
            scale_grad_by_freq=False,
            mode=mode,
            sparse=False,
            per_sample_weights=None,
            include_last_offset=False,
            padding_idx=padding,
        )
        for mode, label, end, padding in (
            (0, "", np.sum, None),
            (0, "sum", np.sum, 0),
            (1, "mean", np.mean, 0),
            (2, "max", np.max, 2),
        )
    ),
    first_result(
        "_linalg_det.default", np.linalg.det, tolerance=1e-4, A=f32("n", 3, 3)
    ),
    first_result(
        "_linalg_solve_ex.default",
        np.linalg.solve,
        tolerance=1e-3,
        A=f32("n", 3, 3),
        B=f32("n", 3, 2),
    ),
    first_result(
        "linalg_inv_ex.default", np.linalg.inv, tolerance=1e-3, A=f32("n", 3, 3)
    ),
    case(
        "conv3d.padding",
        conv([1, 1, 1], [(0, 1), (1, 1), (0, 0)], [1, 1, 1]),
        input=BLOCK,
        weight=f32(3, 2, 2, 3, 1),
        padding="same",
    ),
    case(
        "_upsample_bilinear2d_aa.vec",
        lambda x: antialiased(x, (3, 2)),
        input=IMAGE,
        output_size=[3, 2],
        align_corners=False,
        scale_factors=None,
    ),
    case(
        "_upsample_bicubic2d_aa.default",
        lambda x: antialiased(x, (3, 2), -0.5),
        self=IMAGE,
        output_size=[3, 2],
        align_corners=False,
    ),
    case("linalg_vecdot.default", lambda x, y: (x * y).sum(1), x=X, y=Y, dim=1),
    case(
        "fft_ifftshift.default",
        lambda x: np.fft.ifftshift(x, (1, 2)),
        self=f32("n", 3, 5),
        dim=[1, 2],
    ),
    case(
        "fft_ifftshift.default",
        np.fft.ifftshift,
        label="varying",
        self=f32("n", 3, 5),
    ),
    case(
        "fft_fftshift.default",
        lambda x: np.fft.fftshift(x, (0, 2)),
        label="varying",
        self=f32("n", 3, 5),
        dim=[0, -1],
    ),
    case(
        "roll.default",
        lambda x: np.roll(x, (x.shape[0], 1), (1, 2)),
        label="varying",
        self=f32("n", 3, 4),
        shifts=[N, 1],
        dims=[1, -1],
    ),
    case(
        "roll.default",
        lambda x: np.roll(x, x.shape[0]),
        label="varying flat",
        self=f32("n", 3),
        shifts=[N],
    ),
)

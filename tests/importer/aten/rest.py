"""In-place operators, and rare overloads."""

from __future__ import annotations

from typing import Any

import numpy as np

from burn_ir.types import Array
from tests.importer.aten.case import Case, bools, case, f32, first_result, with_changed
from tests.importer.aten.inputs import F32, X
from tests.importer.aten.more import antialiased
from tests.importer.aten.nn.resize import IMAGE

Y = f32(3, 1)


def twice(function: Any) -> Any:
    """Return a result that is also the changed operand."""

    def run(*given: Array) -> Any:
        result = np.asarray(function(*given)).astype(given[0].dtype)
        return result, result

    return run


def trilinear(x: Array, grid: Array) -> Array:
    """Return ``x`` [N, C, D, H, W] interpolated, 0 outside."""
    out = np.zeros((*x.shape[:2], *grid.shape[1:4]))
    sizes = np.array(x.shape[:1:-1])
    for n, i, j, k in np.ndindex(*grid.shape[:4]):
        at = (grid[n, i, j, k] + 1) / 2 * (sizes - 1)
        low = np.floor(at).astype(int)
        for corner in np.ndindex(2, 2, 2):
            index = low + corner
            if ((index >= 0) & (index < sizes)).all():
                share = np.prod(1 - abs(at - index))
                out[n, :, i, j, k] += share * x[n, :, index[2], index[1], index[0]]
    return out.astype(x.dtype)


def product(x: Array, w: Array, y: Array) -> Array:
    """Return the products of a bilinear layer: ``x w y`` summed over two axes."""
    return np.asarray(np.einsum("ni,oij,nj->no", x, w, y))


IN_PLACE: tuple[tuple[str, Any, dict[str, Any]], ...] = (
    ("add_.Tensor", lambda x, y: x + 2 * y, {"other": Y, "alpha": 2}),
    ("clamp_.default", lambda x: np.clip(x, -0.5, 1), {"min": -0.5, "max": 1.0}),
    ("detach_.default", lambda x: x, {}),
    ("fill_.Scalar", lambda x: np.full_like(x, 2.5), {"value": 2.5}),
    ("fill_.Tensor", lambda x, v: np.full_like(x, v), {"value": f32()}),
    (
        "masked_fill_.Scalar",
        lambda x, m: np.where(m, F32(-1.5), x),
        {"mask": bools("n", 3, 1), "value": -1.5},
    ),
    ("relu_.default", lambda x: np.maximum(x, 0), {}),
    ("zero_.default", np.zeros_like, {}),
)
CASES: tuple[Case, ...] = (
    *(
        with_changed("self", case(name, twice(function), self=X, **args))
        for name, function, args in IN_PLACE
    ),
    first_result(
        "_linalg_slogdet.default",
        lambda x: np.linalg.slogdet(x)[0],
        A=f32("n", 3, 3),
    ),
    case(
        "_trilinear.default",
        product,
        i1=f32("n", 4),
        i2=f32(5, 4, 3),
        i3=f32("n", 3),
        expand1=[1, 3],
        expand2=[0],
        expand3=[1, 2],
        sumdim=[2, 3],
    ),
    case(
        "_upsample_bicubic2d_aa.vec",
        lambda x: antialiased(x, (3, 2), -0.5),
        input=IMAGE,
        output_size=[3, 2],
        align_corners=False,
        scale_factors=None,
    ),
    case(
        "_upsample_bilinear2d_aa.default",
        lambda x: antialiased(x, (3, 2)),
        self=IMAGE,
        output_size=[3, 2],
        align_corners=False,
    ),
    case(
        "grid_sampler_3d.default",
        trilinear,
        input=f32("n", 2, 3, 4, 5),
        grid=f32("n", 2, 3, 2, 3, low=-1.2, high=1.2),
        interpolation_mode=0,
        padding_mode=0,
        align_corners=True,
    ),
    case(
        "rrelu_with_noise_functional.default",
        lambda x, noise: (np.where(x >= 0, x, x * F32(0.3)), noise),
        self=X,
        noise=X,
        lower=0.2,
        upper=0.4,
        training=False,
    ),
    case(
        "xlogy.Scalar_Other",
        lambda x: x * np.log(F32(2.5)),
        self=X,
        other=2.5,
    ),
)

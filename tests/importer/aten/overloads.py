"""Overloads with a tensor where others have a number, or the other way round."""

from __future__ import annotations

from typing import Any

import numpy as np

from burn_ir.types import Array
from tests.importer.aten.case import Case, case, f32, fixed, floats
from tests.importer.aten.inputs import F32, POSITIVE, X, single
from tests.importer.aten.linalg.linear_systems import TALL, loose

ROW = fixed("float32", [0.0, 1.0, 3.0, 4.0])
HALF = floats("float16", ("n", 4), -2.0, 3.0)


def of_number(function: Any, target: str, **args: Any) -> Case:
    return case(target, single(function), **args)


def at_coordinates(*axes: int) -> Any:
    """Return the function that differentiates at coordinates along axes."""

    def run(x: Array, *coordinates: Array) -> Any:
        pairs = zip(axes, coordinates, strict=True)
        return [np.gradient(x, at, axis=axis).astype(F32) for axis, at in pairs]

    return run


def at_least(least: Any) -> Any:
    return lambda *given: [least(x) for x in given]


def softmax(x: Array) -> Any:
    return np.exp(x) / np.exp(x).sum(1, keepdims=True)


def product(x: Array, y: Array) -> Any:
    return x.astype(F32) @ y.astype(F32)


CASES: tuple[Case, ...] = (
    *(
        case(
            f"linspace.{name}",
            lambda *ends: np.linspace(ends[0], ends[-1], 5, dtype=F32),
            start=start,
            end=end,
            steps=5,
        )
        for name, start, end in (
            ("Tensor_Tensor", fixed("float32", -1.5), fixed("float32", 2.0)),
            ("Tensor_Scalar", fixed("float32", 2.0), 2.0),
            ("Scalar_Tensor", 0.25, fixed("float32", 0.25)),
        )
    ),
    case(
        "logspace.Tensor_Tensor",
        lambda start, end: np.logspace(start, end, 4, base=2, dtype=F32),
        start=fixed("float32", -1.0),
        end=fixed("float32", 2.0),
        steps=4,
        base=2.0,
    ),
    *(
        case(f"{name}.default", apply, self=X, dim=1)
        for name, apply in (
            (
                "special_softmax",
                single(lambda x: np.exp(x) / np.exp(x).sum(1)[:, None]),
            ),
            (
                "special_log_softmax",
                single(lambda x: x - np.log(np.exp(x).sum(1))[:, None]),
            ),
        )
    ),
    of_number(lambda x: x * np.log(2), "special_xlogy.other_scalar", self=X, other=2.0),
    of_number(
        lambda y: 2 * np.log(y), "special_xlogy.self_scalar", self=2.0, other=POSITIVE
    ),
    of_number(
        lambda x: x * np.log1p(2), "special_xlog1py.other_scalar", self=X, other=2.0
    ),
    of_number(
        lambda y: 2 * np.log1p(y),
        "special_xlog1py.self_scalar",
        self=2.0,
        other=POSITIVE,
    ),
    case(
        "squeeze_copy.dims",
        lambda x: x[:, 0, :, 0],
        self=f32("n", 1, 3, 1),
        dim=[1, -1, -2],
    ),
    case(
        "linalg_vander.default",
        lambda x: x[..., None] ** np.arange(4, dtype=F32),
        x=f32("n", 4),
    ),
    case(
        "linalg_vander.default",
        lambda x: x[..., None] ** np.arange(3, dtype=F32),
        label="three",
        x=f32("n", 4),
        N=3,
    ),
    case("transpose_.default", lambda x: np.swapaxes(x, 1, -1), self=X, dim0=1, dim1=2),
    case(
        "narrow.Tensor",
        lambda x, start: x[:, int(start) : int(start) + 3],
        self=f32("n", 7, 3),
        dim=1,
        start=fixed("int64", 2),
        length=3,
    ),
    *(
        case(
            f"atleast_{rank}d.Sequence",
            at_least(least),
            tensors=[fixed("float32", 1.0), f32("n"), f32("n", 2), f32("n", 2, 3)],
        )
        for rank, least in ((1, np.atleast_1d), (2, np.atleast_2d), (3, np.atleast_3d))
    ),
    case(
        "gradient.tensorarrayint",
        at_coordinates(1),
        self=f32("n", 4),
        spacing=[ROW],
        dim=1,
    ),
    case(
        "gradient.tensorarray",
        at_coordinates(1, 2),
        self=f32("n", 4, 3),
        spacing=[ROW, fixed("float32", [0.0, 0.5, 2.0])],
        dim=[1, 2],
    ),
    case(
        "linalg_matrix_rank.tol_tensor",
        lambda x, tol: np.linalg.matrix_rank(x, tol=tol),
        input=f32("n", 4, 3),
        tol=fixed("float32", 0.5),
    ),
    case(
        "linalg_matrix_rank.atol_rtol_tensor",
        lambda x, atol, rtol: np.linalg.matrix_rank(x, tol=0.5),
        label="tensors",
        input=f32("n", 4, 3),
        atol=fixed("float32", 0.5),
        rtol=fixed("float32", 0.0),
    ),
    loose(
        "linalg_pinv.rcond_tensor",
        lambda x, rcond: np.linalg.pinv(x, 0.3),
        self=TALL,
        rcond=fixed("float32", 0.3),
    ),
    case(
        "mm.dtype",
        product,
        self=HALF,
        mat2=floats("float16", (4, 3), -2.0, 3.0),
        out_dtype=np.dtype(F32),
    ),
    case(
        "bmm.dtype",
        product,
        self=floats("float16", ("n", 2, 4), -2.0, 3.0),
        mat2=floats("float16", ("n", 4, 3), -2.0, 3.0),
        out_dtype=np.dtype(F32),
    ),
    case(
        "addmm.dtype",
        lambda c, x, y: c.astype(F32) * 0.5 + product(x, y) * 2,
        self=floats("float16", (3,), -2.0, 3.0),
        mat1=HALF,
        mat2=floats("float16", (4, 3), -2.0, 3.0),
        out_dtype=np.dtype(F32),
        beta=0.5,
        alpha=2,
    ),
)

"""Complex numbers, which are pairs of real ones in a module."""

from __future__ import annotations

from typing import Any

import numpy as np

from burn_ir.types import Array
from tests.importer.aten.case import (
    Case,
    N,
    bools,
    c64,
    c128,
    case,
    dtype_of,
    f32,
    f64,
    i64,
    with_changed,
)
from tests.importer.aten.inputs import F32

X, Y = c64("n", 3, 4), c64(3, 1)
COMPLEX = dtype_of("complex64")


def single(function: Any) -> Any:
    """Return ``function`` with its result in complex64."""
    return lambda *xs: np.asarray(function(*xs)).astype(COMPLEX)


def unit(x: Array) -> Array:
    return np.where(x == 0, 0, x / np.maximum(abs(x), 1e-30)).astype(COMPLEX)


def pairs(x: Array) -> Array:
    return np.stack([x.real, x.imag], -1)


def numbers(x: Array) -> Array:
    return (x[..., 0] + 1j * x[..., 1]).astype(COMPLEX)


def assigned(x: Array, y: Array) -> Any:
    x = x.copy()
    x[...] = y
    return x, x


ARITHMETIC: tuple[Case, ...] = (
    case("view_as_real.default", pairs, self=X),
    case("view_as_complex.default", numbers, self=f32("n", 3, 2)),
    case(
        "complex.default",
        lambda a, b: (a + 1j * b).astype(COMPLEX),
        real=f32("n", 3, 4),
        imag=f32("n", 3, 4),
    ),
    case(
        "complex.default",
        lambda a, b: a + 1j * b,
        label="broadcast",
        real=f64("n", 1, 4),
        imag=f64(3, 1),
    ),
    case(
        "polar.default",
        single(lambda a, b: a * np.exp(1j * b)),
        abs=f32("n", 3, 4),
        angle=f32("n", 3, 4),
    ),
    case("real.default", lambda x: x.real, label="complex", self=X),
    case("imag.default", lambda x: x.imag, self=X),
    case("_conj.default", np.conj, self=X),
    case("conj_physical.default", np.conj, self=X),
    case("abs.default", np.abs, label="complex", self=X),
    case("abs.default", np.abs, label="complex128", self=c128("n", 3)),
    case("angle.default", np.angle, self=X),
    case("angle.default", np.angle, label="real", self=f32("n", 3)),
    case("neg.default", np.negative, label="complex", self=X),
    case("sgn.default", unit, label="complex", self=X),
    case("exp.default", np.exp, label="complex", self=X),
    *(
        case(f"{name}.default", getattr(np, name), label="complex", self=X)
        for name in ("sin", "cos", "sinh", "cosh", "tanh")
    ),
    case("log.default", np.log, label="complex", self=X),
    case("sqrt.default", np.sqrt, label="complex", self=X),
    case("square.default", np.square, label="complex", self=X),
    case("reciprocal.default", np.reciprocal, label="complex", self=X),
    case(
        "add.Tensor", lambda x, y: x + y * 3, label="complex", self=X, other=Y, alpha=3
    ),
    case("add.Tensor", np.add, label="complex real", self=Y, other=f32("n", 3, 4)),
    case("add.Tensor", np.add, label="wider", self=Y, other=c128("n", 3, 4)),
    case("add.Scalar", lambda x: x + F32(1.5), label="complex", self=X, other=1.5),
    case(
        "sub.Tensor",
        lambda x, y: x - y * 2,
        label="real complex",
        self=f32("n", 3, 4),
        other=Y,
        alpha=2,
    ),
    case("rsub.Scalar", lambda x: 2 - x, label="complex", self=X, other=2),
    case("mul.Tensor", np.multiply, label="complex", self=X, other=Y),
    case("mul.Tensor", np.multiply, label="complex real", self=Y, other=f32("n", 1, 4)),
    case(
        "mul.Tensor",
        single(np.multiply),
        label="real complex",
        self=i64("n", 3, 4),
        other=Y,
    ),
    case("mul.Scalar", lambda x: x * F32(0.5), label="complex", self=X, other=0.5),
    case("div.Tensor", np.divide, label="complex", self=X, other=Y),
    case(
        "div.Tensor",
        np.divide,
        label="complex real",
        self=Y,
        other=f32("n", 1, 4, low=0.5),
    ),
    case("div.Tensor", np.divide, label="real complex", self=f32("n", 3, 4), other=Y),
    case("div.Scalar", lambda x: x / F32(3), label="complex", self=X, other=3),
    *(
        case(
            "pow.Tensor_Scalar",
            single(lambda x, p=power: x.astype("complex128") ** p),
            label=f"complex {power}",
            tolerance=1e-4,
            self=X,
            exponent=power,
        )
        for power in (2, 1.5, -1, 1 - 0.5j)
    ),
    *(
        case(
            f"pow.{overload}",
            single(function),
            label=f"complex {label}",
            tolerance=1e-4,
            self=base,
            exponent=exponent,
        )
        for overload, label, function, base, exponent in (
            ("Tensor_Tensor", "both", np.power, X, Y),
            ("Tensor_Tensor", "integer power", np.power, X, i64("n", 1, 4)),
            ("Tensor_Tensor", "real base", np.power, f32("n", 3, 1, low=0.5), Y),
            ("Scalar", "number", lambda x: 1.5**x, 1.5, X),
            ("Scalar", "complex number", lambda x: (1.5 - 2j) ** x, 1.5 - 2j, X),
        )
    ),
    case("matmul.default", np.matmul, label="complex", self=X, other=c64(4, 5)),
    case("bmm.default", np.matmul, label="complex", self=X, mat2=c64("n", 4, 2)),
    case("mm.default", np.matmul, label="complex", self=c64("n", 3), mat2=c64(3, 4)),
    case("vdot.default", np.vdot, label="complex", self=c64("n"), other=c64("n")),
    case(
        "einsum.default",
        lambda x, y: np.einsum("bix,iox->box", x, y),
        label="complex",
        equation="bix,iox->box",
        tensors=[X, c64(3, 2, 4)],
    ),
    case("eq.Tensor", np.equal, label="complex", self=X, other=X),
    case("ne.Tensor", np.not_equal, label="complex", self=X, other=Y),
    case(
        "where.self",
        np.where,
        label="complex",
        condition=bools("n", 3, 1),
        self=X,
        other=Y,
    ),
    case("sum.default", np.sum, label="complex", self=X),
    case(
        "sum.dim_IntList",
        lambda x: x.sum((0, 2), keepdims=True),
        label="complex",
        self=X,
        dim=[0, -1],
        keepdim=True,
    ),
    case("mean.dim", lambda x: x.mean(-1), label="complex", self=X, dim=[-1]),
    case("cumsum.default", lambda x: x.cumsum(-1), label="complex", self=X, dim=-1),
    case(
        "linalg_vector_norm.default",
        lambda x: np.sqrt((abs(x) ** 2).sum(1)),
        label="complex",
        self=X,
        ord=2.0,
        dim=[1],
    ),
    case(
        "_to_copy.default",
        lambda x: x.astype("complex128"),
        label="wider",
        self=X,
        dtype=dtype_of("complex128"),
    ),
    case(
        "_to_copy.default",
        lambda x: x.astype(COMPLEX),
        label="real",
        self=f64("n", 3),
        dtype=COMPLEX,
    ),
    case(
        "full.default",
        lambda: np.full((2, 3), 1.5, COMPLEX),
        label="complex",
        size=[2, 3],
        fill_value=1.5,
        dtype=COMPLEX,
    ),
    case(
        "ones_like.default",
        np.ones_like,
        label="complex",
        self=X,
    ),
)

VIEWS: tuple[Case, ...] = (
    *(
        case(name, expected, label="complex", self=X, **args)
        for name, expected, args in (
            ("slice.Tensor", lambda x: x[..., 1:3], {"dim": -1, "start": 1, "end": 3}),
            ("select.int", lambda x: x[..., 1], {"dim": -1, "index": 1}),
            ("view.default", lambda x: x.reshape(len(x), 12), {"size": [N, 12]}),
            ("unsqueeze.default", lambda x: x[..., None], {"dim": -1}),
            ("permute.default", lambda x: x.transpose(2, 0, 1), {"dims": [-1, 0, 1]}),
            (
                "transpose.int",
                lambda x: x.swapaxes(0, 2),
                {"dim0": 0, "dim1": -1},
            ),
            ("flip.default", lambda x: x[..., ::-1], {"dims": [-1]}),
            ("roll.default", lambda x: np.roll(x, 3, 2), {"shifts": [3], "dims": [-1]}),
            ("repeat.default", lambda x: np.tile(x, (2, 1, 3)), {"repeats": [2, 1, 3]}),
            ("mT.default", lambda x: x.swapaxes(1, 2), {}),
            ("mH.default", lambda x: x.swapaxes(1, 2).conj(), {}),
            (
                "flatten.using_ints",
                lambda x: x.reshape(len(x), 12),
                {"start_dim": 1, "end_dim": -1},
            ),
            (
                "constant_pad_nd.default",
                lambda x: np.pad(x, [(0, 0), (0, 1), (2, 0)]),
                {"pad": [2, 0, 0, 1]},
            ),
            ("unbind.int", lambda x: list(np.moveaxis(x, 2, 0)), {"dim": -1}),
            (
                "split_with_sizes.default",
                lambda x: [x[..., :1], x[..., 1:]],
                {"split_sizes": [1, 3], "dim": -1},
            ),
            ("zeros_like.default", np.zeros_like, {}),
            (
                "unfold.default",
                lambda x: np.stack([x[..., :2], x[..., 2:]], 2),
                {"dimension": 2, "size": 2, "step": 2},
            ),
            ("fft_fftshift.default", lambda x: np.fft.fftshift(x, 2), {"dim": [-1]}),
        )
    ),
    case("t.default", np.transpose, label="complex", self=c64("n", 3)),
    case(
        "squeeze.default",
        lambda x: x[:, 0],
        label="complex",
        self=c64(3, 1, 4),
    ),
    case(
        "squeeze.dim", lambda x: x[..., 0], label="complex", self=c64("n", 3, 1), dim=-1
    ),
    case(
        "expand.default",
        lambda x: np.broadcast_to(x, (4, 3, 5)),
        label="complex",
        self=c64(3, 1),
        size=[4, -1, 5],
    ),
    case(
        "cat.default",
        lambda x, y: np.concatenate([x, y], -1),
        label="complex",
        tensors=[X, c64("n", 3, 2)],
        dim=-1,
    ),
    case(
        "cat.default",
        lambda x, y: np.concatenate([x, y], 1),
        label="real complex",
        tensors=[f32("n", 2, 4), X],
        dim=1,
    ),
    case(
        "stack.default",
        lambda x, y: np.stack([x, y], -1),
        label="complex",
        tensors=[X, X],
        dim=-1,
    ),
    case(
        "index_select.default",
        lambda x, i: x[..., i],
        label="complex",
        self=X,
        dim=-1,
        index=i64(3, low=0, high=3),
    ),
    case(
        "index.Tensor",
        lambda x, i, j: x[i, :, j],
        label="complex",
        self=c64(4, 3, 5),
        indices=[i64(3, low=0, high=3), None, i64(3, low=0, high=4)],
    ),
    case(
        "slice_scatter.default",
        lambda x, y: np.concatenate([x[..., :1], y, x[..., 3:]], -1),
        label="complex",
        self=X,
        src=c64("n", 3, 2),
        dim=-1,
        start=1,
        end=3,
    ),
    case(
        "zeros.default",
        lambda: np.zeros((3, 2), COMPLEX),
        label="complex",
        size=[3, 2],
        dtype=COMPLEX,
    ),
    with_changed(
        "self",
        case("copy_.default", assigned, label="complex", self=X, src=c64(3, 1)),
    ),
    with_changed(
        "self",
        case(
            "mul_.Tensor",
            lambda x, y: (x * y, x * y),
            label="complex",
            self=X,
            other=Y,
        ),
    ),
)
CASES: tuple[Case, ...] = (*ARITHMETIC, *VIEWS)

"""Products of vectors and matrices, linear layers and cells."""

from __future__ import annotations

from typing import Any

import numpy as np

from burn_ir.types import Array
from tests.importer.aten.case import Case, case, f32, i64
from tests.importer.aten.inputs import F32, X
from tests.importer.aten.nn.activation import sigmoid

VECTOR, MATRIX = f32(4), f32(3, 4)


def lstm(x: Array, h: Array, c: Array, w: Array, u: Array, b: Array, d: Array) -> Any:
    i, f, g, o = np.split(x @ w.T + b + h @ u.T + d, 4, 1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def gru(x: Array, h: Array, w: Array, u: Array, b: Array, d: Array) -> Any:
    r, z, n = np.split(x @ w.T + b, 3, 1)
    hr, hz, hn = np.split(h @ u.T + d, 3, 1)
    z = sigmoid(z + hz)
    return (1 - z) * np.tanh(n + sigmoid(r + hr) * hn) + z * h


def simple(function: Any) -> Any:
    """Return the cell with one state and one gate."""
    return lambda x, h, w, u, b, d: function(x @ w.T + b + h @ u.T + d)


def cell(gates: int, hx: Any) -> dict[str, Any]:
    """Return the arguments of a cell."""
    rows = 3 * gates
    weights = {"w_ih": f32(rows, 4), "w_hh": f32(rows, 3)}
    biases = {"b_ih": f32(rows), "b_hh": f32(rows)}
    return {"input": f32("n", 4), "hx": hx, **weights, **biases}


STATE = f32("n", 3)

CASES: tuple[Case, ...] = (
    case(
        "linear.default",
        lambda x, w, b: x @ w.T + b,
        input=X,
        weight=f32(5, 4),
        bias=f32(5),
    ),
    case(
        "linear.default", lambda x, w: x @ w.T, label="plain", input=X, weight=f32(5, 4)
    ),
    case("matmul.default", np.matmul, self=X, other=f32("n", 4, 2)),
    case("matmul.default", np.matmul, label="vector", self=X, other=VECTOR),
    case("mm.default", np.matmul, self=f32("n", 4), mat2=f32(4, 3)),
    case("bmm.default", np.matmul, self=X, mat2=f32("n", 4, 2)),
    case("mv.default", np.matmul, self=MATRIX, vec=VECTOR),
    case("dot.default", np.dot, self=VECTOR, tensor=VECTOR),
    case("vdot.default", np.dot, self=VECTOR, other=VECTOR),
    case(
        "addmm.default",
        lambda y, a, b: F32(0.5) * y + 2 * (a @ b),
        self=f32(3),
        mat1=f32("n", 4),
        mat2=f32(4, 3),
        beta=0.5,
        alpha=2,
    ),
    case(
        "addmm.default",
        lambda y, a, b: y + a @ b,
        label="plain",
        self=f32(3),
        mat1=f32("n", 4),
        mat2=f32(4, 3),
    ),
    case(
        "baddbmm.default",
        lambda y, a, b: y * 2 + F32(0.5) * (a @ b),
        self=f32("n", 3, 1),
        batch1=X,
        batch2=f32("n", 4, 2),
        beta=2,
        alpha=0.5,
    ),
    case(
        "addbmm.default",
        lambda y, a, b: y + (a @ b).sum(0),
        self=f32(3, 2),
        batch1=X,
        batch2=f32("n", 4, 2),
    ),
    case(
        "addmv.default",
        lambda y, m, v: y + 3 * (m @ v),
        self=f32(3),
        mat=MATRIX,
        vec=VECTOR,
        alpha=3,
    ),
    case(
        "addr.default",
        lambda y, a, b: 2 * y + np.outer(a, b),
        self=MATRIX,
        vec1=f32(3),
        vec2=VECTOR,
        beta=2,
    ),
    case("outer.default", np.outer, self=f32("n"), vec2=VECTOR),
    case("inner.default", np.inner, self=X, other=f32(2, 4)),
    case(
        "tensordot.default",
        lambda x, y: np.tensordot(x, y, ([1, 2], [2, 0])),
        self=X,
        other=f32(4, 2, 3),
        dims_self=[1, 2],
        dims_other=[2, 0],
    ),
    case(
        "einsum.default",
        lambda x, y: np.einsum("bij,bkj->bik", x, y),
        equation="bij, bkj -> bik",
        tensors=[X, f32("n", 2, 4)],
    ),
    case(
        "einsum.default",
        lambda x, y: np.einsum("i,j->ij", x.astype(np.float32), y),
        label="dtypes",
        equation="i,j->ij",
        tensors=[i64("n"), VECTOR],
    ),
    case(
        "linalg_multi_dot.default",
        lambda a, b, c: a @ b @ c,
        tensors=[f32(2, 3), MATRIX, f32(4, 2)],
    ),
    case(
        "linalg_matrix_power.default",
        lambda x: np.linalg.matrix_power(x, 5),
        tolerance=1e-3,
        self=f32("n", 3, 3),
        n=5,
    ),
    case("kron.default", np.kron, self=f32(2, 3), other=f32(3, 2)),
    case(
        "linalg_cross.default",
        lambda x, y: np.cross(x, y, axis=1),
        self=X,
        other=f32("n", 3, 4),
        dim=1,
    ),
    case("cross.default", np.cross, self=f32("n", 3), other=f32("n", 3), dim=-1),
    case(
        "bilinear.default",
        lambda a, b, w, c: np.einsum("bi,oij,bj->bo", a, w, b) + c,
        input1=f32("n", 3),
        input2=f32("n", 4),
        weight=f32(2, 3, 4),
        bias=f32(2),
    ),
    case("linalg_det.default", np.linalg.det, tolerance=1e-4, A=f32("n", 3, 3)),
    case("linalg_inv.default", np.linalg.inv, tolerance=1e-3, A=f32("n", 3, 3)),
    case(
        "linalg_solve.default",
        np.linalg.solve,
        tolerance=1e-3,
        A=f32("n", 3, 3),
        B=f32("n", 3, 2),
    ),
    case("lstm_cell.default", lstm, **cell(4, [STATE, STATE])),
    case("gru_cell.default", gru, **cell(3, STATE)),
    case("rnn_tanh_cell.default", simple(np.tanh), **cell(1, STATE)),
    case("rnn_relu_cell.default", simple(lambda x: np.maximum(x, 0)), **cell(1, STATE)),
)

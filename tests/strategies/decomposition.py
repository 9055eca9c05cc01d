"""Examples of decompositions of matrices and of linear systems."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.strategies.registry import (
    Array,
    Draw,
    Example,
    case,
    extents,
    floats,
    generator,
)


def matrices(draw: Draw, rows: int, columns: int) -> Array:
    """Return matrices whose singular values differ: 1.5, 2, 2.5, ..."""
    batch = extents(draw, 0, 2, most=3)
    rng, short = generator(draw), min(rows, columns)
    left = np.linalg.qr(rng.standard_normal((*batch, rows, short)))[0]
    right = np.linalg.qr(rng.standard_normal((*batch, columns, short)))[0]
    values = 1.5 + 0.5 * np.arange(short)
    result = (left * values) @ np.swapaxes(right, -1, -2)
    return np.asarray(result.astype(np.float32))


def square(draw: Draw) -> Array:
    size = draw(st.integers(1, 4))
    return matrices(draw, size, size)


def any_sides(draw: Draw) -> Array:
    return matrices(draw, draw(st.integers(1, 4)), draw(st.integers(1, 4)))


def flag(draw: Draw, name: str) -> dict[str, Any]:
    return {name: True} if draw(st.booleans()) else {}


@case("Cholesky", domain="burn")
def triangle(draw: Draw, version: int) -> Example:
    x = square(draw)
    # One triangle is read, and the gradient is symmetric: no derivative of any x.
    positive = x @ np.swapaxes(x, -1, -2)
    return Example(flag(draw, "upper"), [positive], resizable=False, discrete=ONE)


ONE = frozenset({0})


@case("MatrixExp", domain="burn")
def exponential(draw: Draw, version: int) -> Example:
    return Example({}, [square(draw)], resizable=False, rtol=1e-4)


@case("Pinv", domain="burn")
def pseudoinverse(draw: Draw, version: int) -> Example:
    attrs = draw(st.sampled_from([{}, {"rtol": 1e-3}, {"atol": 1e-3}]))
    return Example(attrs, [any_sides(draw)], resizable=False, rtol=1e-4)


@case("SlogDet", domain="burn")
def determinant(draw: Draw, version: int) -> Example:
    return Example({}, [square(draw)], outputs=2, resizable=False, rtol=1e-4)


@case("Eigh", domain="burn")
def eigenvalues(draw: Draw, version: int) -> Example:
    x = square(draw)
    symmetric = x + np.swapaxes(x, -1, -2)
    attrs = flag(draw, "upper")
    return Example(attrs, [symmetric], outputs=2, resizable=False, discrete=ONE)


@case("Svd", domain="burn")
def singular_values(draw: Draw, version: int) -> Example:
    x = any_sides(draw)
    attrs = {} if x.shape[-1] == x.shape[-2] else {"full_matrices": False}
    return Example(attrs, [x], outputs=3, resizable=False, rtol=1e-4, atol=1e-4)


@case("Qr", domain="burn")
def orthonormal(draw: Draw, version: int) -> Example:
    x = any_sides(draw)
    attrs = flag(draw, "complete") if x.shape[-2] <= x.shape[-1] else {}
    return Example(attrs, [x], outputs=2, resizable=False, rtol=1e-4, atol=1e-4)


@case("Solve", domain="burn")
def system(draw: Draw, version: int) -> Example:
    a = square(draw)
    b = floats(draw, (*a.shape[:-1], draw(st.integers(1, 3))))
    return Example({}, [a, b], resizable=False, rtol=1e-4)


@case("SolveTriangular", domain="burn")
def substitution(draw: Draw, version: int) -> Example:
    a = square(draw) / 3 + 2 * np.eye(1, dtype=np.float32)
    a += 3 * np.eye(a.shape[-1], dtype=np.float32)
    b = floats(draw, (*a.shape[:-1], draw(st.integers(1, 3))))
    attrs = {**flag(draw, "upper"), **flag(draw, "unit")}
    return Example(attrs, [a, b], resizable=False, rtol=1e-4)


@case("GroupedMatMul", domain="burn")
def groups(draw: Draw, version: int) -> Example:
    rows, count, inner, outer = (draw(st.integers(1, 5)) for _ in range(4))
    ends = np.sort(draw(st.permutations(range(rows + 1)))[:count])
    weight = floats(draw, (len(ends), inner, outer))
    x = floats(draw, (rows, inner))
    return Example({}, [x, weight, ends.astype(np.int32)], resizable=False)

"""Matrix decompositions and linear systems, which ONNX lacks."""

from __future__ import annotations

from burn import dtypes, ops
from burn_ir.dim import Dim, unnamed
from burn_ir.errors import InvalidOperand
from burn_ir.op import Op, Type, Value, operator
from burn_ir.ops.elementwise import same_dtype
from burn_ir.ops.functions import expect_float
from burn_ir.ops.options import non_default
from burn_ir.ops.support import are_unequal_numbers
from burn_ir.types import broadcast


def expect_matrices(x: Type) -> Type:
    """Return ``x``, floating and of rank 2 or more.

    Raises:
        InvalidOperand: it is not.
    """
    expect_float(x)
    if x.shape is not None and len(x.shape) < 2:
        raise InvalidOperand(f"expected matrices, got {x.name}")
    return x


def expect_square(x: Type) -> Type:
    """Return ``x``, floating and of square matrices as far as known.

    Raises:
        InvalidOperand: it is not.
    """
    if expect_matrices(x).shape is not None:
        rows, columns = x.dims[-2:]
        if are_unequal_numbers(rows, columns):
            raise InvalidOperand(f"expected square matrices, got {x.name}")
    return x


class OfSquares:
    """Operators on square matrices that keep the operand's type."""

    def infer(self, x: Type) -> Type:
        return expect_square(x).forget()


@operator
class Cholesky(OfSquares, Op, onnx="Cholesky", versions=(1,), domain="burn"):
    """The lower triangle L with ``L @ L.mT = x``; with ``upper`` its transpose."""

    upper: bool = False

    def lower(self, x: Value) -> Value:
        return ops.cholesky(x, **non_default(upper=(self.upper, False)))


@operator
class MatrixExp(OfSquares, Op, onnx="MatrixExp", versions=(1,), domain="burn"):
    """The exponentials of matrices."""

    def lower(self, x: Value) -> Value:
        return ops.matrix_exp(x)


@operator
class Pinv(Op, onnx="Pinv", versions=(1,), domain="burn"):
    """The pseudoinverses; small singular values count as 0, see ``burn.ops.pinv``."""

    atol: float = 0.0
    rtol: float | None = None

    def infer(self, x: Type) -> Type:
        if expect_matrices(x).shape is None:
            return x.forget()
        return x.with_shape((*x.dims[:-2], x.dims[-1], x.dims[-2]))

    def lower(self, x: Value) -> Value:
        options = non_default(atol=(self.atol, 0.0), rtol=(self.rtol, None))
        return ops.pinv(x, **options)


@operator
class SlogDet(Op, onnx="SlogDet", versions=(1,), domain="burn"):
    """The signs and the logarithms of the absolute values of determinants."""

    results: int = 2

    def infer(self, x: Type) -> tuple[Type, Type]:
        if expect_square(x).shape is None:
            return x.forget(), x.forget()
        result = x.with_shape(x.dims[:-2])
        return result, result

    def lower(self, x: Value) -> tuple[Value, ...]:
        return ops.slogdet(x)[: self.results]


@operator
class Eigh(Op, onnx="Eigh", versions=(1,), domain="burn"):
    """Eigenvalues in ascending order, and vectors as columns, of symmetric matrices."""

    upper: bool = False
    results: int = 2

    def infer(self, x: Type) -> tuple[Type, Type]:
        if expect_square(x).shape is None:
            return x.forget(), x.forget()
        return x.with_shape(x.dims[:-1]), x.forget()

    def lower(self, x: Value) -> tuple[Value, ...]:
        return ops.eigh(x, **non_default(upper=(self.upper, False)))[: self.results]


def shorter_side(x: Type) -> Dim:
    """Return the smaller matrix dimension, a fresh symbol if it is undecided."""
    rows, columns = x.dims[-2:]
    if isinstance(rows, int) and isinstance(columns, int):
        return min(rows, columns)
    return rows if rows == columns else unnamed()


@operator
class Svd(Op, onnx="Svd", versions=(1,), domain="burn"):
    """``U``, singular values in descending order, and ``Vh``: ``U @ diag(S) @ Vh``."""

    full_matrices: bool = True
    results: int = 3

    def infer(self, x: Type) -> tuple[Type, Type, Type]:
        if expect_matrices(x).shape is None:
            return x.forget(), x.forget(), x.forget()
        short = shorter_side(x)
        *batch, rows, columns = x.dims
        left, right = (rows, columns) if self.full_matrices else (short, short)
        return (
            x.with_shape((*batch, rows, left)),
            x.with_shape((*batch, short)),
            x.with_shape((*batch, right, columns)),
        )

    def lower(self, x: Value) -> tuple[Value, ...]:
        options = non_default(full_matrices=(self.full_matrices, True))
        return ops.svd(x, **options)[: self.results]


@operator
class Qr(Op, onnx="Qr", versions=(1,), domain="burn"):
    """``Q`` with orthonormal columns, and ``R``, an upper triangle."""

    complete: bool = False
    results: int = 2

    def infer(self, x: Type) -> tuple[Type, Type]:
        if expect_matrices(x).shape is None:
            return x.forget(), x.forget()
        *batch, rows, columns = x.dims
        inner = rows if self.complete else shorter_side(x)
        left = x.with_shape((*batch, rows, inner))
        return left, x.with_shape((*batch, inner, columns))

    def lower(self, x: Value) -> tuple[Value, ...]:
        options = non_default(complete=(self.complete, False))
        return ops.qr(x, **options)[: self.results]


def solution(a: Type, b: Type) -> Type:
    """Return the type of the solutions of ``a @ x = b``.

    Raises:
        InvalidOperand: the shapes are not those of linear systems.
    """
    dtype = same_dtype(expect_square(a), expect_matrices(b))
    if a.shape is None or b.shape is None:
        return Type(dtype, None)
    inner, rows = a.dims[-1], b.dims[-2]
    if are_unequal_numbers(inner, rows):
        raise InvalidOperand(f"expected {inner} rows, got {b.name}")
    batch = broadcast(Type(dtype, a.dims[:-2]), Type(dtype, b.dims[:-2]))
    assert batch is not None
    return Type(dtype, (*batch, *b.dims[-2:]))


@operator
class Solve(Op, onnx="Solve", versions=(1,), domain="burn"):
    """The solutions of linear systems ``a @ x = b``."""

    def infer(self, a: Type, b: Type) -> Type:
        return solution(a, b)

    def lower(self, a: Value, b: Value) -> Value:
        return ops.solve(a, b)


@operator
class SolveTriangular(Op, onnx="SolveTriangular", versions=(1,), domain="burn"):
    """The solutions of ``a @ x = b`` by one triangle of ``a``."""

    upper: bool = False
    unit: bool = False

    def infer(self, a: Type, b: Type) -> Type:
        return solution(a, b)

    def lower(self, a: Value, b: Value) -> Value:
        options = non_default(upper=(self.upper, False), unit=(self.unit, False))
        return ops.solve_triangular(a, b, **options)


@operator
class GroupedMatMul(Op, onnx="GroupedMatMul", versions=(1,), domain="burn"):
    """Rows of ``x`` [s, k] times the matrix of their group in ``weight`` [g, k, m].

    The rows of group i end before ``ends[i]``.
    """

    def infer(self, x: Type, weight: Type, ends: Type) -> Type:
        dtype = same_dtype(expect_float(x), weight)
        if not dtypes.is_integer(ends.dtype):
            raise InvalidOperand(f"expected integers, got {ends.name}")
        if x.shape is None or weight.shape is None:
            return Type(dtype, None)
        if x.rank != 2 or weight.rank != 3:
            raise InvalidOperand(
                f"expected ranks 2 and 3, got {x.name} and {weight.name}"
            )
        return Type(dtype, (x.dims[0], weight.dims[2]))

    def lower(self, x: Value, weight: Value, ends: Value) -> Value:
        return ops.grouped_matmul(x, weight, ends)

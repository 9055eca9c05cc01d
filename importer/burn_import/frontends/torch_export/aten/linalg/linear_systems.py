"""Determinants, inverses and solutions of linear systems."""

from dataclasses import replace
from typing import Any

from burn_import.frontends.torch_export.aten.linalg.diagonals import eye
from burn_import.frontends.torch_export.aten.math.creation import filled_tensor
from burn_import.frontends.torch_export.builder import BOOL, INT32, Builder, Value
from burn_import.frontends.torch_export.registry import rule
from burn_ir import UnsupportedModel


def matrix_op(g: Builder, op_type: str, *operands: Value, **attrs: Any) -> Value:
    """Return the result of one of burn's operators on matrices."""
    return g.op(op_type, *g.floats(*operands), domain="burn", **attrs)


def transposed(g: Builder, x: Value, rank: int | None = None) -> Value:
    """Transpose the last two axes; ``rank`` is needed for results."""
    axes = x.rank if rank is None else rank
    order = [*range(axes - 2), axes - 1, axes - 2]
    dims = x.dims and tuple(x.dims[axis] for axis in order)
    return replace(g.op("Transpose", x, perm=tuple(order)), dims=dims)


@rule("aten.linalg_det.default")
def det(g: Builder, A: Value) -> Value:  # noqa: N803
    return g.op("Det", A)


@rule("aten.det.default")
def det_of_self(g: Builder, self: Value) -> Value:
    return g.op("Det", self)


@rule("aten._linalg_det.default")
def det_and_factors(g: Builder, A: Value) -> tuple[Value, None, None]:  # noqa: N803
    return g.op("Det", A), None, None


@rule("aten.slogdet.default")
def slogdet(g: Builder, self: Value) -> tuple[Value, ...]:
    return g.many("SlogDet", 2, self, domain="burn")


@rule("aten.linalg_slogdet.default")
def linalg_slogdet(g: Builder, A: Value) -> tuple[Value, ...]:  # noqa: N803
    return slogdet(g, A)


@rule("aten._linalg_slogdet.default")
def slogdet_and_factors(g: Builder, A: Value) -> tuple[Any, ...]:  # noqa: N803
    return *slogdet(g, A), None, None


@rule("aten.logdet.default")
def logdet(g: Builder, self: Value) -> Value:
    """Return the logarithm of determinants; NaN for negative ones."""
    sign, size = slogdet(g, self)
    is_negative = g.at(BOOL).op("Less", sign, 0)
    return g.op("Where", is_negative, g.cast(float("nan")), size)


@rule("aten.inverse.default")
def inverse(g: Builder, self: Value) -> Value:
    return g.op("Inverse", self, domain="com.microsoft")


@rule("aten.linalg_inv.default")
def linalg_inv(g: Builder, A: Value) -> Value:  # noqa: N803
    return inverse(g, A)


def no_errors(g: Builder, x: Value) -> Value:
    """Return zeros for each matrix: whenever there is a result, no error was found."""
    batch = [g.extent(x, axis) for axis in range(x.rank - 2)]
    return filled_tensor(g.at(INT32), batch, 0)


@rule("aten.linalg_inv_ex.default")
def inverse_and_info(
    g: Builder, A: Value, check_errors: bool = False  # noqa: N803
) -> tuple[Value, Value]:
    return inverse(g, A), no_errors(g, A)


@rule("aten.linalg_solve.default")
def solve(g: Builder, A: Value, B: Value, left: bool = True) -> Value:  # noqa: N803
    is_vector = B.rank == 1 or (
        B.rank == A.rank - 1 and A.dims is not None and A.dims[:-1] == B.dims
    )
    if not left:
        rows = transposed(g, A), transposed(g, B)
        return transposed(g, matrix_op(g, "Solve", *rows), max(A.rank, B.rank))
    if is_vector:
        column = g.op("Unsqueeze", B, [-1])
        return g.op("Squeeze", matrix_op(g, "Solve", A, column), [-1])
    return matrix_op(g, "Solve", A, B)


@rule("aten.linalg_solve_ex.default")
def solve_and_info(
    g: Builder,
    A: Value,  # noqa: N803
    B: Value,  # noqa: N803
    left: bool = True,
    check_errors: bool = False,
) -> tuple[Value, Value]:
    return solve(g, A, B, left), no_errors(g, A)


@rule("aten._linalg_solve_ex.default")
def solve_and_factors(
    g: Builder,
    A: Value,  # noqa: N803
    B: Value,  # noqa: N803
    left: bool = True,
    check_errors: bool = False,
) -> tuple[Value, None, None, Value]:
    """Return solutions without the factors, which only gradients read."""
    return solve(g, A, B, left), None, None, no_errors(g, A)


@rule("aten.linalg_solve_triangular.default")
def solve_triangular(
    g: Builder,
    self: Value,
    B: Value,  # noqa: N803
    upper: bool,
    left: bool = True,
    unitriangular: bool = False,
) -> Value:
    options: dict[str, Any] = {"unit": True} if unitriangular else {}
    if left:
        return triangular(g, self, B, upper, **options)
    rows = transposed(g, self), transposed(g, B)
    solution = triangular(g, *rows, not upper, **options)
    return transposed(g, solution, max(self.rank, B.rank))


def triangular(g: Builder, a: Value, b: Value, upper: bool, **options: Any) -> Value:
    """Return the solutions of ``a @ x = b`` by a triangle of ``a``."""
    return matrix_op(g, "SolveTriangular", a, b, upper=upper or None, **options)


@rule("aten.triangular_solve.default")
def triangular_solve(
    g: Builder,
    self: Value,
    A: Value,  # noqa: N803
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
) -> tuple[Value, Value]:
    options: dict[str, Any] = {"unit": True} if unitriangular else {}
    matrix = transposed(g, A) if transpose else A
    return triangular(g, matrix, self, upper != transpose, **options), A


@rule("aten.cholesky_solve.default")
def cholesky_solve(
    g: Builder, self: Value, input2: Value, upper: bool = False
) -> Value:
    """Return the solutions of ``L @ L.mT @ x = self``."""
    swapped = transposed(g, input2)
    lower, higher = (swapped, input2) if upper else (input2, swapped)
    return triangular(g, higher, triangular(g, lower, self, False), True)


@rule("aten.cholesky_inverse.default")
def cholesky_inverse(g: Builder, self: Value, upper: bool = False) -> Value:
    extent = g.extent(self, -1)
    return cholesky_solve(g, g.cast(eye(g, [extent, extent])), self, upper)


@rule("aten.linalg_matrix_exp.default", "aten.matrix_exp.default")
def matrix_exp(g: Builder, self: Value) -> Value:
    return matrix_op(g, "MatrixExp", self)


@rule("aten.linalg_pinv.atol_rtol_float")
def pinv(
    g: Builder,
    self: Value,
    atol: float | None = None,
    rtol: float | None = None,
    hermitian: bool = False,
) -> Value:
    """Return the pseudoinverse; ``hermitian`` changes only the algorithm."""
    options = {"atol": atol or None, "rtol": rtol}
    return matrix_op(g, "Pinv", self, **options)


@rule("aten.linalg_pinv.default", "aten.pinverse.default")
def pinv_by_rcond(
    g: Builder, self: Value, rcond: float = 1e-15, hermitian: bool = False
) -> Value:
    return pinv(g, self, rtol=rcond)


@rule("aten.linalg_lstsq.default")
def lstsq(
    g: Builder,
    self: Value,
    b: Value,
    rcond: float | None = None,
    driver: str | None = None,
) -> tuple[Value, None, None, None]:
    """Return the least-squares solution of minimal norm; other results are None."""
    return g.op("MatMul", pinv(g, self, rtol=rcond), g.cast(b)), None, None, None


@rule("transformers.grouped_mm_fallback.default")
def grouped_rows(g: Builder, input: Value, weight: Value, offs: Value) -> Value:
    """Return rows of ``input``, sorted by experts, times the experts' matrices."""
    return g.op("GroupedMatMul", *g.floats(input, weight), offs, domain="burn")


@rule("aten._grouped_mm.default")
def grouped_matmul(
    g: Builder,
    self: Value,
    mat2: Value,
    offs: Value | None = None,
    bias: Value | None = None,
    out_dtype: Any = None,
) -> Value:
    """Return groups of rows times a matrix each, or batched products."""
    if bias is not None:
        raise UnsupportedModel("grouped products with a bias are not supported")
    if offs is None and self.rank == mat2.rank == _BATCH:
        return g.op("MatMul", *g.floats(self, mat2))
    if offs is None or (self.rank, mat2.rank) != (_BATCH - 1, _BATCH):
        raise UnsupportedModel(
            f"expected groups of rows and a matrix each, got ranks {self.rank} and "
            f"{mat2.rank}"
        )
    return grouped_rows(g, self, mat2, offs)


_BATCH = 3

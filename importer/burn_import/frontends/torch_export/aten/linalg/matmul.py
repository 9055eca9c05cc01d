"""Products of vectors and matrices, and linear layers."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from burn_import.frontends.torch_export.aten.linalg.diagonals import eye
from burn_import.frontends.torch_export.aten.linalg.linear_systems import inverse
from burn_import.frontends.torch_export.aten.math.arithmetic import multiply_by
from burn_import.frontends.torch_export.builder import INT64, Builder, Operand, Value
from burn_import.frontends.torch_export.registry import rule
from burn_ir import UnsupportedModel


@rule("aten.linear.default")
def linear(g: Builder, input: Value, weight: Value, bias: Value | None = None) -> Value:
    """Apply a linear layer; operands are cast only under autocast."""
    x, factor = g.cast(input), g.cast(weight)
    if weight.rank == 1:
        product = g.op("MatMul", x, factor)
    else:
        product = g.op("MatMul", x, g.op("Transpose", factor, perm=(1, 0)))
    return product if bias is None else g.op("Add", product, g.cast(bias))


@rule("aten.matmul.default", "aten.mm.default", "aten.bmm.default")
@rule("aten.dot.default", "aten.vdot.default", "aten.mv.default")
@rule("aten.linalg_matmul.default", "aten.mm.dtype", "aten.bmm.dtype")
def matmul(
    g: Builder,
    self: Value,
    other: Value | None = None,
    mat2: Value | None = None,
    tensor: Value | None = None,
    vec: Value | None = None,
    out_dtype: Any = None,
) -> Value:
    """Return a product of matrices, whose operands are cast to the result's dtype."""
    return g.op("MatMul", *g.floats(self, other or mat2 or tensor or vec))


def weighted_sum(
    g: Builder, self: Value, term: Value, beta: Operand, alpha: Operand
) -> Value:
    """Return ``beta * self + alpha * term``, in the order that passes recognize."""
    product = multiply_by(g, term, alpha)
    if not isinstance(beta, Value) and beta == 0:
        return product
    return g.op("Add", product, multiply_by(g, g.cast(self), beta))


@rule("aten.addmm.default", "aten.addmm.dtype")
def addmm(
    g: Builder,
    self: Value,
    mat1: Value,
    mat2: Value,
    out_dtype: Any = None,
    *,
    beta: Any = 1,
    alpha: Any = 1,
) -> Value:
    return weighted_sum(g, self, g.op("MatMul", *g.floats(mat1, mat2)), beta, alpha)


@rule("aten.baddbmm.default", "aten.baddbmm.dtype")
def baddbmm(
    g: Builder,
    self: Value,
    batch1: Value,
    batch2: Value,
    out_dtype: Any = None,
    *,
    beta: Any = 1,
    alpha: Any = 1,
) -> Value:
    return weighted_sum(g, self, g.op("MatMul", *g.floats(batch1, batch2)), beta, alpha)


@rule("aten.addbmm.default")
def addbmm(
    g: Builder, self: Value, batch1: Value, batch2: Value, beta: Any = 1, alpha: Any = 1
) -> Value:
    total = g.op("ReduceSum", g.op("MatMul", batch1, batch2), [0], keepdims=0)
    return weighted_sum(g, self, total, beta, alpha)


@rule("aten.addmv.default")
def addmv(
    g: Builder, self: Value, mat: Value, vec: Value, beta: Any = 1, alpha: Any = 1
) -> Value:
    return weighted_sum(g, self, g.op("MatMul", mat, vec), beta, alpha)


@rule("aten.outer.default", "aten.ger.default")
def outer(g: Builder, self: Value, vec2: Value) -> Value:
    return g.op("Mul", g.op("Unsqueeze", g.cast(self), [1]), g.cast(vec2))


@rule("aten.addr.default")
def addr(
    g: Builder, self: Value, vec1: Value, vec2: Value, beta: Any = 1, alpha: Any = 1
) -> Value:
    return weighted_sum(g, self, outer(g, vec1, vec2), beta, alpha)


@rule("aten.inner.default")
def inner(g: Builder, self: Value, other: Value) -> Value:
    if not self.rank or not other.rank:
        return g.op("Mul", self, other)
    return tensordot(g, self, other, [-1], [-1])


@rule("aten.tensordot.default")
def tensordot(
    g: Builder,
    self: Value,
    other: Value,
    dims_self: Sequence[int],
    dims_other: Sequence[int],
) -> Value:
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    left = [next(letters) for _ in range(self.rank)]
    right = [next(letters) for _ in range(other.rank)]
    for a, b in zip(dims_self, dims_other, strict=True):
        right[b] = left[a]
    free_labels = [c for c in left if c not in right] + [
        c for c in right if c not in left
    ]
    equation = f"{''.join(left)},{''.join(right)}->{''.join(free_labels)}"
    return g.op("Einsum", self, other, equation=equation)


@rule("aten.einsum.default")
def einsum(
    g: Builder,
    equation: str,
    tensors: Sequence[Value],
    path: Sequence[int] | None = None,
) -> Value:
    """Sum products; operands of an outer product may have several dtypes."""
    operands = [g.cast(tensor) for tensor in tensors]
    return g.op("Einsum", *operands, equation=equation.replace(" ", ""))


@rule("aten.linalg_multi_dot.default", "aten.chain_matmul.default")
def multi_dot(
    g: Builder, tensors: Sequence[Value] = (), matrices: Sequence[Value] = ()
) -> Value:
    first, *rest = tensors or matrices
    for x in rest:
        first = g.op("MatMul", first, x)
    return first


@rule("aten.linalg_matrix_power.default", "aten.matrix_power.default")
def matrix_power(g: Builder, self: Value, n: int) -> Value:
    if n == 0:
        extent = g.extent(self, -1)
        identity = g.cast(eye(g, [extent, extent]))
        return g.op("Expand", identity, g.at(INT64).op("Shape", self))
    power = base = inverse(g, self) if n < 0 else self
    for bit in bin(abs(n))[3:]:
        power = g.op("MatMul", power, power)
        power = g.op("MatMul", power, base) if bit == "1" else power
    return power


@rule("aten.kron.default")
def kron(g: Builder, self: Value, other: Value) -> Value:
    rank = max(self.rank, other.rank)
    a, b = (
        (
            replace(
                g.op("Unsqueeze", g.cast(x), list(range(rank - x.rank))),
                dims=(1,) * (rank - x.rank) + tuple(x.dims or ()),
            )
            if x.rank < rank
            else g.cast(x)
        )
        for x in (self, other)
    )
    products = g.op(
        "Mul",
        g.op("Unsqueeze", a, [2 * axis + 1 for axis in range(rank)]),
        g.op("Unsqueeze", b, [2 * axis for axis in range(rank)]),
    )
    sizes: list[int | Value] = []
    for axis in range(rank):
        pair = (g.extent(a, axis), g.extent(b, axis))
        fixed = [n for n in pair if isinstance(n, int)]
        sizes.append(fixed[0] * fixed[1] if len(fixed) == 2 else -1)
    if sizes.count(-1) > 1:
        raise UnsupportedModel("expected kron of matrices, one extent of which varies")
    return g.op("Reshape", products, sizes)


@rule("aten.linalg_cross.default", "aten.cross.default")
def cross(g: Builder, self: Value, other: Value, dim: int | None = -1) -> Value:
    if dim is None:
        pairs = list(enumerate(self.dims or ()))
        dim = next((axis for axis, extent in pairs if extent == 3), -1)
    a, b = g.cast(self), g.cast(other)

    def rolled(x: Value, by: int) -> Value:
        return g.op("Roll", x, domain="burn", shifts=(by,), axes=(dim,))

    first = g.op("Mul", rolled(a, -1), rolled(b, 1))
    return g.op("Sub", first, g.op("Mul", rolled(a, 1), rolled(b, -1)))


@rule("aten.bilinear.default")
def bilinear(
    g: Builder, input1: Value, input2: Value, weight: Value, bias: Value | None = None
) -> Value:
    product = g.op("Einsum", input1, weight, input2, equation="...i,oij,...j->...o")
    return product if bias is None else g.op("Add", product, bias)


@rule("aten._trilinear.default")
def trilinear(
    g: Builder,
    i1: Value,
    i2: Value,
    i3: Value,
    expand1: Sequence[int],
    expand2: Sequence[int],
    expand3: Sequence[int],
    sumdim: Sequence[int],
    unroll_dim: int = 1,
) -> Value:
    """Return the product of three unsqueezed tensors, summed over axes."""
    pairs = ((i1, expand1), (i2, expand2), (i3, expand3))
    rank = i1.rank + len(expand1)
    names = "abcdefghijklmnop"[:rank]
    terms = ["".join(names[a] for a in range(rank) if a not in e) for _, e in pairs]
    left = "".join(names[a] for a in range(rank) if a not in sumdim)
    return g.op("Einsum", i1, i2, i3, equation=f"{','.join(terms)}->{left}")


@rule("aten.linalg_vecdot.default")
def vecdot(g: Builder, x: Value, y: Value, dim: int = -1) -> Value:
    return g.op("ReduceSum", g.op("Mul", x, y), [dim], keepdims=0)

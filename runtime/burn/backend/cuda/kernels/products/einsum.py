"""Einstein sums of two operands as matrix products of cuBLASLt."""

from collections.abc import Callable
from math import prod

from burn.backend.cuda.device import Cuda
from burn.backend.cuda.kernels.products.products import are_multiplied, matmul
from burn.ops.matmul import einsum as einsum_op, explicit
from burn.ops.support import Array


@einsum_op.on(Cuda)
def einsum(equation: str, xs: list[Array]) -> Array:
    """Compute :func:`burn.ops.einsum`."""
    if len(xs) == 2 and are_multiplied(*xs):
        terms, result = explicit(equation, [x.ndim for x in xs])
        out = contract_pair(xs, terms, result, matmul)
        if out is not None:
            return out
    return einsum_op.kernel(equation, xs)


def contract_pair(
    xs: list[Array],
    terms: list[str],
    result: str,
    multiply: Callable[[Array, Array], Array],
) -> Array | None:
    """Return the Einstein sum of two operands by ``multiply``, a product of matrices.

    ``terms`` are the labels of the operands. Return None if a label stands twice in
    one of them, or has two extents, of which one is broadcast.
    """
    extents: dict[str, int] = {}
    for term, x in zip(terms, xs, strict=True):
        if len(set(term)) < len(term):
            return None
        for label, extent in zip(term, x.shape, strict=True):
            if extents.setdefault(label, extent) != extent:
                return None
    (left, x), (right, y) = (
        _sum_unshared(x, term, set(other) | set(result))
        for x, term, other in zip(xs, terms, reversed(terms), strict=True)
    )
    shared = [label for label in left if label in right]
    batch = [label for label in shared if label in result]
    inner = [label for label in shared if label not in result]
    rows = [label for label in left if label not in right]
    columns = [label for label in right if label not in left]

    def matrices(array: Array, term: str, *groups: list[str]) -> Array:
        order = [term.index(label) for group in groups for label in group]
        sizes = [prod(extents[label] for label in group) for group in groups]
        return array.transpose(order).reshape(sizes if batch else sizes[1:])

    out = multiply(
        matrices(x, left, batch, rows, inner), matrices(y, right, batch, inner, columns)
    )
    labels = [*batch, *rows, *columns]
    out = out.reshape([extents[label] for label in labels])
    return out.transpose([labels.index(label) for label in result])


def _sum_unshared(array: Array, term: str, needed: set[str]) -> tuple[str, Array]:
    """Return the labels and the operand without the axes that nothing else has."""
    axes = tuple(axis for axis, label in enumerate(term) if label not in needed)
    labels = "".join(label for label in term if label in needed)
    return labels, array.sum(axes) if axes else array

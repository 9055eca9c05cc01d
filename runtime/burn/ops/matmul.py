"""Matrix products: NumPy's ``matmul``, the linear layer, and ``einsum``."""

from math import prod
from typing import Any

import numpy as np

from burn import dtypes
from burn.ops import bounds, numpy_times
from burn.ops.broadcast import like
from burn.ops.reduction import sum
from burn.ops.shape import reshape, transpose, unsqueeze
from burn.ops.support import Array, accumulate, contract, numeric
from burn.primitive import primitive

# Not of ``string``, whose import compiles regular expressions.
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


@primitive(
    traceable=True,
    removable=True,
    bound=bounds.matrices,
    autocast="lower",
    numpy_time=numpy_times.matrix_product,
)
def matmul(x: Array, y: Array) -> Array:
    """Return the matrix product by NumPy's rules: ``[..., n, k] @ [..., k, m]``.

    Leading axes broadcast and an operand of rank 1 is a row or a column. Integers
    remain integers; half types are accumulated in float32.
    """
    x, y = numeric(x, y)
    dtype = x.dtype
    x, y = accumulate(x), accumulate(y)
    if x.ndim > 2 and y.ndim == 2 and x.shape[-1] == y.shape[0]:
        rows = x.reshape(-1, x.shape[-1]) if x.size else None
        if rows is not None:  # one product of matrices instead of one a batch
            product = np.matmul(rows, y).reshape(*x.shape[:-1], y.shape[1])
            return product.astype(dtype, copy=False)
    return np.matmul(x, y).astype(dtype, copy=False)


@matmul.vjp
def _(grad: Any, out: Any, x: Any, y: Any) -> Any:
    left = unsqueeze(x, 0) if x.ndim == 1 else x
    right = unsqueeze(y, 1) if y.ndim == 1 else y
    if y.ndim == 1:
        grad = unsqueeze(grad, -1)
    if x.ndim == 1:
        grad = unsqueeze(grad, -2)
    return (
        lambda: _shaped(like(matmul(grad, right.mT), left), x.shape),
        lambda: _shaped(_right_share(grad, left, right), y.shape),
    )


# Operands of rank 1 are reshaped before a gradient is asked for.
matmul.declare_reads({0: (0, 1), 1: (0, 1)})


def _shaped(x: Any, shape: tuple[int, ...]) -> Any:
    """Return ``x`` in ``shape``; plans get no reshape step if it already has it."""
    return x if x.shape == shape else reshape(x, shape)


def _right_share(grad: Any, left: Any, right: Any) -> Any:
    """Return ``left.mT @ grad`` summed to the shape of ``right``."""
    if right.ndim == 2 and left.ndim > 2:
        return like(_outer_rows(left, grad), right)
    return like(matmul(left.mT, grad), right)


def _outer_rows(x: Any, y: Any) -> Any:
    """Return the summed outer products of the rows of ``x`` and ``y``: ``[k, m]``."""
    count = prod(x.shape[:-1])
    rows = _shaped(x, (count, x.shape[-1]))
    return matmul(transpose(rows, 0, 1), _shaped(y, (count, y.shape[-1])))


@primitive(
    traceable=True,
    removable=True,
    bound=bounds.layer,
    autocast="lower",
    numpy_time=numpy_times.matrix_product,
)
def linear(x: Array, weight: Array, bias: Array | None = None) -> Array:
    """Return ``x @ weight.mT + bias``: ``[..., in]``, ``[out, in]`` and ``[out]``.

    The result is ``[..., out]`` in the common dtype of ``x`` and ``weight``.

    Raises:
        ValueError: ``x`` has another number of features.
    """
    if x.shape[-1] != weight.shape[-1]:
        raise ValueError(
            f"expected {weight.shape[-1]} features on the last axis, "
            f"got {list(x.shape)}"
        )
    dtype = dtypes.promote(x.dtype, weight.dtype)
    work = np.float32 if dtype in dtypes.HALVES else dtype
    extents = (int(np.prod(x.shape[:-1], dtype=np.int64)), x.shape[-1])
    rows = x.reshape(extents).astype(work, copy=False)
    product = np.matmul(rows, weight.astype(work, copy=False).T)
    if bias is not None:
        product += bias.astype(work, copy=False)
    return product.reshape(*x.shape[:-1], len(weight)).astype(dtype, copy=False)


@linear.vjp
def _(grad: Any, out: Any, x: Any, weight: Any, bias: Any = None) -> Any:
    return (
        lambda: like(matmul(grad, weight), x),
        lambda: like(_outer_rows(grad, x), weight),
        lambda: like(sum(grad, tuple(range(grad.ndim - 1))), bias),
    )


linear.declare_reads({0: (1,), 1: (0,)})


@primitive(removable=True, autocast="lower")
def einsum(equation: str, xs: list[Array]) -> Array:
    """Return the Einstein sum of ``xs`` in NumPy's and ONNX's notation, with ``...``.

    ``einsum("bij,bjk->bik", [x, y])`` is a batched matrix product. Half types are
    accumulated in float32.
    """
    dtype = xs[0].dtype
    for x in xs[1:]:
        dtype = dtypes.promote(dtype, x.dtype)
    operands = [accumulate(x.astype(dtype, copy=False)) for x in xs]
    total = contract(equation, *operands, optimize=len(xs) > 1)
    return total.astype(dtype)


@einsum.vjp
def _(grad: Any, out: Any, equation: str, xs: Any) -> Any:
    inputs, result = explicit(equation, [x.ndim for x in xs])

    def share(position: int) -> Any:
        return like(_einsum_share(grad, inputs, result, xs, position), xs[position])

    # One function an operand would compute them one by one; a list has no laziness.
    return None, lambda: [share(position) for position in range(len(xs))]


def _einsum_share(
    grad: Any, inputs: list[str], result: str, xs: Any, position: int
) -> Any:
    """Return the sum of ``grad`` with all other operands, over the axes of one operand.

    An axis that only this operand has, or that is 1 in all others, is broadcast by a
    vector of ones. An axis named twice in it is mapped to the diagonal by an identity
    matrix.
    """
    terms, operands = [result], [grad]
    for other, labels in enumerate(inputs):
        if other != position:
            terms.append(labels)
            operands.append(xs[other])
    extents = _label_extents(terms, operands)
    used = set("".join([*inputs, result]))
    fresh = iter([c for c in _LETTERS if c not in used])
    target = ""
    for label, extent in zip(inputs[position], xs[position].shape, strict=True):
        if label in target:
            twin = next(fresh)
            terms.append(label + twin)
            operands.append(np.eye(extent, dtype=grad.dtype))
            label = twin
        elif label not in extents or extents[label] == 1 != extent:
            terms.append(label)
            operands.append(np.ones(extent, grad.dtype))
        target += label
    return einsum(f"{','.join(terms)}->{target}", operands)


def _label_extents(terms: list[str], operands: list[Any]) -> dict[str, int]:
    """Return the extent of each label; extents of 1 are broadcast to the others."""
    extents: dict[str, int] = {}
    for labels, operand in zip(terms, operands, strict=True):
        for label, extent in zip(labels, operand.shape, strict=True):
            if extents.get(label, 1) == 1:
                extents[label] = extent
    return extents


def explicit(equation: str, ranks: list[int]) -> tuple[list[str], str]:
    """Return the labels of every operand and of the result, with ellipses expanded.

    Raises:
        ValueError: the number of operands differs from that of the terms.
    """
    left, arrow, result = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise ValueError(f"expected {len(terms)} operands, got {len(ranks)}")
    letters = [c for c in _LETTERS if c not in equation]
    widths = [
        rank - len(term.replace("...", "")) if "..." in term else 0
        for term, rank in zip(terms, ranks, strict=True)
    ]
    dots = "".join(letters[: max(widths)])
    if not arrow:
        plain = left.replace(",", "").replace(".", "")
        once = sorted(c for c in set(plain) if plain.count(c) == 1)
        result = ("..." if "..." in left else "") + "".join(once)
    inputs = [
        term.replace("...", dots[len(dots) - width :])
        for term, width in zip(terms, widths, strict=True)
    ]
    return inputs, result.replace("...", dots)

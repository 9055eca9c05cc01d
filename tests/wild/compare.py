"""Errors of results against references, free of PyTorch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
#: Largest error of a right result, relative to the largest element of the reference.
TOLERANCE = 1e-4
#: How many times the rounding error of PyTorch itself a right result may be off.
ROUNDING_FACTOR = 10.0
#: Elements of a gradient that are compared at a time.
BLOCK = 1 << 20


class MismatchError(ValueError):
    """Results have another number, shape or dtype than the reference."""


def to_array(tensor: Any) -> Array:
    """Return a tensor of PyTorch as an array; bfloat16 becomes float32."""
    tensor = tensor.detach().resolve_conj()
    if str(tensor.dtype) == "torch.bfloat16":
        tensor = tensor.float()
    result: Array = tensor.numpy()
    return result


def as_double(array: Array) -> Array:
    """Return floating numbers in double precision, and others as they are."""
    return array.astype(np.float64) if _is_floating(array) else array


def is_finite(array: Array) -> bool:
    """Return whether an array has neither NaN nor infinities."""
    return array.dtype.kind not in "fc" or bool(np.isfinite(array).all())


def largest_error(results: Sequence[Array], references: Sequence[Array]) -> float:
    """Return the largest relative error over all outputs.

    For floats that is the largest difference, relative to the largest finite element
    of the reference; for other dtypes the share of elements that differ. NaN and
    infinities count as equal where both have them, else the error is infinite.

    Raises:
        MismatchError: the number of outputs, a shape or a kind of dtype differs.
    """
    if len(results) != len(references):
        raise MismatchError(f"expected {len(references)} outputs, got {len(results)}")
    pairs = zip(results, references, strict=True)
    return max((_error(k, a, b) for k, (a, b) in enumerate(pairs)), default=0.0)


def _error(position: int, result: Array, reference: Array) -> float:
    a, b = _as_pairs(result, reference), _as_pairs(reference, reference)
    if a.shape != b.shape:
        raise MismatchError(
            f"output {position}: expected shape {b.shape}, got {a.shape}"
        )
    floating = _is_floating(b)
    if floating != _is_floating(a):
        raise MismatchError(f"output {position}: expected {b.dtype}, got {a.dtype}")
    if not floating:
        return float(np.mean(a != b)) if a.size else 0.0
    return relative_error(a.astype(np.float64), b.astype(np.float64))


def _is_floating(array: Array) -> bool:
    return array.dtype.kind not in "biuUSO" or str(array.dtype) == "bfloat16"


def _as_pairs(array: Array, reference: Array) -> Array:
    """Return complex numbers as a last axis of 2, which generated modules use."""
    if array.dtype.kind != "c":
        return array
    return np.stack([array.real, array.imag], -1)


def relative_error(a: Array, b: Array, scale: float = 0.0) -> float:
    """Return the largest difference relative to the largest finite element of ``b``.

    A larger ``scale`` is used instead of that element.
    """
    finite = np.isfinite(b)
    if not np.array_equal(finite, np.isfinite(a)):
        return float("inf")
    special = (a == b) | (np.isnan(a) & np.isnan(b))
    if not np.all(special | finite):
        return float("inf")
    if not finite.any():
        return 0.0
    largest = max(float(np.abs(b[finite]).max()), scale)
    difference = float(np.abs(a[finite] - b[finite]).max())
    return difference / largest if largest else (0.0 if difference == 0 else np.inf)


def _blockwise_error(a: Array, b: Array, scale: float) -> float:
    """Return the relative error in float64, which needs memory for a block only."""
    largest = max(
        (float(np.abs(part).max()) for part in _finite_blocks(b)), default=0.0
    )
    scale = max(scale, largest)
    pairs = zip(_blocks(a), _blocks(b), strict=True)
    return max((relative_error(x, y, scale) for x, y in pairs), default=0.0)


def _blocks(array: Array) -> Iterator[Array]:
    flat = array.reshape(-1)
    for start in range(0, flat.size, BLOCK):
        yield flat[start : start + BLOCK].astype(np.float64)


def _finite_blocks(array: Array) -> Iterator[Array]:
    for block in _blocks(array):
        finite = block[np.isfinite(block)]
        if finite.size:
            yield finite


@dataclass(frozen=True)
class GradientErrors:
    """Errors of the gradients of parameters, by key.

    ``compared`` counts the parameters that both sides have; ``missing`` are keys with
    a gradient in PyTorch that the generated module has not, ``changed`` those whose
    value there is not the author's.
    """

    error: float
    worst: str
    compared: int
    missing: tuple[str, ...]
    changed: tuple[str, ...]


def compare_gradients(
    actual: Mapping[str, Array],
    expected: Mapping[str, Array],
    changed: Sequence[str] = (),
) -> GradientErrors:
    """Compare gradients by key, each relative to its own largest element.

    Gradients below 1e-3 of the largest one of the model are measured against that, or
    rounding alone would count. Keys in ``changed`` are not compared.
    """
    largest = [max(-g.min(), g.max()) for g in expected.values() if g.size]
    finite = [float(m) for m in largest if np.isfinite(m)]
    scale = 1e-3 * max(finite, default=0.0)
    errors: dict[str, float] = {}
    for key, gradient in expected.items():
        if key not in actual or key in changed or actual[key].shape != gradient.shape:
            continue
        errors[key] = _blockwise_error(actual[key], gradient, scale)
    worst = max(errors, key=lambda key: errors[key], default="")
    return GradientErrors(
        errors.get(worst, 0.0),
        worst,
        len(errors),
        tuple(sorted(expected.keys() - actual.keys())),
        tuple(sorted(changed)),
    )


def is_right(error: float, rounding: float = 0.0) -> bool:
    """Return whether an error is small, given the rounding error of the reference.

    A model in which PyTorch's own float32 result is far from its float64 result is
    ill-conditioned, and is compared only that closely.
    """
    return error <= max(TOLERANCE, ROUNDING_FACTOR * rounding)

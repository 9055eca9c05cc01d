"""Values of a graph under construction, with their contents in every trial run."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, Any]

#: The trial runs: two sizes of the inputs, each exact and with noise.
EXACT, NOISY, OTHER, OTHER_NOISY = range(4)
RUNS = 4
#: The relative noise on inputs and on results of each dtype: about 100 roundings.
NOISE = {
    np.dtype(np.float16): 4e-3,
    np.dtype(np.float32): 1e-5,
    np.dtype(np.float64): 1e-10,
}


@dataclass(frozen=True)
class Value:
    """A value with its contents in each trial run: arrays, or lists of arrays.

    ``origin`` is ``"input"``, ``"constant"`` or ``"node"``.
    """

    name: str
    runs: tuple[Any, ...]
    origin: str = "node"

    @property
    def is_tensor(self) -> bool:
        return isinstance(self.runs[0], np.ndarray)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of a tensor."""
        result: np.dtype[Any] = self.runs[0].dtype
        return result

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shape of a tensor in each run."""
        return tuple(run.shape for run in self.runs)

    @property
    def rank(self) -> int:
        return int(self.runs[0].ndim)

    def has_shape(self, shape: Sequence[int]) -> bool:
        """Return whether the value is a tensor of ``shape`` in every run."""
        return self.is_tensor and all(s == tuple(shape) for s in self.shapes)


def constant(name: str, array: Array) -> Value:
    """A value with the same contents in every run."""
    return Value(name, (array,) * RUNS, "constant")


def with_noise(array: Array, rng: np.random.Generator) -> Array:
    """``array`` with relative noise if it is floating."""
    scale = NOISE.get(array.dtype)
    if scale is None:
        return array
    with np.errstate(all="ignore"):
        factor = 1 + scale * rng.standard_normal(array.shape)
        return np.asarray(array.astype(np.float64) * factor).astype(array.dtype)


def with_noise_where_inexact(exact: Any, noisy: Any, rng: np.random.Generator) -> Any:
    """``noisy`` with more noise on the elements that differ from ``exact``."""
    if isinstance(exact, list):
        pairs = zip(exact, noisy, strict=True)
        return [with_noise_where_inexact(a, b, rng) for a, b in pairs]
    if exact.dtype not in NOISE:
        return noisy
    return np.where(exact == noisy, noisy, with_noise(noisy, rng))

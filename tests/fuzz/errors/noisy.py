"""Rounding inside of nodes: a device whose primitives have errors in their results.

A node may compute more than its result shows: attention adds -10000 to what it masks,
and a body of a loop has nodes of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from burn import Tensor, dtypes
from burn.backend.cpu import Cpu
from burn_ir import Graph, evaluate
from tests.laws.devices import leaves_of
from tests.laws.models import mapped

#: Two steps of the dtypes of files: a smaller error would be rounded away at once.
OWN = {
    dtypes.float32: 2.0**-22,
    dtypes.float16: 2.0**-9,
    dtypes.bfloat16: 2.0**-6,
}
#: Primitives whose result is 0 where a dtype of more digits has a small number.
UNDERFLOWING = frozenset({"exp", "log_softmax", "softmax"})
#: The same unless a factor is 0.
PRODUCTS = frozenset({"mul", "prod"})


class Noisy(Cpu):
    """NumPy's kernels, with random errors of ``step`` relative to each element.

    There are none unless the device is ``enabled``, and none is smaller than that of
    the dtype. What every dtype holds has none: neither zeros, unless they are small
    numbers in another one, nor counts.
    """

    def __new__(cls, step: float, seed: int) -> Noisy:
        return object.__new__(cls)

    def __init__(self, step: float, seed: int) -> None:
        self.step = step
        self.enabled = True
        self.rng = np.random.default_rng(seed)

    def call(self, primitive: Any, args: tuple[Any, ...], static: Any) -> Any:
        result = super().call(primitive, args, static)
        if isinstance(result, tuple):
            return tuple(self.moved(item) for item in result)
        underflows = primitive.name in UNDERFLOWING
        if primitive.name in PRODUCTS:
            factors = [arg for arg in args if isinstance(arg, Tensor)]
            underflows = all((factor.numpy() != 0).all() for factor in factors)
        return self.moved(result, underflows)

    def moved(self, value: Any, underflows: bool = False) -> Any:
        """``value`` with errors, if it is floating and of this device."""
        is_floating = value.backend is self and dtypes.is_float(value.dtype)
        if not self.enabled or not is_floating:
            return value
        array = value.numpy()
        with np.errstate(all="ignore"):
            step = max(self.step, OWN.get(value.dtype, 0.0))
            error = step * self.rng.uniform(-1, 1, array.shape) * array
            is_exact = array.astype(dtypes.bfloat16) == array
            noisy = np.where(is_exact, array, array + error)
            if underflows:
                noisy = np.where(array == 0, self.rng.choice([0, -1e-30, 1e-30]), noisy)
        return Tensor(within(noisy, array), self)


def within(moved: Any, array: Any) -> Any:
    """``moved`` in the dtype of ``array``; where that overflows, ``array``."""
    with np.errstate(over="ignore"):
        result = np.asarray(moved.astype(array.dtype))
    return np.where(np.isfinite(result) | ~np.isfinite(array), result, array)


def noisy_outputs(
    graph: Graph, inputs: Sequence[Any], step: float, seed: int
) -> list[Any]:
    """The outputs of a graph with errors of ``step`` in the inputs and primitives.

    Each is a list of the arrays in it.
    """
    device = Noisy(step, seed)

    def tensor(x: Any) -> Any:
        return device.moved(Tensor(np.asarray(x), device))

    results = evaluate(graph, [mapped(tensor, x) for x in inputs])
    return [[leaf.numpy() for leaf in leaves_of(result)] for result in results]

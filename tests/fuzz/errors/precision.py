"""Modules in another dtype (``--dtype``), within bounds that the graph itself gives.

What rounding to a dtype may change is measured: every value of the graph is moved by
random errors of the size of one rounding, some times over. Values that are not floating
and change by that say nothing, and neither do outputs that change much.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import burn
from burn import Tensor, dtypes
from burn.backend.cpu import HOST
from burn_import.options import Options
from burn_ir import Graph, ModelError
from burn_ir.evaluate import run_node
from tests.conformance.run import built
from tests.fuzz.errors.noisy import OWN, noisy_outputs, within
from tests.fuzz.generator import FuzzCase
from tests.fuzz.subject import called, imported
from tests.laws.devices import leaves_of
from tests.laws.models import mapped

#: The relative error of one rounding, and the largest number before an overflow.
ROUNDING = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float64": 2.0**-24}
#: The error of one rounding of a number below the normal ones; 0 where none is met.
SUBNORMAL = {"float16": 2.0**-25}
LARGEST = {"float16": 1e4, "bfloat16": 1e30, "float64": 1e30}
#: How often errors are drawn, and how much larger than these those of a module may be.
DRAWS, SAFETY = 4, 6.0
#: The same for the root mean square of errors: those of rounding are random.
MEAN_SAFETY = 4.0
#: How often errors inside of nodes are drawn: a condition near its threshold may turn.
INSIDE = 16
#: The part of the largest element that rounding leaves where terms cancel.
LEFT = 2.0**-16
#: An output that changes by more than this part of its scale is not compared.
VAGUE = 0.3


def check_dtype(case: FuzzCase) -> Iterator[tuple[str, str]]:
    """Yield the differences in another dtype: name of the check, difference."""
    half = case.profile == "networks"
    dtype = list(ROUNDING)[case.seed % 3] if half else "float64"
    with tempfile.TemporaryDirectory() as folder:
        graph = built(case.model, Path(folder))
    if not all(node.op.deterministic for node in graph.nodes):
        return
    try:
        with imported(case.model, Options(class_name="Net", dtype=dtype)) as module:
            for feeds in case.feeds[:2]:
                text = _different(graph, module, feeds, dtype)
                if text is not None:
                    yield f"dtype {dtype}", text
    except ModelError:
        return  # a node that cannot compute in the dtype is named


def _different(
    graph: Graph, module: Any, feeds: Mapping[str, Any], dtype: str
) -> str | None:
    values = list(feeds.values())
    outputs, largest = perturbed(graph, values, 0.0, np.random.default_rng(0))
    if not largest < LARGEST[dtype]:
        return None
    step, tiny = ROUNDING[dtype], SUBNORMAL.get(dtype, 0.0)
    try:
        draws = [
            perturbed(graph, values, step, np.random.default_rng(n), tiny=tiny)[0]
            for n in range(DRAWS)
        ]
        moved = list(map(_arrays, draws))
    except (ArithmeticError, LookupError, RuntimeError, ValueError):
        return None  # errors on stored scales of extents
    inside = cache(partial(_inside, graph, values, step))
    target = getattr(dtypes, dtype)
    cast = {name: mapped(lambda x: _cast(x, target), x) for name, x in feeds.items()}
    got, exact = _arrays(called(module, cast)), _arrays(outputs)
    for number, (y, z, *others) in enumerate(zip(got, exact, *moved, strict=True)):
        text = _outside(y, z, others, step)
        if text is not None:
            text = _outside(y, z, others, step, [each[number] for each in inside()])
        if text is not None and not np.isfinite(y).all() and _vanishes(graph, dtype):
            text = None  # as of 0 / sqrt(0 + epsilon)
        if text is not None:
            return f"output {number}: {text}"
    return None


def _vanishes(graph: Graph, dtype: str) -> bool:
    """Return whether a stored number, such as an epsilon, is 0 only in ``dtype``."""
    target = getattr(dtypes, dtype)
    numbers = [array for array in graph.constants.values() if array.size == 1]
    return any(
        dtypes.is_float(x.dtype)
        and bool((x != 0).all() & (x.astype(target) == 0).all())
        for x in numbers
    )


def _inside(graph: Graph, values: Sequence[Any], step: float) -> list[list[Any]]:
    """The outputs with the largest allowed errors in what nodes compute inside."""
    try:
        return [
            _arrays(noisy_outputs(graph, values, SAFETY * step, n))
            for n in range(INSIDE)
        ]
    except (ArithmeticError, LookupError, RuntimeError, ValueError):
        return []


def _cast(x: Any, target: Any) -> Any:
    array = np.asarray(x)
    return array.astype(target) if array.dtype in (np.float32, np.float16) else x


def _arrays(value: Any) -> list[Any]:
    if isinstance(value, list):
        return [array for item in value for array in _arrays(item)]
    return [value]


def _outside(
    got: Any, exact: Any, others: Sequence[Any], step: float, inside: Sequence[Any] = ()
) -> str | None:
    """Return the error beyond those of ``others``, and of the larger ``inside``.

    Elements that these errors make infinite or NaN are not compared.
    """
    draws = [*others, *inside]
    if got.shape != exact.shape:
        stable = all(other.shape == exact.shape for other in draws)
        return f"expected {exact.shape}, got {got.shape}" if stable else None
    if not dtypes.is_float(exact.dtype):
        stable = all(np.array_equal(other, exact) for other in draws)
        same = np.array_equal(got, exact)
        return None if same or not stable else f"expected {exact!r}, got {got!r}"[:300]
    wide, y = exact.astype(np.float64), got.astype(np.float64)
    if not np.isfinite(wide).all() or not wide.size:
        return None
    scale = float(abs(wide).max())
    if any(other.shape != exact.shape for other in draws):
        return None
    spread = max(_spread(other, wide) for other in others)
    bound = SAFETY * (spread + step * scale) + 1e-6
    bound = max(bound, *(2 * _spread(other, wide) for other in inside), 0.0)
    if not bound < VAGUE * max(scale, 1e-3):
        return None
    lost = np.any([~np.isfinite(other.astype(np.float64)) for other in draws], axis=0)
    wrong = ~(abs(y - wide) <= bound) & ~lost
    if not wrong.any():
        return _beyond_mean(y, wide, others, step, inside) if not lost.any() else None
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    return (
        f"{int(wrong.sum())} of {wide.size} elements are outside of {bound:.3g}, first "
        f"at {at}: expected {wide[at]}, got {y[at]}"
    )


def _beyond_mean(
    got: Any, wide: Any, others: Sequence[Any], step: float, inside: Sequence[Any]
) -> str | None:
    """Return how far the mean error exceeds rounding, where each element may."""

    def mean(error: Any) -> float:
        return float(np.sqrt((error**2).mean()))

    drawn = max(mean(other.astype(np.float64) - wide) for other in others)
    larger = [mean(other.astype(np.float64) - wide) for other in inside]
    bound = max(MEAN_SAFETY * (drawn + step * mean(wide)) + 1e-6, *larger, 0.0)
    error = mean(got - wide)
    if error <= bound:
        return None
    return f"the mean error is {error:.3g}, outside of {bound:.3g}"


def _spread(other: Any, wide: Any) -> float:
    """The largest difference of elements that are finite in a draw."""
    moved = other.astype(np.float64)
    return float(abs(moved - wide)[np.isfinite(moved)].max(initial=0.0))


@dataclass
class _Errors:
    """What makes the errors of :func:`perturbed`, and the largest number so far."""

    step: float
    rng: np.random.Generator
    at_scale: bool
    keeps_exact: bool
    tiny: float = 0.0
    largest: float = 0.0

    def moved(self, value: Any, is_stored: bool = False) -> Any:
        """``value`` with errors, if it is floating."""
        if not isinstance(value, Tensor) or not dtypes.is_float(value.dtype):
            return value
        array = value.numpy()
        finite = abs(array[np.isfinite(array)].astype(np.float64))
        scale = float(finite.max(initial=0.0))
        self.largest = max(self.largest, scale)
        if not self.step:
            return value
        error = max(self.step, OWN.get(value.dtype, 0.0)) * self.rng.uniform(
            -1, 1, array.shape
        )
        error *= np.where(array == 0, 0, scale) if self.at_scale else array
        if self.tiny:
            small = self.tiny * self.rng.uniform(-1, 1, array.shape)
            error += np.where(array == 0, 0, small)
        is_exact = array.astype(dtypes.bfloat16) == array
        if not is_stored:  # what is left of a difference is small, and has few digits
            is_exact &= self.keeps_exact & (abs(array) > LEFT * scale)
        error = np.where(is_exact, 0, error)
        return Tensor(within(array + error, array), HOST)


def perturbed(
    graph: Graph,
    inputs: Sequence[Any],
    step: float,
    rng: np.random.Generator,
    at_scale: bool = False,
    keeps_exact: bool = False,
    tiny: float = 0.0,
) -> tuple[list[Any], float]:
    """The outputs, as lists of arrays, with errors of ``step``; the largest number.

    They are relative to each element, or to the largest one of each value. No error is
    smaller than that of the value's dtype, nor is one made in zeros, nor in stored
    numbers that every dtype holds, such as the exponent of a square; nor in any such
    number if ``keeps_exact``. Errors of up to ``tiny`` are added, whatever the element.
    """
    errors = _Errors(step, rng, at_scale, keeps_exact, tiny)
    moved = errors.moved
    stored = {name: Tensor(array, HOST) for name, array in graph.constants.items()}
    values: dict[str | None, Any] = {None: None}
    values |= {name: moved(value, True) for name, value in stored.items()}
    values |= {name: values[source] for name, source in graph.defaults.items()}
    for name, given in zip(graph.inputs, inputs, strict=False):
        tensor = mapped(lambda x: burn.tensor(np.asarray(x)), given)
        values[name] = mapped(moved, tensor)
    with np.errstate(all="ignore"):
        for node in graph.nodes:
            results = run_node(node, [values[name] for name in node.inputs])
            for output, result in zip(node.outputs, results, strict=False):
                values[output] = mapped(moved, result) if output else None
    outputs = [values[name] for name in graph.outputs]
    arrays = [[leaf.numpy() for leaf in leaves_of(output)] for output in outputs]
    return arrays, errors.largest

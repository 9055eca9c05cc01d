"""Each pass alone keeps the values and the gradients of a graph."""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from burn import Tensor, dtypes
from burn.backend.autodiff import Autodiff
from burn.backend.cpu import Cpu
from burn_import.passes import PASSES, simplify
from burn_ir import Graph, evaluate
from tests.conformance.run import built
from tests.fuzz.compare import difference
from tests.fuzz.errors.noisy import Noisy
from tests.fuzz.errors.rounding import COARSE_SAFETY, TINY
from tests.fuzz.generator import FuzzCase
from tests.fuzz.generator.case import noise_between
from tests.laws.devices import leaves_of, tape_leaf
from tests.laws.models import mapped


def check_passes(case: FuzzCase) -> Iterator[tuple[str, str]]:
    """Yield the difference of results that each pass makes.

    Pairs of the name of the check and the difference.
    """
    with tempfile.TemporaryDirectory() as folder:
        graph = built(case.model, Path(folder))
        inputs = list(case.feeds[0].values())
        before = results(graph, inputs)
        noise = [case.noise[o.name] for o in case.model.graph.output]
        slopes = gradients(graph, inputs)
        for apply in PASSES:
            after = simplify(graph, [apply.__name__])
            if after is graph:
                continue
            text = difference(results(after, inputs), before, noise)
            if text is not None:
                yield f"pass {apply.__name__}", text
            if slopes is None:
                continue
            result = gradients(after, inputs)
            text = different_gradients(result, slopes, graph, inputs)
            if text is not None:
                yield f"gradients after {apply.__name__}", text


def results(graph: Graph, inputs: Sequence[Any]) -> list[Any]:
    """Return the results of a graph."""
    home = Cpu()
    with np.errstate(all="ignore"):
        values = evaluate(graph, [mapped(lambda v: Tensor(v, home), x) for x in inputs])
    return [_arrays(value) for value in values]


def _arrays(value: Any) -> Any:
    if isinstance(value, list):
        return [_arrays(item) for item in value]
    return value.numpy()


#: How often noise is drawn before a difference counts. Where terms cancel, what is left
#: is rounding, of which one draw may show too little.
DRAWS = 4
#: A larger difference is never taken for rounding.
MOST_ROUNDING = 1e-3


def gradients(
    graph: Graph, inputs: Sequence[Any], noise: Noisy | None = None
) -> list[Any] | None:
    """The gradients of a weighted sum of all results by each floating input.

    None if there is nothing to differentiate. An input that has none has zeros. There
    is ``noise`` in the backward pass alone, which keeps the sides of all kinks.
    """
    device = noise or Cpu()
    tape = Autodiff(device)
    if any(isinstance(x, list) for x in inputs):
        return None
    if noise is not None:
        noise.enabled = False
    operands = [tape_leaf(Tensor(np.asarray(x), device), tape) for x in inputs]
    with np.errstate(all="ignore"):
        values = leaves_of(evaluate(graph, operands))
        floats = [v for v in values if dtypes.is_float(v.dtype)]
        tracked = [v for v in floats if v.node is not None]
        if not tracked:
            return None
        total: Any = 0.0
        for index, value in enumerate(tracked):
            total = total + (value.cast(dtypes.float64) * (0.5 + index)).sum()
        if noise is not None:
            noise.enabled = True
        grads = total.backward()
        return [
            grads[x].numpy() if x in grads else np.zeros(x.shape, x.dtype)
            for x in operands
            if dtypes.is_float(x.dtype)
        ]


def different_gradients(
    got: list[Any] | None, expected: list[Any], graph: Graph, inputs: Sequence[Any]
) -> str | None:
    """Return the difference of gradients; None if none, or not smooth."""
    if got is None:
        got = [np.zeros_like(x) for x in expected]
    text, bounds = None, [0.0] * len(expected)
    for seed in range(DRAWS):
        noise = _gradient_noise(graph, inputs, expected, seed)
        if noise is None:
            return None
        bounds = [max(each) for each in zip(bounds, noise, strict=True)]
        text = difference(got, expected, bounds)
        if text is None:
            return None
    inside = _noise_of_rounding(graph, inputs, expected)
    bounds = [max(each) for each in zip(bounds, inside, strict=True)]
    return difference(got, expected, bounds)


def _noise_of_rounding(
    graph: Graph, inputs: Sequence[Any], expected: list[Any]
) -> list[float]:
    """Return the change of each gradient by rounding errors in the backward pass.

    Noise on the inputs does not tell it of a gradient whose terms cancel whatever they
    are. It is 0 for all if one is larger than ``MOST_ROUNDING``.
    """
    others = [gradients(graph, inputs, Noisy(TINY, seed)) for seed in range(DRAWS)]
    results = []
    for place, exact in enumerate(expected):
        moved = [other[place] for other in others if other is not None]
        results.append(COARSE_SAFETY * max(noise_between(exact, y) for y in moved))
    return results if all(n < MOST_ROUNDING for n in results) else [0.0] * len(results)


def _gradient_noise(
    graph: Graph, inputs: Sequence[Any], expected: list[Any], seed: int
) -> list[float] | None:
    rng = np.random.default_rng(seed)
    moved = [
        (
            x * (1 + 1e-5 * rng.standard_normal(x.shape)).astype(x.dtype)
            if x.dtype.kind == "f"
            else x
        )
        for x in inputs
    ]
    other = gradients(graph, moved)
    if other is None:
        return None
    matches = []
    for a, b in zip(other, expected, strict=True):
        scale = float(abs(b).max()) if b.size else 0.0
        noise = float(abs(a - b).max()) if b.size else 0.0
        if not np.isfinite(scale + noise) or noise > 1e-2 * max(scale, 1e-3):
            return None
        matches.append(noise + 1e-4 * scale)
    return matches

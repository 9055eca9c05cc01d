"""What rounding of the values inside of a graph does to its outputs.

Noise on the inputs does not reach what a node rounds away: the arc cosine of a number
near 0 is the same for all numbers around, and still has an error of its own, which a
tangent behind it makes large.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from burn import dtypes
from burn_ir import ModelError
from tests.conformance.run import built
from tests.fuzz.generator import FuzzCase
from tests.fuzz.generator.case import noise_between
from tests.fuzz.generator.trial import MOST_NOISE, scale_of
from tests.fuzz.precision import DRAWS, SAFETY, perturbed

#: The errors of a dtype's own arithmetic, relative to the largest element.
FINE = 0.0
#: The same as ``SAFETY`` for steps of lower precision, which are on every value.
COARSE_SAFETY = 2.0


def noise_of_rounding(
    case: FuzzCase, feeds: Mapping[str, Any], step: float = FINE
) -> list[float]:
    """The difference that errors on every value of the graph make, by output.

    The errors are those of rounding, relative to the largest element of the value, or
    ``step`` relative to each element. It is 0 for all outputs if the graph does not run
    with them, and with rounding alone also if discrete values change or the difference
    is above ``MOST_NOISE`` of an output's scale. In a graph with halves it is as large
    as that instead: one rounding of a half is a tenth of it, and onnxruntime leaves
    some out, where it drops a cast to halves and one back.
    """
    nothing = [0.0] * len(case.model.graph.output)
    try:
        with tempfile.TemporaryDirectory() as folder:
            graph = built(case.model, Path(folder))
        halves = any(t.dtype in dtypes.HALVES for t in graph.types.values())
        if not all(node.op.deterministic for node in graph.nodes):
            return nothing
        values = list(feeds.values())
        exact, *moved = [
            perturbed(graph, values, size, np.random.default_rng(n), at_scale=not step)[
                0
            ]
            for n, size in enumerate([0.0, *[step or 2.0**-51] * DRAWS])
        ]
    except (ArithmeticError, LookupError, ModelError, RuntimeError, ValueError):
        return nothing
    if any(len(each) != len(nothing) for each in (exact, *moved)):
        return nothing
    spreads = [
        [_between(a, b) for a, b in zip(exact, each, strict=True)] for each in moved
    ]
    safety = COARSE_SAFETY if step else SAFETY
    noise = [safety * max(each) for each in zip(*spreads, strict=True)]
    limits = [MOST_NOISE * max(1.0, scale_of(x)) for x in exact]
    if not step:
        if not np.isfinite(noise).all():
            return nothing
        if not halves and any(n > m for n, m in zip(noise, limits, strict=True)):
            return nothing
        return [min(pair) for pair in zip(noise, limits, strict=True)]
    return [n if np.isfinite(n) else 0.0 for n in noise]


def _between(exact: Any, moved: Any) -> float:
    """The largest difference of finite elements; infinite if another thing changes."""
    if exact.shape != moved.shape or exact.dtype != moved.dtype:
        return float("inf")
    if exact.dtype.kind not in "fc":
        return 0.0 if np.array_equal(exact, moved) else float("inf")
    both = np.isfinite(exact) | np.isfinite(moved)
    return noise_between(exact[both], moved[both])

"""Plans of random graphs give what eager calls give, with each pass and with all.

``--fuzz-seconds 600`` goes on with other graphs for ten minutes.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import burn
import burn.plan.passes
from burn import Autodiff, Cpu, ops
from burn.backend.cpu.onednn.binding import engine
from tests.runtime.plan.graphs import Graph, Maker, Program

#: The graphs of a normal run.
SEEDS = range(60)
LENGTH = 9
#: What is compared: up to this part of the largest number.
TOLERANCE = 3e-4
PASSES = burn.plan.passes.PASSES
Check = Callable[[Graph], str | None]


def given(graph: Graph, call: int) -> list[Any]:
    """The inputs of a call; those of the third have a NaN."""
    random = np.random.default_rng(graph.seed + 7 * call)
    arrays = [random.standard_normal(s).astype(np.float32) for s in graph.inputs]
    if call == 2:
        arrays[0].flat[0] = np.nan
    return [burn.from_numpy(array) for array in arrays]


def difference(result: list[Any], runs: list[list[Any]]) -> str | None:
    """Return the difference from eager calls, as far as these agree."""
    firsts = [value.numpy() for value in runs[0]]
    numbers = [np.abs(array[np.isfinite(array)]) for array in firsts]
    most = max(float(array.max(initial=1e-6)) for array in numbers)
    for number, values in enumerate(zip(result, *runs, strict=True)):
        array, *others = (value.numpy() for value in values)
        expected = others[0]
        certain = np.all([_alike(o, expected, most / 10) for o in others], axis=0)
        if not _alike(array, expected, most)[certain].all():
            return f"result {number} is {array}, expected {expected}"
    return None


def _alike(array: Any, other: Any, most: float) -> Any:
    with np.errstate(all="ignore"):
        near = np.abs(array / most - other / most) <= TOLERANCE
    return near | (array == other) | np.isnan(array) & np.isnan(other)


def forward(graph: Graph) -> str | None:
    """The first difference between a plan and eager calls, or None."""
    return compared(graph, Program(graph))


def gradients(graph: Graph) -> str | None:
    """The first difference between gradients by inputs and parameters, or None."""
    program, backend = Program(graph), Autodiff(Cpu())
    for box in program.parameters:
        box.to(backend)

    def slopes(*inputs: Any) -> list[Any]:
        leaves = [x.to(backend).require_grad() for x in inputs]
        parts = [ops.mean(ops.tanh(part)) for part in program(*leaves)]
        loss = sum(parts[1:], parts[0])
        result = loss.backward()
        return [result[key] for key in (*leaves, *program.parameters) if key in result]

    return compared(graph, slopes)


def compared(graph: Graph, function: Callable[..., list[Any]]) -> str | None:
    """The first difference in calls of a plan; the third has a NaN."""
    plan = burn.compile(function)
    for call in (0, 1, 2, 3):
        inputs = given(graph, call)
        runs = [function(*inputs)]
        with engine.numpy_only():
            runs.append(function(*inputs))
        with engine.whatever_size():
            runs.append(function(*inputs))
        result = difference(plan(*inputs), runs)
        if result is not None:
            return f"call {call}: {result}"
    return "; ".join(plan.notes) or None


def alone(number: int) -> Check:
    """A check of one pass without the others."""

    def check(graph: Graph) -> str | None:
        kept = burn.plan.passes.PASSES
        burn.plan.passes.PASSES = (PASSES[number],)
        try:
            return forward(graph)
        finally:
            burn.plan.passes.PASSES = kept

    return check


def smallest(graph: Graph, check: Check) -> Graph:
    """The shortest graph of the first lines of ``graph`` that fails."""
    for count in range(1, len(graph.lines)):
        shorter = replace(graph, lines=graph.lines[:count])
        if check(shorter) is not None:
            return shorter
    return graph


def expect_none(seed: int, check: Check) -> None:
    graph = Maker(seed).graph(LENGTH)
    if check(graph) is not None:
        small = smallest(graph, check)
        pytest.fail(f"Maker({seed}).graph({LENGTH}):\n{small}\n{check(small)}")


@pytest.mark.parametrize("seed", SEEDS)
def test_results(seed: int) -> None:
    expect_none(seed, forward)


@pytest.mark.parametrize("seed", SEEDS[::2])
@pytest.mark.sampled(3)
def test_gradients(seed: int) -> None:
    expect_none(seed, gradients)


@pytest.mark.parametrize("number", range(len(PASSES)))
@pytest.mark.sampled(3)
def test_passes_alone(number: int) -> None:
    for seed in SEEDS[number % 6 :: 6]:
        expect_none(seed, alone(number))


def test_other_graphs(request: pytest.FixtureRequest) -> None:
    seed, end = 1000, time.monotonic() + request.config.getoption("--fuzz-seconds")
    checks = [forward, gradients, *map(alone, range(len(PASSES)))]
    while True:
        expect_none(seed, checks[seed % len(checks)])
        seed += 1
        if time.monotonic() > end:
            return

"""Shrinking a failing graph: fewer nodes, whose operands become inputs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
from onnx import NodeProto, helper

from tests.fuzz.contents import Contents
from tests.fuzz.generator import FuzzCase
from tests.fuzz.generator.builder import free_names
from tests.fuzz.generator.case import noise_between
from tests.fuzz.generator.trial import Rejected, as_arrays, type_proto
from tests.fuzz.generator.values import with_noise
from tests.fuzz.reference.session import REFUSALS, session_of

Fails = Callable[[FuzzCase], bool]


def shrink(case: FuzzCase, fails: Fails, seconds: float = 60) -> FuzzCase:
    """The smallest part of ``case`` that was found for which ``fails`` holds.

    Nodes are left out in halves, then one by one; what they made becomes an input with
    the contents that onnxruntime gave it.
    """
    end = time.monotonic() + seconds
    contents = Contents.of(case, case.feeds) or Contents.of(case, case.feeds[:2])
    if contents is None:
        return case
    nodes = list(case.model.graph.node)
    best = case
    size = max(1, len(nodes) // 2)
    while size and time.monotonic() < end:
        place, progress = 0, False
        while place < len(nodes) and time.monotonic() < end:
            fewer = nodes[:place] + nodes[place + size :]
            smaller = part_of(contents, fewer) if fewer else None
            if smaller is not None and fails(smaller):
                nodes, best, progress = fewer, smaller, True
            else:
                place += size
        if not (progress and size == 1):
            size //= 2
    return _fewer_outputs(contents, nodes, best, fails, end)


def _fewer_outputs(
    contents: Contents, nodes: list[NodeProto], best: FuzzCase, fails: Fails, end: float
) -> FuzzCase:
    for name in [o.name for o in best.model.graph.output]:
        outputs = [o.name for o in best.model.graph.output if o.name != name]
        if not outputs or time.monotonic() > end:
            break
        smaller = part_of(contents, nodes, outputs)
        if smaller is not None and fails(smaller):
            best = smaller
    return best


def part_of(
    contents: Contents, nodes: Sequence[NodeProto], outputs: Sequence[str] | None = None
) -> FuzzCase | None:
    """The graph of some of the nodes; None if onnxruntime does not run it."""
    graph = contents.model.graph
    made = {name for node in nodes for name in node.output if name}
    read = set(free_names(nodes))
    stored = {i.name: i for i in graph.initializer}
    known = {i.name: i for i in graph.input if i.name not in stored}
    given = [n for n in free_names(nodes) if n not in made and n not in stored]
    wanted = {o.name for o in graph.output} & made
    chosen = outputs or [n for n in made if n in wanted or n not in read]
    if any(n not in run for run in contents.runs for n in (*given, *chosen)):
        return None
    first = contents.runs[0]
    inputs = [
        known.get(n)
        or helper.make_value_info(n, type_proto(first[n], _dims(contents, n, i)))
        for i, n in enumerate(given)
    ]
    results = [helper.make_value_info(n, type_proto(first[n])) for n in chosen]
    constants = [stored[n] for n in read if n in stored]
    model = onnx.ModelProto()
    model.CopyFrom(contents.model)
    model.graph.CopyFrom(
        helper.make_graph(list(nodes), "part", inputs, results, constants)
    )
    model.ir_version = max(model.ir_version, 8)
    feeds = [{n: run[n] for n in given} for run in contents.runs]
    feeds += feeds[:1] * (3 - len(feeds))
    return measured(FuzzCase(0, model, feeds, {}))


def _dims(contents: Contents, name: str, place: int) -> list[int | str] | None:
    """The extents of a value, with names for those that differ between the runs.

    No other value has the names: what was equal in the graph may differ in its part.
    """
    arrays = [run[name] for run in contents.runs]
    if isinstance(arrays[0], list):
        return None
    shapes = list(zip(*(array.shape for array in arrays), strict=True))
    return [s[0] if len(set(s)) == 1 else f"D{place}_{i}" for i, s in enumerate(shapes)]


def measured(case: FuzzCase) -> FuzzCase | None:
    """``case`` with the noise of its outputs; None if it does not run."""
    rng = np.random.default_rng(0)
    names = [o.name for o in case.model.graph.output]
    noise = dict.fromkeys(names, 0.0)
    try:
        session = session_of(case.model)
        for feeds in case.feeds[:2]:
            noisy = {n: _noisy(x, rng) for n, x in feeds.items()}
            exact = [as_arrays(y) for y in session.run(None, feeds)]
            other = [as_arrays(y) for y in session.run(None, noisy)]
            for name, a, b in zip(names, exact, other, strict=True):
                noise[name] = max(noise[name], noise_between(a, b))
    except (*REFUSALS, Rejected):
        return None
    return replace(case, noise=noise)


def _noisy(value: Any, rng: np.random.Generator) -> Any:
    if isinstance(value, list):
        return [_noisy(item, rng) for item in value]
    return with_noise(value, rng)

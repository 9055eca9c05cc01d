"""Gradients by the parameters of a generated module: eager, compiled, by differences.

The loss is a sum of all results with fixed weights. Gradients in float32 are compared
with those of a compiled function, and, summed along the direction in which all stored
weights are moved, with differences in float64 (:mod:`tests.fuzz.gradients.slopes`).
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from onnx.numpy_helper import to_array

import burn
from burn import Tensor
from burn.backend.autodiff import Autodiff
from burn.backend.cpu import Cpu
from burn_import.options import Options
from burn_import.passes import simplify
from burn_import.provenance.weight_owners import original
from burn_import.structure.constant_roles import note_fills
from burn_ir import Graph
from tests.conformance.run import built, given
from tests.fuzz.compare import SMALLEST, difference
from tests.fuzz.generator import FuzzCase
from tests.fuzz.gradients.derivative import Slope
from tests.fuzz.gradients.slopes import (
    directions,
    double_graph,
    double_inputs,
    loss_of,
    moved_model,
    slope_of,
)
from tests.fuzz.gradients.weights import (
    has_halves,
    is_below_float32,
    narrowed,
    read_constants,
)
from tests.fuzz.subject import imported
from tests.laws.models import mapped

#: The step by which weights are moved in float32, and the error allowed along them.
MOVED, ERROR = 2.0**-10, 1e-4
#: The same in graphs with halves, of which float64 says nothing more exact: four of
#: their roundings.
ERROR_OF_HALVES = 2.0**-9
#: The largest relative error with which gradients along weights are compared.
KINK = 1e-2
#: Relative noise on inputs and parameters that says how exact gradients can be.
NOISE = 1e-5
#: How often noise is drawn before a difference counts.
DRAWS = 4
DEFAULT = Options(class_name="Net")
#: What ``nn.BatchNorm2d`` says of inputs without a variance.
ONE_ELEMENT = "expected more than one element a channel in training"


def check_training(case: FuzzCase) -> Iterator[tuple[str, str]]:
    """Yield the wrong gradients by parameters: name of the check, difference."""
    with imported(case.model, DEFAULT) as module:
        module = module.to(Autodiff(Cpu()))
        boxes = dict(module.parameters())
        if not boxes:
            return
        feeds = [list(feeds.values()) for feeds in case.feeds[:2]]
        eager = [_gradients(module, boxes, x) for x in feeds]
        noise = [_noise(module, boxes, x, g) for x, g in zip(feeds, eager, strict=True)]
        yield from _compiled(module, boxes, feeds, eager, noise)
        if noise[0] is not None and eager[0] is not None:
            grads = dict(zip(boxes, eager[0], strict=True))
            noises = dict(zip(boxes, noise[0], strict=True))
            yield from _along_weights(case, module, grads, noises)


def _compiled(
    module: Any, boxes: Mapping[str, Any], feeds: Any, eager: Any, noise: Any
) -> Iterator[tuple[str, str]]:
    plan = burn.compile(lambda *inputs: _step(module, boxes, inputs))
    for number in (0, 0, 1, 0, 1):
        if eager[number] is None or noise[number] is None:
            continue
        with np.errstate(all="ignore"):
            got = [g.numpy() for g in plan(*map(given, feeds[number]))]
        text = difference(got, eager[number], noise[number])
        if text is not None:
            text = _beyond(module, boxes, feeds[number], got, eager[number])
        if text is not None:
            names = list(boxes)
            index = int(text.split()[1].rstrip(":")) if text[:6] == "output" else 0
            yield "compiled gradients", f"{names[index]}: {text}"
            return


def _beyond(
    module: Any, boxes: Mapping[str, Any], feeds: Any, got: Any, exact: Any
) -> str | None:
    """Return the difference of gradients beyond that of several draws of noise.

    Where terms cancel, what is left is rounding, of which one draw may show too little.
    """
    bounds = [0.0] * len(exact)
    for seed in range(DRAWS):
        noise = _noise(module, boxes, feeds, exact, seed)
        if noise is None:
            return None
        bounds = [max(pair) for pair in zip(bounds, noise, strict=True)]
    return difference(got, exact, bounds)


def _step(module: Any, boxes: Mapping[str, Any], inputs: Sequence[Any]) -> list[Any]:
    """The gradients by the parameters; zeros for what the loss does not depend on."""
    total = loss_of(module(*inputs))
    grads = total.backward()
    return [
        grads[box] if box in grads else box.value.detach() * 0.0
        for box in boxes.values()
    ]


def _gradients(module: Any, boxes: Any, feeds: Sequence[Any]) -> list[Any] | None:
    """The gradients as arrays; None if the results depend on no parameter.

    There are none by a batch of one element a channel either, as in PyTorch.
    """
    with np.errstate(all="ignore"):
        try:
            total = loss_of(module(*map(given, feeds)))
        except ValueError as error:
            if ONE_ELEMENT not in str(error):
                raise
            return None
        if not isinstance(total, Tensor) or total.node is None:
            return None
        return [g.numpy() for g in _step(module, boxes, list(map(given, feeds)))]


def _noise(
    module: Any,
    boxes: Mapping[str, Any],
    feeds: Sequence[Any],
    exact: Any,
    seed: int = 0,
) -> list[float] | None:
    """Return the change of each gradient by noise; None where it is not smooth."""
    if exact is None:
        return None
    rng = np.random.default_rng(seed)
    before = {path: box.value for path, box in boxes.items()}
    other = _noised(module, boxes, feeds, rng)
    for path, box in boxes.items():
        box.set(before[path])
    if other is None:
        return None
    largest = max((float(abs(g).max()) for g in exact if g.size), default=0.0)
    results = []
    for a, b in zip(other, exact, strict=True):
        slack = float(abs(a.astype(np.float64) - b).max()) if b.size else 0.0
        if not np.isfinite(slack) or slack > 1e-2 * max(largest, 1e-3):
            return None
        results.append(10 * slack + 1e-5 * largest)
    return results


def _noised(module: Any, boxes: Any, feeds: Sequence[Any], rng: Any) -> Any:
    def moved(x: Any) -> Any:
        array = np.asarray(x)
        if array.dtype.kind != "f":
            return x
        noise = 1 + NOISE * rng.standard_normal(array.shape)
        return (array * noise).astype(array.dtype)

    for box in boxes.values():
        box.set(burn.from_numpy(moved(box.value.detach().numpy())))
    return _gradients(module, boxes, [mapped(moved, x) for x in feeds])


def _along_weights(
    case: FuzzCase, module: Any, grads: Mapping[str, Any], noise: Mapping[str, float]
) -> Iterator[tuple[str, str]]:
    """The gradients along what the parameters move by when the weights do."""
    graph = double_graph(case)
    before = {k: v.numpy() for k, v in module.state_dict().items()}
    parameters = [before[k] for k in grads]
    moves = {
        name: move
        for name, move in directions(case, graph).items()
        if f"{name}_float32" not in graph.constants  # what computes angles reads that
    }
    moves = _stored_moves(case, moves, parameters)
    moves = {} if graph.states else moves
    expected = slope_of(graph, double_inputs(case, graph), moves) if moves else None
    if expected is None:
        return
    states = [_moved_state(case, moves, sign * MOVED) for sign in (-1, 1, -0.5, 0.5)]
    if any(_is_other_module(before, after, grads) for after in states):
        return  # what the weights hold decides on the module, or on its buffers
    got = _along(before, states, grads, noise)
    if not got.error <= KINK * max(got.scale, expected.scale):
        return  # the parameters are not smooth, or float32 cannot tell
    if not expected.differs(got.value, got.scale, ERROR, got.error):
        return
    with tempfile.TemporaryDirectory() as folder:
        halves = has_halves(built(case.model, Path(folder)))
    allowed = ERROR_OF_HALVES if halves else ERROR
    if expected.differs(got.value, got.scale, allowed, got.error):
        text = f"expected {expected.value:.6g} along the weights, got {got.value:.6g}"
        yield "gradients by parameters", text


def _stored_moves(
    case: FuzzCase, moves: Mapping[str, Any], parameters: Sequence[Any]
) -> dict[str, Any]:
    """By what parameters move per step as float32, of those that nothing rounds.

    What fills, bounds or is a scale for all its readers is a number in the source, and
    so is a single element that no parameter holds; as is what these are folded from.
    """
    with tempfile.TemporaryDirectory() as folder:
        graph = built(case.model, Path(folder))
    simple = simplify(graph)
    note_fills(simple)
    fills = simple.constants.fills
    printed = {*fills, *_printed(simple, parameters)}
    numbers = _sources(graph, {*printed, *(original(simple, n) for n in printed)})
    stored = {t.name: to_array(t) for t in case.model.graph.initializer}
    kept = {}
    for name, move in moves.items():
        weight = stored[name]
        if name in numbers or weight.dtype != np.float32:
            continue
        if not narrowed(graph, name, is_below_float32):
            left, right = (
                (weight + step * move).astype(weight.dtype).astype(np.float64)
                for step in (-MOVED, MOVED)
            )
            kept[name] = (right - left) / (2 * MOVED)
    return kept


def _printed(graph: Graph, parameters: Sequence[Any]) -> set[str]:
    """The constants of one element that are in the source, not in a parameter.

    Parameters are told by what they hold: of more constants than parameters that hold
    one number, any may be in the source.
    """
    numbers = Counter(x.item() for x in parameters if x.size == 1)
    names: dict[Any, set[str]] = {}
    for name in read_constants(graph):
        if graph.constants[name].size == 1:
            names.setdefault(graph.constants[name].item(), set()).add(name)
    return {
        name
        for number, alike in names.items()
        for name in alike
        if len({original(graph, each) for each in alike}) > numbers[number]
    }


def _sources(graph: Graph, names: Iterable[str]) -> set[str]:
    """``names``, and the values that those are computed from."""
    sources = set(names)
    for node in reversed(graph.nodes):
        if sources.intersection(node.outputs):
            sources.update(name for name in node.inputs if name is not None)
    return sources


def _moved_state(case: FuzzCase, moves: Mapping[str, Any], step: float) -> Any:
    with imported(moved_model(case, moves, step), DEFAULT) as module:
        return {k: v.numpy() for k, v in module.state_dict().items()}


def _is_other_module(before: Any, after: Any, grads: Mapping[str, Any]) -> bool:
    """Return whether shapes differ, or arrays that are no parameters."""
    return before.keys() != after.keys() or any(
        before[k].shape != after[k].shape
        or (k not in grads and not np.array_equal(before[k], after[k]))
        for k in before
    )


def _along(
    before: Any, states: Sequence[Any], grads: Any, noise: Mapping[str, float]
) -> Slope:
    """The sum of gradients along the parameters.

    ``states`` are those a step to the left and right, and half a step. The error is
    that of the parameters' derivatives: of truncation, a kink, and rounding to float32,
    and that of the gradients in float32: a tenth of ``noise``, which is ten times what
    was measured.
    """
    value = error = scale = 0.0
    for key, grad in grads.items():
        exact = before[key].astype(np.float64)
        a, b, c, d = (state[key].astype(np.float64) for state in states)
        if np.array_equal(a, b):
            continue
        slope, near = (b - a) / (2 * MOVED), (d - c) / MOVED
        jump = (4 * (d + c) - (b + a) - 6 * exact) / MOVED
        terms = grad.astype(np.float64) * slope
        value += float(terms.sum())
        scale += float(abs(terms).sum())
        smooth = float((grad * (slope - near)).sum()), float((grad * jump).sum())
        rounding = np.finfo(np.float32).eps * abs(exact) / MOVED
        error += 2 * sum(map(abs, smooth)) + float(abs(grad * rounding).sum())
        inexact = noise[key] / 10 + SMALLEST
        error += inexact * float(np.linalg.norm(slope.ravel()))
    return Slope(value, error, scale)

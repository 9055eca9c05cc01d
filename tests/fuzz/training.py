"""Gradients by the parameters of a generated module: eager, compiled, by differences.

The loss is a sum of all results with fixed weights. Gradients in float32 are compared
with those of a compiled function, and, summed along the direction in which all stored
weights are moved, with the differences of :mod:`tests.fuzz.slopes` in float64.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

import burn
from burn import Tensor
from burn.backend.autodiff import Autodiff
from burn.backend.cpu import Cpu
from burn_import.options import Options
from tests.conformance.run import given
from tests.fuzz.compare import difference
from tests.fuzz.generator import FuzzCase
from tests.fuzz.slopes import (
    Slope,
    directions,
    double_graph,
    double_inputs,
    loss_of,
    moved_model,
    slope_of,
)
from tests.fuzz.subject import imported
from tests.laws.models import mapped

#: The step by which weights are moved in float32, and the error allowed along them.
MOVED, ERROR = 1e-3, 1e-4
#: Relative noise on inputs and parameters that says how exact gradients can be.
NOISE = 1e-5
DEFAULT = Options(class_name="Net")
#: What ``nn.BatchNorm2d`` says of inputs without a variance.
ONE_ELEMENT = "expected more than one element a channel in training"


def check_training(case: FuzzCase) -> Iterator[tuple[str, str]]:
    """What is wrong with gradients by parameters: name of the check, difference."""
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
            yield from _along_weights(case, module, grads)


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
            names = list(boxes)
            place = int(text.split()[1].rstrip(":")) if text[:6] == "output" else 0
            yield "compiled gradients", f"{names[place]}: {text}"
            return


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
    module: Any, boxes: Mapping[str, Any], feeds: Sequence[Any], exact: Any
) -> list[float] | None:
    """How much noise changes each gradient; None where it is not smooth."""
    if exact is None:
        return None
    rng = np.random.default_rng(0)
    before = {path: box.value for path, box in boxes.items()}
    other = _noised(module, boxes, feeds, rng)
    for path, box in boxes.items():
        box.set(before[path])
    if other is None:
        return None
    largest = max((float(abs(g).max()) for g in exact if g.size), default=0.0)
    found = []
    for a, b in zip(other, exact, strict=True):
        slack = float(abs(a.astype(np.float64) - b).max()) if b.size else 0.0
        if not np.isfinite(slack) or slack > 1e-2 * max(largest, 1e-3):
            return None
        found.append(10 * slack + 1e-5 * largest)
    return found


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
    case: FuzzCase, module: Any, grads: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    expected, moves = _expected(case)
    if expected is None:
        return
    before = {k: v.numpy() for k, v in module.state_dict().items()}
    with imported(moved_model(case, moves, MOVED), DEFAULT) as other:
        after = {k: v.numpy() for k, v in other.state_dict().items()}
    if before.keys() != after.keys() or any(
        before[k].shape != after[k].shape
        or (k not in grads and not np.array_equal(before[k], after[k]))
        for k in before
    ):
        return  # what the weights hold decides on the module, or on its buffers
    terms = [
        grads[k].astype(np.float64) * (after[k].astype(np.float64) - before[k]) / MOVED
        for k in grads
    ]
    value = float(sum(term.sum() for term in terms))
    scale = float(sum(abs(term).sum() for term in terms))
    if expected.differs(value, scale, ERROR):
        text = f"expected {expected.value:.6g} along the weights, got {value:.6g}"
        yield "gradients by parameters", text


def _expected(case: FuzzCase) -> tuple[Slope | None, dict[str, Any]]:
    """The derivative along directions of the weights, which are as in float32."""
    graph = double_graph(case)
    moves = {} if graph.states else directions(case, graph)
    slope = slope_of(graph, double_inputs(case, graph), moves) if moves else None
    return slope, moves

"""Derivatives by stored weights after each pass, against differences in float64.

All weights are moved along one random direction. The derivative of the loss along it
follows from the gradients by all constants of a graph, since a pass derives its
constants from the weights: those of a second graph, whose weights were moved a little,
say how. The same number comes from differences of the loss of the graph without passes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from onnx import numpy_helper

from burn import Tensor, dtypes
from burn.backend.autodiff import Autodiff
from burn.backend.cpu import Cpu
from burn_import.passes import PASSES, simplify
from burn_import.transform.precision import KINDS, in_precision
from burn_ir import Graph, evaluate
from tests.conformance.run import built
from tests.fuzz.generator import FuzzCase
from tests.fuzz.gradients.derivative import Slope, derivative
from tests.fuzz.gradients.singular import says_nothing
from tests.fuzz.gradients.weights import (
    is_below_float64,
    narrowed,
    opened,
    read_constants,
)
from tests.laws.devices import leaves_of, tape_leaf
from tests.laws.models import mapped

#: The step by which the weights of the second graph are moved.
MOVED = 1e-6


def check_pass_slopes(case: FuzzCase) -> Iterator[tuple[str, str]]:
    """Derivatives by weights after each pass: name of the check, difference."""
    graphs = [double_graph(case) for _ in range(3)]
    inputs = double_inputs(case, graphs[0])
    moves = directions(case, graphs[0])
    if graphs[0].states or not moves:
        return
    expected = slope_of(graphs[0], inputs, moves)
    if expected is None:
        return
    for graph, step in zip(graphs[1:], (MOVED, -MOVED), strict=True):
        for name, move in moves.items():
            array = graph.constants[name]
            # Of a graph that nothing has read yet: passes derive their arrays from it.
            graph.constants._arrays[name] = array + step * move
    for names in [[], *([apply.__name__] for apply in PASSES), None]:
        text = _after(names, graphs, inputs, expected)
        if text is not None:
            yield f"slopes after {_title(names)}", text


def _after(
    names: list[str] | None,
    graphs: Sequence[Graph],
    inputs: Sequence[Any],
    expected: Slope,
) -> str | None:
    """Return the difference of the derivative after a pass, by moved weights.

    The difference to the right is enough unless what a pass computes is curved.
    """
    exact, right = (_simple(graph, names) for graph in graphs[:2])
    if names and exact is graphs[0]:
        return None
    got = 0.0
    for is_central in (False, True):
        left = _simple(graphs[2], names) if is_central else exact
        if not _structure(left) == _structure(exact) == _structure(right):
            return None  # the contents of a weight decide on what the pass does
        distance = 2 * MOVED if is_central else MOVED
        got, scale = _along(exact, left, right, distance, inputs)
        if not expected.differs(got, scale):
            return None
    if says_nothing(graphs[0], _tensors(inputs), got):
        return None
    return f"expected {expected.value:.8g} along the weights, got {got:.8g}"


def _simple(graph: Graph, names: list[str] | None) -> Graph:
    return graph if names == [] else simplify(graph, names)


def double_graph(case: FuzzCase) -> Graph:
    """The graph of a case in float64."""
    with tempfile.TemporaryDirectory() as folder:
        return in_precision(built(case.model, Path(folder)), "float64")


def double_inputs(case: FuzzCase, graph: Graph) -> list[Any]:
    """The first inputs of a case in float64; None for those that have a default."""
    inputs = [_double(x) for x in case.feeds[0].values()]
    return inputs + [None] * (len(graph.inputs) - len(inputs))


def _structure(graph: Graph) -> list[Any]:
    """The nodes with their values, and the shapes of the constants that they read."""
    nodes = [(type(node.op), node.inputs, node.outputs) for node in graph.nodes]
    names = sorted(read_constants(graph))
    return [*nodes, *((name, graph.constants[name].shape) for name in names)]


def _title(names: list[str] | None) -> str:
    return "all passes" if names is None else names[0] if names else "no pass"


def _double(x: Any) -> Any:
    if isinstance(x, list):
        return [_double(item) for item in x]
    return x.astype(np.float64) if getattr(x, "dtype", None) in KINDS else x


def directions(case: FuzzCase, graph: Graph) -> dict[str, Any]:
    """A random direction for each stored array of float64 that nothing rounds."""
    rng = np.random.default_rng(case.seed)
    stored = {tensor.name for tensor in case.model.graph.initializer}
    return {
        name: rng.standard_normal(array.shape) * (np.abs(array).mean() + 1e-3)
        for name in sorted(read_constants(graph))
        if name in stored
        and (array := graph.constants[name]).dtype == np.float64
        and np.isfinite(array).all()
        and len(set(array.ravel().tolist())) > 1  # ones and zeros are what norms want
        and not narrowed(graph, name, is_below_float64)
    }


def slope_of(
    graph: Graph, inputs: Sequence[Any], moves: Mapping[str, Any]
) -> Slope | None:
    """The derivative of the loss along ``moves``; None where it is not smooth."""
    names = sorted(moves)
    function = opened(graph, names)

    def at(step: float) -> float:
        weights = [graph.constants[n] + step * moves[n] for n in names]
        total = loss_of(evaluate(function, _tensors([*inputs, *weights])))
        return float(total.numpy()) if isinstance(total, Tensor) else 0.0

    try:
        with np.errstate(all="ignore"):
            return derivative(at)
    except (ArithmeticError, ValueError):
        return None


def _tensors(values: Sequence[Any]) -> list[Any]:
    home = Cpu()
    return [mapped(lambda x: Tensor(np.asarray(x), home), value) for value in values]


def loss_of(values: Any) -> Any:
    """A sum of all floating results with weights that are the same in every call."""
    total: Any = 0.0
    for number, value in enumerate(leaves_of(values)):
        if not dtypes.is_float(value.dtype):
            continue
        rng = np.random.default_rng(number)
        array = rng.standard_normal(value.shape)
        weights = Tensor(np.asarray(array), Cpu()).cast(value.dtype)
        total = total + (value * weights.to(value.backend)).sum()
    return total


def _along(
    graph: Graph, left: Graph, right: Graph, distance: float, inputs: Sequence[Any]
) -> tuple[float, float]:
    """The derivative along what the constants move by, and the size of its terms."""
    moves = {
        name: _moved(left.constants[name], right.constants[name]) / distance
        for name in read_constants(graph)
        if graph.constants[name].dtype == np.float64
    }
    names = [name for name, move in moves.items() if move.any()]
    tape = Autodiff(Cpu())
    weights = [
        tape_leaf(x, tape) for x in _tensors([graph.constants[n] for n in names])
    ]
    with np.errstate(all="ignore"):
        total = loss_of(evaluate(opened(graph, names), [*_tensors(inputs), *weights]))
        if not isinstance(total, Tensor) or total.node is None:
            return 0.0, 0.0
        grads = total.backward()
    terms = [
        grads[leaf].numpy() * moves[name]
        for name, leaf in zip(names, weights, strict=True)
        if leaf in grads
    ]
    value = sum(float(term.sum()) for term in terms)
    return value, sum(float(np.abs(term).sum()) for term in terms)


def _moved(before: Any, after: Any) -> Any:
    """The difference of two arrays; 0 where both are NaN or the same infinity."""
    is_same = (before == after) | (np.isnan(before) & np.isnan(after))
    with np.errstate(invalid="ignore"):
        return np.where(is_same, 0.0, after - before)


def moved_model(case: FuzzCase, moves: Mapping[str, Any], step: float) -> Any:
    """The model with its weights moved along ``moves``."""
    model = type(case.model)()
    model.CopyFrom(case.model)
    for tensor in model.graph.initializer:
        if tensor.name in moves:
            array = numpy_helper.to_array(tensor)
            moved = (array + step * moves[tensor.name]).astype(array.dtype)
            tensor.CopyFrom(numpy_helper.from_array(moved, tensor.name))
    return model

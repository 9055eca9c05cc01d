"""Derivatives by stored weights after each pass, against differences in float64.

All weights are moved along one random direction. The derivative of the loss along it
follows from the gradients by all constants of a graph, since a pass derives its
constants from the weights: those of a second graph, whose weights were moved a little,
say how. The same number comes from differences of the loss of the graph without passes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from onnx import numpy_helper

from burn import Tensor, dtypes
from burn.backend.autodiff import Autodiff
from burn.backend.cpu import Cpu
from burn_import.passes import PASSES, simplify
from burn_import.transform.precision import in_precision
from burn_ir import Graph, evaluate
from tests.conformance.run import built
from tests.fuzz.generator import FuzzCase
from tests.laws.devices import leaves_of, tape_leaf
from tests.laws.models import mapped

#: Relative steps of the differences; kinks between them show as two derivatives.
STEPS = (1e-5, 5e-6)
#: The step by which the weights of the second graph are moved.
MOVED = 1e-6
#: The largest relative difference of the two derivatives, and the error allowed.
KINK, ERROR = 1e-3, 1e-5


@dataclass(frozen=True)
class Slope:
    """A derivative along a direction, and the error of it; ``scale`` is its size."""

    value: float
    error: float
    scale: float

    def differs(self, other: float, scale: float = 0.0, error: float = ERROR) -> bool:
        """Whether ``other`` is not this derivative."""
        allowed = self.error + error * max(self.scale, scale)
        return not abs(self.value - other) <= allowed


def check_pass_slopes(case: FuzzCase) -> Iterator[tuple[str, str]]:
    """Derivatives by weights after each pass: name of the check, difference."""
    graphs = [double_graph(case), double_graph(case)]
    inputs = double_inputs(case, graphs[0])
    moves = directions(case, graphs[0])
    if graphs[0].states or not moves:
        return
    expected = slope_of(graphs[0], inputs, moves)
    if expected is None:
        return
    for name, move in moves.items():
        array = graphs[1].constants[name]
        # The array of a graph that nothing has read yet: passes derive theirs from it.
        graphs[1].constants._arrays[name] = array + MOVED * move
    for names in [[], *([apply.__name__] for apply in PASSES), None]:
        after = [simplify(g, names) if names != [] else g for g in graphs]
        if names and after[0] is graphs[0]:
            continue
        if _structure(after[0]) != _structure(after[1]):
            continue  # the contents of a weight decide on what the pass does
        got, scale = _along(after[0], after[1], inputs)
        if expected.differs(got, scale):
            text = f"expected {expected.value:.8g} along the weights, got {got:.8g}"
            yield f"slopes after {_title(names)}", text


def double_graph(case: FuzzCase) -> Graph:
    """The graph of a case in float64."""
    with tempfile.TemporaryDirectory() as folder:
        return in_precision(built(case.model, Path(folder)), "float64")


def double_inputs(case: FuzzCase, graph: Graph) -> list[Any]:
    """The first inputs of a case in float64; None for those that have a default."""
    inputs = [_double(x) for x in case.feeds[0].values()]
    return inputs + [None] * (len(graph.inputs) - len(inputs))


def _structure(graph: Graph) -> list[Any]:
    return [(type(node.op), node.inputs, node.outputs) for node in graph.nodes]


def _title(names: list[str] | None) -> str:
    return "all passes" if names is None else names[0] if names else "no pass"


def _double(x: Any) -> Any:
    if isinstance(x, list):
        return [_double(item) for item in x]
    return x.astype(np.float64) if getattr(x, "dtype", None) == np.float32 else x


def directions(case: FuzzCase, graph: Graph) -> dict[str, Any]:
    """A random direction for each stored floating array that no body reads."""
    rng = np.random.default_rng(case.seed)
    inner = {name for g in _bodies(graph) for node in g.nodes for name in node.inputs}
    stored = {tensor.name for tensor in case.model.graph.initializer}
    return {
        name: rng.standard_normal(array.shape) * (np.abs(array).mean() + 1e-3)
        for name in sorted(read_constants(graph))
        if name in stored - inner
        and (array := graph.constants[name]).dtype == np.float64
        and np.isfinite(array).all()
        and len(set(array.ravel().tolist())) > 1  # ones and zeros are what norms want
    }


def _bodies(graph: Graph) -> Iterator[Graph]:
    for node in graph.nodes:
        for body in node.op.bodies().values():
            yield body
            yield from _bodies(body)


def read_constants(graph: Graph) -> list[str]:
    """The names of the constants that the nodes of ``graph`` read, or that it returns.

    Graphs share their constants with those that passes derive from them, so a value
    that one graph computes may be stored for another one.
    """
    names = {name for node in graph.nodes for name in node.inputs if name is not None}
    computed = {name for node in graph.nodes for name in node.outputs}
    return sorted((names | set(graph.outputs)) & set(graph.constants) - computed)


def slope_of(
    graph: Graph, inputs: Sequence[Any], moves: Mapping[str, Any]
) -> Slope | None:
    """The derivative of the loss along ``moves``; None where it is not smooth."""
    names = sorted(moves)
    opened = replace(graph, inputs=(*graph.inputs, *names))

    def at(step: float) -> float:
        weights = [graph.constants[n] + step * moves[n] for n in names]
        total = loss_of(evaluate(opened, _tensors([*inputs, *weights])))
        return float(total.numpy()) if isinstance(total, Tensor) else 0.0

    try:
        far, near = ((at(h) - at(-h)) / (2 * h) for h in STEPS)
        base = at(0.0)
    except (ArithmeticError, ValueError):
        return None
    value, error = near + (near - far) / 3, abs(near - far)
    rounding = 1e-13 * abs(base) / STEPS[1]
    if not np.isfinite([value, error]).all() or error > KINK * abs(value) + rounding:
        return None
    return Slope(value, error + rounding, abs(value))


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


def _along(graph: Graph, moved: Graph, inputs: Sequence[Any]) -> tuple[float, float]:
    """The derivative along what the constants moved by, and the size of its terms."""
    names = [
        name
        for name in read_constants(graph)
        if graph.constants[name].dtype == np.float64
        and not np.array_equal(graph.constants[name], moved.constants[name])
    ]
    opened = replace(graph, inputs=(*graph.inputs, *names))
    tape = Autodiff(Cpu())
    weights = [
        tape_leaf(x, tape) for x in _tensors([graph.constants[n] for n in names])
    ]
    with np.errstate(all="ignore"):
        total = loss_of(evaluate(opened, [*_tensors(inputs), *weights]))
        if not isinstance(total, Tensor) or total.node is None:
            return 0.0, 0.0
        grads = total.backward()
    terms = [
        grads[leaf].numpy() * (moved.constants[name] - graph.constants[name]) / MOVED
        for name, leaf in zip(names, weights, strict=True)
        if leaf in grads
    ]
    value = sum(float(term.sum()) for term in terms)
    return value, sum(float(np.abs(term).sum()) for term in terms)


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

"""The check that examples of an opened batch do not depend on each other."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import burn
from burn.dtypes import is_float, string
from burn_import.transform.errors import WrongOptions
from burn_import.transform.opening import Opened
from burn_ir.dim import Dim, bind, symbols
from burn_ir.error_context import FAULTS
from burn_ir.errors import Problem
from burn_ir.evaluate import evaluate
from burn_ir.graph import Graph, Node
from burn_ir.types import Array, Type

#: Calls of the file, whose results are compared with those of one call of the batch.
CALLS = 2
#: The largest difference, relative to the largest number, for float32 and wider floats.
TOLERANCE = 1e-4
#: The size of other extents that have names, in the random inputs.
SIZE = 4


def check_examples(fixed: Graph, opened: Graph, axes: Opened) -> None:
    """Check on random inputs that ``opened`` computes what ``fixed`` does in each call.

    ``axes`` has the opened axes of the inputs.

    Raises:
        WrongOptions: a result differs, or has no axis for the batch.
    """
    (name,) = {name for by_axis in axes.values() for name in by_axis.values()}
    inputs = _random_inputs(fixed, axes)
    try:
        expected = [
            evaluate(fixed, [_part(n, a, axes, call) for n, a in inputs.items()])
            for call in range(CALLS)
        ]
    except FAULTS as error:
        message = f"expected a file that runs with random inputs, got: {error}"
        raise WrongOptions([Problem(message)]) from error
    actual = _results(opened, list(inputs.values()), name)
    problems = []
    for position, result in enumerate(opened.results):
        calls = [_array(values[position]) for values in expected]
        reason = _difference(opened.types.get(result), name, calls, actual[position])
        if reason:
            message = f"output {result!r}: expected examples that do not depend on "
            problems.append(Problem(f"{message}each other along {name!r}, {reason}"))
    if problems:
        raise WrongOptions(problems)


def _results(graph: Graph, arrays: Sequence[Array], name: str) -> list[Any]:
    """Return the results of the batch; an error names the node that fails."""
    done: list[Node] = []
    try:
        inputs = [burn.tensor(array) for array in arrays]
        return evaluate(graph, inputs, lambda node, _: done.append(node))
    except FAULTS as error:
        node = graph.nodes[len(done)]
        message = f"expected a node that works for any {name}, got: {error}"
        opset = graph.opsets.get(node.op.domain)
        raise WrongOptions(
            [Problem(message, node.name or node.output, node.op.onnx, opset)]
        ) from error


def _difference(
    value_type: Type | None, name: str, calls: Sequence[Array], actual: Any
) -> str:
    """Return how a result of the batch differs from the joined results of calls."""
    shape = () if value_type is None else value_type.shape or ()
    axes = [axis for axis, dim in enumerate(shape) if name in symbols(dim)]
    if not axes:
        same = all(np.array_equal(calls[0], call) for call in calls)
        same = same and np.array_equal(calls[0], _array(actual))
        return "" if same else "and it has no axis for them"
    if len({call.shape for call in calls}) > 1:
        shown = " and ".join(str(list(call.shape)) for call in calls)
        return f"and the shapes of two are {shown}"
    joined, array = np.concatenate(calls, axes[0]), _array(actual)
    if joined.shape != array.shape:
        return f"and {CALLS} of them have the shape {list(array.shape)}"
    if not is_float(joined.dtype):
        return "" if np.array_equal(joined, array) else "and they differ"
    joined, array = joined.astype(np.float64), array.astype(np.float64)
    scale = max(1.0, float(np.abs(joined[np.isfinite(joined)]).max(initial=0.0)))
    bound = TOLERANCE * scale
    if np.allclose(array, joined, rtol=0.0, atol=bound, equal_nan=True):
        return ""
    return f"and they differ by {np.nanmax(np.abs(array - joined)):.2g}"


def _array(value: Any) -> Array:
    return np.asarray(value.numpy())


def _random_inputs(graph: Graph, axes: Opened) -> dict[str, Array]:
    """Return inputs for ``CALLS`` examples: normal floats, and integers 0 or 1."""
    random = np.random.default_rng(0)
    arrays = {}
    for name in graph.arguments:
        value_type = graph.types[name]
        shape = [_size(dim) for dim in value_type.shape or ()]
        for axis in axes.get(name, {}):
            shape[axis] *= CALLS
        arrays[name] = _random(random, value_type, shape)
    return arrays


def _size(dim: Dim) -> int:
    return int(bind(dim, dict.fromkeys(symbols(dim), SIZE)))


def _random(random: np.random.Generator, value_type: Type, shape: list[int]) -> Array:
    if is_float(value_type.dtype):
        return random.standard_normal(shape).astype(value_type.dtype)
    if value_type.dtype == string:
        return np.full(shape, "text", object)
    return random.integers(0, 2, shape).astype(value_type.dtype)


def _part(name: str, array: Array, axes: Mapping[str, Any], call: int) -> Any:
    """Return the examples of one call of the file."""
    for axis in axes.get(name, {}):
        array = np.split(array, CALLS, axis)[call]
    return burn.tensor(array)

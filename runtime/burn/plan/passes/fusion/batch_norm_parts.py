"""Splitting of batch norms in training into sums and elementwise functions."""

from typing import Any

import numpy as np

from burn.dtypes import bfloat16, float16
from burn.ops.batch_norm_parts import (
    channel_gradients,
    channel_moments,
    normalize_channels,
    normalize_channels_grad,
)
from burn.ops.casting import cast
from burn.ops.norm import batch_norm_grad, batch_norm_train
from burn.ops.shape import reshape
from burn.plan.passes.graph import FLOAT32, Graph, step_rule
from burn.plan.plan_ir import Slot, Step

_HALVES = (np.dtype(float16), np.dtype(bfloat16))


@step_rule
def split_batch_norms(step: Step, graph: Graph) -> list[Step] | None:
    """Split a batch norm in float32, and its gradient, for fusion with neighbors.

    The parts read images before a cast from a half type, of half the bytes.
    """
    if set(step.dtypes) != {FLOAT32} or len(step.shapes[0]) < 2:
        return None
    if step.primitive is batch_norm_train:
        return _split_forward(step, graph)
    if step.primitive is batch_norm_grad:
        return _split_backward(step, graph)
    return None


def _split_forward(step: Step, graph: Graph) -> list[Step] | None:
    x, weight, bias = (*step.args, None, None)[:3]
    if not _are_float32((x, weight, bias), graph):
        return None
    x = _before_cast(x, graph)
    out, mean, var = step.outputs
    places = (mean, var, graph.fresh())
    sums = _sums(channel_moments, step, (x, weight), places)
    views, (mean, scale, bias) = _beside(
        (Slot(mean), Slot(places[2]), bias), step, graph
    )
    args = (x, mean, scale) if bias is None else (x, mean, scale, bias)
    return [sums, *views, _elementwise(normalize_channels, step, args, out)]


def _split_backward(step: Step, graph: Graph) -> list[Step] | None:
    grad, x, mean, var, weight = (*step.args, None)[:5]
    if not _are_float32((grad, x, mean, var, weight), graph):
        return None
    grad, x = _before_cast(grad, graph), _before_cast(x, graph)
    out, of_weight, of_bias = step.outputs
    places = (graph.fresh(), graph.fresh(), graph.fresh(), of_weight, of_bias)
    sums = _sums(channel_gradients, step, (grad, x, mean, var, weight), places)
    statistics = (mean, *map(Slot, places[:3]))
    views, beside = _beside(statistics, step, graph)
    args = (grad, x, *beside)
    return [sums, *views, _elementwise(normalize_channels_grad, step, args, out)]


def _are_float32(values: tuple[Any, ...], graph: Graph) -> bool:
    return all(v is None or graph.known(v)[1] == FLOAT32 for v in values)


def _before_cast(value: Any, graph: Graph) -> Any:
    """Return the tensor of a half type that ``value`` is the cast of, or ``value``."""
    maker = graph.maker.get(value.place) if type(value) is Slot else None
    if not isinstance(maker, Step) or maker.primitive is not cast:
        return value
    operand = maker.args[0]
    return operand if graph.known(operand)[1] in _HALVES else value


def _sums(
    primitive: Any, step: Step, args: tuple[Any, ...], places: tuple[int, ...]
) -> Step:
    """Return the step of the sums over the channels of the operand of ``step``."""
    count = len(places)
    shapes = ((step.shapes[0][1],),) * count
    while args[-1] is None:
        args = args[:-1]
    return Step(primitive, args, step.static, places, shapes, (FLOAT32,) * count)


def _beside(
    values: tuple[Any, ...], step: Step, graph: Graph
) -> tuple[list[Step], list[Any]]:
    """Return steps that reshape ``values`` [C] to [C, 1, ...], and their results."""
    shape = (step.shapes[0][1], *(1 for _ in step.shapes[0][2:]))
    views, results = list[Step](), list[Any]()
    for value in values:
        if value is None:
            results.append(None)
            continue
        views.append(graph.new_step(reshape, (value, shape), shape))
        results.append(Slot(views[-1].outputs[0]))
    return views, results


def _elementwise(primitive: Any, step: Step, args: Any, place: int) -> Step:
    return Step(primitive, args, {}, (place,), step.shapes[:1], (FLOAT32,))

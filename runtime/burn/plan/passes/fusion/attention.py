"""Fusion of matrix products and a softmax into one attention step."""

from dataclasses import replace
from math import inf
from typing import Any, NamedTuple

import numpy as np

from burn import dtypes
from burn.ops.attention import masked_softmax
from burn.ops.casting import cast
from burn.ops.elementwise import add, div, mul
from burn.ops.fused_attention import scaled_attention
from burn.ops.logic import where
from burn.ops.matmul import matmul
from burn.ops.shape import reshape, transpose
from burn.ops.softmax import softmax
from burn.plan.passes.graph import FLOAT32, Graph, Steps, swapped_axes
from burn.plan.plan_ir import Slot, Step
from burn.tensor import Tensor


class _Match(NamedTuple):
    """The steps of one attention, and its operands.

    ``last`` computes the result; ``steps`` are all matched steps, whose results have no
    other consumer.
    """

    last: Step
    steps: tuple[Step, ...]
    operands: tuple[Any, Any, Any]
    mask: Any
    static: dict[str, Any]


class _Scores(NamedTuple):
    """Scaled and masked scores ``query @ transposed``, and their steps.

    ``is_grouped`` is true if heads that share keys are rows of one product.
    """

    query: Any
    transposed: Any
    mask: Any
    scale: float
    steps: tuple[Step, ...]
    is_grouped: bool = False


def with_attention(steps: Steps, graph: Graph) -> Steps:
    """Replace product, softmax, product by :func:`scaled_attention`.

    Casts of half operands to float32 and back are included in the match.
    """
    matches: dict[int, _Match] = {}
    gone: set[int] = set()
    for step in steps:
        match = _matched(step, graph) if isinstance(step, Step) else None
        if match is not None:
            matches[id(match.last)] = match
            gone.update(map(id, match.steps))
    result: Steps = []
    for step in steps:
        match = matches.get(id(step))
        if match is not None:
            result += _attention(match, graph)
        elif id(step) not in gone:
            result.append(step)
    return result


def _matched(step: Step, graph: Graph) -> _Match | None:
    """Return the attention whose last product is ``step``, or None."""
    if step.primitive is not matmul or step.dtypes != (FLOAT32,):
        return None
    weights, regrouped = _weights(step, graph)
    if weights is None or not _is_softmax(weights):
        return None
    scores = _scores(graph.only_use(weights.args[0]), graph)
    if scores is None or scores.is_grouped is not bool(regrouped):
        return None
    operands = (scores.query, scores.transposed, step.args[1])
    last = regrouped[-1] if regrouped else step
    if not _have_fitting_heads(operands, last, graph, scores.is_grouped):
        return None
    sources = tuple(_half_source(value, graph) for value in operands)
    if graph.dtype in dtypes.HALVES:
        rounding = graph.only_user(last.outputs[0])
        if None in sources or rounding is None or not _is_rounding(rounding, graph):
            return None
        last, operands = rounding, sources
    elif graph.dtype != FLOAT32:
        return None
    mask, causal = _simplified(scores.mask)
    static = {
        "scale": scores.scale,
        "causal": causal,
        "empty_is_zero": weights.primitive is masked_softmax,
    }
    inside = (step, *regrouped, weights, *scores.steps)
    return _Match(last, inside, operands, mask, static)


def _weights(step: Step, graph: Graph) -> tuple[Step | None, tuple[Step, ...]]:
    """Return the step that computes the weights of a product, and the reshapes around
    it.

    Reshapes of the weights and of the result occur where heads that share keys are rows
    of one product.
    """
    weights = graph.only_use(step.args[0])
    if weights is None or weights.primitive is not reshape:
        return weights, ()
    result = graph.only_user(step.outputs[0])
    if result is None or result.primitive is not reshape:
        return None, ()
    return graph.only_use(weights.args[0]), (weights, result)


def _is_softmax(step: Step) -> bool:
    if step.dtypes != (FLOAT32,):
        return False
    if step.primitive is masked_softmax:
        return True
    rank = len(step.shapes[0])
    return step.primitive is softmax and step.static.get("axis", -1) in (-1, rank - 1)


def _scores(step: Step | None, graph: Graph) -> _Scores | None:
    """Return the scores that ``step`` computes, or None."""
    if step is None or step.dtypes != (FLOAT32,):
        return None
    if step.primitive is matmul:
        query, transposed = step.args
        return _Scores(query, transposed, None, 1.0, (step,))
    if step.primitive is reshape:
        return _grouped(step, graph)
    if step.primitive is where and len(step.args) == 3:
        mask, value, hidden = step.args
        inner = _scores(graph.only_use(value), graph)
        if inner is None or inner.mask is not None or not _is_number(hidden, -inf):
            return None
        if inner.steps[-1].shapes != step.shapes or graph.known(mask)[1] != np.bool_:
            return None
        return inner._replace(mask=mask, steps=(step, *inner.steps))
    if step.primitive in (mul, div) and len(step.args) == 2:
        return _scaled(step, graph)
    return _with_addend(step, graph) if step.primitive is add else None


def _grouped(step: Step, graph: Graph) -> _Scores | None:
    """Return the scores of a product in which heads that share keys are rows, or
    None.
    """
    product = graph.only_use(step.args[0])
    if product is None or product.primitive is not matmul:
        return None
    joined = graph.only_use(product.args[0])
    if joined is None or joined.primitive is not reshape:
        return None
    steps = (joined, product, step)  # whose shape is that of scores
    return _Scores(joined.args[0], product.args[1], None, 1.0, steps, True)


def _scaled(step: Step, graph: Graph) -> _Scores | None:
    value, number = step.args
    if step.primitive is mul and type(value) in (int, float):
        value, number = number, value
    inner = _scores(graph.only_use(value), graph)
    if inner is None or inner.mask is not None or type(number) not in (int, float):
        return None
    if step.primitive is div and not number:
        return None
    scale = inner.scale / number if step.primitive is div else inner.scale * number
    return inner._replace(scale=scale, steps=(step, *inner.steps))


def _with_addend(step: Step, graph: Graph) -> _Scores | None:
    """Return the scores with an added mask, or None."""
    for value, mask in (step.args, step.args[::-1]):
        inner = _scores(graph.only_use(value), graph)
        shape, dtype = graph.known(mask)
        if inner is None or inner.mask is not None or dtype != FLOAT32:
            continue
        if shape is not None and inner.steps[-1].shapes == step.shapes:
            return inner._replace(mask=mask, steps=(step, *inner.steps))
    return None


def _have_fitting_heads(
    operands: Any, step: Step, graph: Graph, is_grouped: bool
) -> bool:
    """Return whether all operands are [batch, heads, ...] with equal leading extents.

    If ``is_grouped``, keys and values have fewer heads.
    """
    query, *others = [graph.known(value)[0] for value in operands]
    outer = step.shapes[0][:-2]
    if len(outer) != 2 or query is None or query[:-2] != outer:
        return False
    if not is_grouped:
        return all(s is not None and s[:-2] == outer for s in others)
    if step.shapes[0][-2] != query[-2]:
        return False
    first, second = others
    if first is None or second is None or first[:-2] != second[:-2]:
        return False
    return len(first) == 4 and first[0] == outer[0] and outer[1] % first[1] == 0


def _half_source(value: Any, graph: Graph) -> Any:
    """Return the half operand that was cast to float32, or None for another dtype.

    The last two axes may be transposed in between; those of the returned value are
    swapped accordingly.
    """
    maker = graph.maker.get(value.place) if type(value) is Slot else None
    if not isinstance(maker, Step):
        return None
    if maker.primitive is cast and graph.known(maker.args[0])[1] == graph.dtype:
        return maker.args[0]
    if maker.primitive is transpose and _swaps_last(maker):
        inner = _half_source(maker.args[0], graph)
        return None if inner is None else _Transposed(inner)
    return None


class _Transposed(NamedTuple):
    """A value with its last two axes swapped."""

    value: Any


def _swaps_last(step: Step) -> bool:
    rank = len(step.shapes[0])
    return rank > 1 and set(swapped_axes(step)) == {rank - 2, rank - 1}


def _is_rounding(step: Step, graph: Graph) -> bool:
    return step.primitive is cast and step.dtypes == (graph.dtype,)


def _is_number(value: Any, number: float) -> bool:
    if type(value) is Tensor and value.shape == ():
        value = value.item()
    return type(value) in (int, float) and value == number


def _simplified(mask: Any) -> tuple[Any, bool]:
    """Return ``mask``, or None if it masks nothing, and whether it is causal."""
    if type(mask) is not Tensor or mask.dtype != np.bool_:
        return mask, False
    seen = mask.numpy()
    if seen.all():
        return None, False
    is_square = seen.ndim > 1 and seen.shape[-1] == seen.shape[-2]
    if is_square and (seen == np.tri(seen.shape[-1], dtype=bool)).all():
        return None, True
    return mask, False


def _attention(match: _Match, graph: Graph) -> list[Step]:
    """Return the attention step of a match, after a view of transposed keys if
    needed.
    """
    query, transposed, value = match.operands
    views: list[Step] = []

    def swapped(operand: Any) -> Any:
        shape = graph.known(operand)[0] or ()
        turned = (*shape[:-2], shape[-1], shape[-2])
        views.append(graph.made(transpose, (operand, -2, -1), turned))
        return Slot(views[-1].outputs[0])

    def plain(operand: Any) -> Any:
        return swapped(operand.value) if type(operand) is _Transposed else operand

    if type(transposed) is _Transposed:
        key = transposed.value
    else:
        maker = graph.maker.get(transposed.place) if type(transposed) is Slot else None
        is_view = isinstance(maker, Step) and maker.primitive is transpose
        if is_view and isinstance(maker, Step) and _swaps_last(maker):
            key = maker.args[0]
        else:
            key = swapped(transposed)
    args = (plain(query), key, plain(value), match.mask)
    step = replace(
        match.last, primitive=scaled_attention, args=args, static=match.static
    )
    return [*views, step]

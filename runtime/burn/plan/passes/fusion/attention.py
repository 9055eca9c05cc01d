"""Fusion of matrix products and a softmax into one attention step."""

from collections.abc import Callable
from math import inf
from typing import Any, NamedTuple, TypeAlias

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
from burn.structs import replace
from burn.tensor import Tensor

Shape: TypeAlias = tuple[int, ...]


class _Match(NamedTuple):
    """The steps of one attention, and its operands.

    ``last`` computes the result; ``steps`` are all matched steps, whose results have no
    other consumer.
    """

    last: Step
    steps: tuple[Step, ...]
    operands: tuple[Any, Any, Any]
    masks: tuple[Any, ...]
    static: dict[str, Any]


class _Scores(NamedTuple):
    """Scaled and masked scores ``query @ transposed``, and their steps.

    ``masks`` are one bool, or any number of addends. ``is_grouped`` tells that heads
    which share keys were rows of one product.
    """

    query: Any
    transposed: Any
    masks: tuple[Any, ...]
    scale: float
    steps: tuple[Step, ...]
    is_grouped: bool = False


class Limits(NamedTuple):
    """The attention that a device fuses, and what its kernel takes.

    ``accepts`` tells that by the shapes of query, key, value and mask. Unless
    ``has_bools``, a mask of bools is replaced by one that is added.
    """

    accepts: Callable[[Shape, Shape, Shape, Shape | None], bool]
    has_bools: bool = True


def fuse_attention(steps: Steps, graph: Graph, limits: Limits | None = None) -> Steps:
    """Replace product, softmax, product by :func:`scaled_attention`.

    Casts of half operands to float32 and back are part of it. Scores in half precision
    are those of float32 then. ``limits`` are those of a device that fuses only some.
    """
    matches: dict[int, _Match] = {}
    gone: set[int] = set()
    for step in steps:
        match = _match_attention(step, graph) if isinstance(step, Step) else None
        if match is not None and (limits is None or _is_accepted(match, limits, graph)):
            matches[id(match.last)] = match
            gone.update(map(id, match.steps))
    result: Steps = []
    for step in steps:
        match = matches.get(id(step))
        if match is not None:
            result += _attention(match, graph, limits is None or limits.has_bools)
        elif id(step) not in gone:
            result.append(step)
    return result


def _is_accepted(match: _Match, limits: Limits, graph: Graph) -> bool:
    """Return whether a device fuses a match; masks have the shape of their sum."""
    shapes = []
    for operand in match.operands:
        swapped = type(operand) is _Transposed
        shape = graph.known(operand.value if swapped else operand)[0] or ()
        shapes.append((*shape[:-2], shape[-1], shape[-2]) if swapped else shape)
    query, transposed, value = shapes
    key = (*transposed[:-2], transposed[-1], transposed[-2])
    masks = [graph.known(mask)[0] or () for mask in match.masks]
    mask = np.broadcast_shapes(*masks) if masks else None
    return limits.accepts(query, key, value, mask)


def _match_attention(step: Step, graph: Graph) -> _Match | None:
    """Return the attention whose last product is ``step``, or None."""
    (dtype,) = step.dtypes[:1]
    if step.primitive is not matmul or dtype not in (FLOAT32, graph.dtype):
        return None
    weights, regrouped = _find_softmax(step, graph)
    if weights is None or weights.dtypes != (dtype,) or not _is_softmax(weights):
        return None
    scores = _scores(graph.only_use(weights.args[0]), graph, dtype)
    if scores is None or scores.is_grouped is not bool(regrouped):
        return None
    operands = (scores.query, scores.transposed, step.args[1])
    last = regrouped[-1] if regrouped else step
    if not _have_fitting_heads(operands, last, graph, scores.is_grouped):
        return None
    sources = tuple(_half_source(value, graph) for value in operands)
    if dtype != graph.dtype and graph.dtype in dtypes.HALVES:
        rounding = graph.only_user(last.outputs[0])
        if None in sources or rounding is None or not _is_rounding(rounding, graph):
            return None
        last, operands = rounding, sources
    elif dtype != graph.dtype:
        return None
    masks, causal = _simplify_masks(scores.masks)
    static = {
        "scale": scores.scale,
        "causal": causal,
        "empty_is_zero": weights.primitive is masked_softmax,
    }
    inside = (step, *regrouped, weights, *scores.steps)
    return _Match(last, inside, operands, masks, static)


def _find_softmax(step: Step, graph: Graph) -> tuple[Step | None, tuple[Step, ...]]:
    """Return the step that computes a product's weights, and the reshapes around it.

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
    if step.primitive is masked_softmax:
        return True
    rank = len(step.shapes[0])
    return step.primitive is softmax and step.static.get("axis", -1) in (-1, rank - 1)


def _scores(step: Step | None, graph: Graph, dtype: Any) -> _Scores | None:
    """Return the scores that ``step`` computes from a product of ``dtype``, or None."""
    if step is None or step.dtypes != (dtype,):
        return None
    if step.primitive is matmul:
        query, transposed = step.args
        product = _Scores(query, transposed, (), 1.0, (step,))
        return _with_scaled_query(product, graph, dtype)
    if step.primitive is reshape:
        return _grouped_scores(step, graph)
    if step.primitive is where and len(step.args) == 3:
        mask, value, hidden = step.args
        inner = _scores(graph.only_use(value), graph, dtype)
        if inner is None or inner.masks or not _is_number(hidden, -inf):
            return None
        if inner.steps[-1].shapes != step.shapes or graph.known(mask)[1] != np.bool_:
            return None
        return inner._replace(masks=(mask,), steps=(step, *inner.steps))
    if step.primitive in (mul, div) and len(step.args) == 2:
        return _scaled_scores(step, graph)
    return _with_addend(step, graph) if step.primitive is add else None


def _with_scaled_query(scores: _Scores, graph: Graph, dtype: Any) -> _Scores:
    """Return ``scores`` with a factor of the query as their scale."""
    step = graph.only_use(scores.query)
    if step is None or step.dtypes != (dtype,) or len(step.args) != 2:
        return scores
    factor = _factor(step)
    if factor is None or graph.known(factor[0])[1] != dtype:
        return scores
    steps = (step, *scores.steps)  # the product stays last: its shape is the scores'
    return scores._replace(query=factor[0], scale=factor[1], steps=steps)


def _factor(step: Step) -> tuple[Any, float] | None:
    """Return the operand that ``step`` multiplies by a number, and the number."""
    if step.primitive not in (mul, div) or len(step.args) != 2:
        return None
    value, number = step.args
    if step.primitive is mul and type(value) in (int, float):
        value, number = number, value
    if type(number) not in (int, float) or (step.primitive is div and not number):
        return None
    return value, 1 / number if step.primitive is div else number


def _grouped_scores(step: Step, graph: Graph) -> _Scores | None:
    """Return the scores of a product whose rows are heads with shared keys, or None."""
    product = graph.only_use(step.args[0])
    if product is None or product.primitive is not matmul:
        return None
    joined = graph.only_use(product.args[0])
    if joined is None or joined.primitive is not reshape:
        return None
    steps = (joined, product, step)  # whose shape is that of scores
    return _Scores(joined.args[0], product.args[1], (), 1.0, steps, True)


def _scaled_scores(step: Step, graph: Graph) -> _Scores | None:
    factor = _factor(step)
    if factor is None:
        return None
    inner = _scores(graph.only_use(factor[0]), graph, step.dtypes[0])
    if inner is None or inner.masks:
        return None
    scale = inner.scale * factor[1]
    return inner._replace(scale=scale, steps=(step, *inner.steps))


def _with_addend(step: Step, graph: Graph) -> _Scores | None:
    """Return scores with one more additive mask."""
    for value, mask in (step.args, step.args[::-1]):
        inner = _scores(graph.only_use(value), graph, step.dtypes[0])
        shape, dtype = graph.known(mask)
        if inner is None or dtype != step.dtypes[0] or shape is None:
            continue
        if any(graph.known(other)[1] != dtype for other in inner.masks):
            continue
        if inner.steps[-1].shapes == step.shapes:
            masks = (*inner.masks, mask)
            return inner._replace(masks=masks, steps=(step, *inner.steps))
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


def _simplify_masks(masks: tuple[Any, ...]) -> tuple[tuple[Any, ...], bool]:
    """Return the masks that hide keys, and whether attention is causal instead."""
    if len(masks) != 1 or type(masks[0]) is not Tensor or masks[0].dtype != np.bool_:
        return masks, False
    seen = masks[0].numpy()
    if seen.all():
        return (), False
    is_square = seen.ndim > 1 and seen.shape[-1] == seen.shape[-2]
    if is_square and (seen == np.tri(seen.shape[-1], dtype=bool)).all():
        return (), True
    return masks, False


def _sum_masks(masks: tuple[Any, ...], graph: Graph) -> tuple[Any, list[Step]]:
    """Return the sum of the masks, None without any, and the steps to compute it."""
    if not masks:
        return None, []
    total, *others = masks
    steps: list[Step] = []
    for mask in others:
        shapes = [graph.known(value)[0] or () for value in (total, mask)]
        step = graph.new_step(add, (total, mask), np.broadcast_shapes(*shapes))
        steps.append(replace(step, dtypes=(graph.known(mask)[1],)))
        total = Slot(step.outputs[0])
        graph.maker[total.place] = steps[-1]
    return total, steps


def _added_mask(mask: Any, graph: Graph) -> tuple[Any, list[Step]]:
    """Return a mask to add instead of one of bools, and the step that computes it."""
    shape, dtype = graph.known(mask)
    if dtype != np.bool_ or shape is None:
        return mask, []
    step = graph.new_step(where, (mask, 0.0, -inf), shape)
    graph.maker[step.outputs[0]] = step
    return Slot(step.outputs[0]), [step]


def _attention(match: _Match, graph: Graph, has_bools: bool) -> list[Step]:
    """Return the attention step of a match, after a view of transposed keys if any."""
    query, transposed, value = match.operands
    views: list[Step] = []

    def swapped(operand: Any) -> Any:
        shape = graph.known(operand)[0] or ()
        turned = (*shape[:-2], shape[-1], shape[-2])
        views.append(graph.new_step(transpose, (operand, -2, -1), turned))
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
    mask, sums = _sum_masks(match.masks, graph)
    if not has_bools:
        mask, added = _added_mask(mask, graph)
        sums += added
    args = (plain(query), key, plain(value), mask)
    step = replace(
        match.last, primitive=scaled_attention, args=args, static=match.static
    )
    return [*views, *sums, step]

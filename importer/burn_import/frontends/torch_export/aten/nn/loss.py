"""Loss functions and their reductions."""

import math
from typing import Any

from burn.dtypes import name_of
from burn_import.frontends.torch_export.aten.linalg.vector_norms import (
    pairwise_distance,
)
from burn_import.frontends.torch_export.builder import BOOL, INT64, Builder, Value
from burn_import.frontends.torch_export.registry import rule
from burn_ir import InvalidModel, UnsupportedModel

#: Reductions of losses, by ATen's number.
REDUCTIONS = ("none", "mean", "sum")
MEAN = 1


def reduce(g: Builder, x: Value, reduction: int) -> Value:
    """Return the elementwise losses, their mean or their sum."""
    if reduction == 0:
        return x
    return g.op("ReduceMean" if reduction == MEAN else "ReduceSum", x, keepdims=0)


def error(g: Builder, self: Value, target: Value) -> Value:
    """Return the distance of elements from their targets."""
    return g.op("Sub", *g.floats(self, target))


@rule("aten.mse_loss.default")
def mse_loss(g: Builder, self: Value, target: Value, reduction: int = MEAN) -> Value:
    difference = error(g, self, target)
    return reduce(g, g.op("Mul", difference, difference), reduction)


@rule("aten.l1_loss.default")
def l1_loss(g: Builder, self: Value, target: Value, reduction: int = MEAN) -> Value:
    return reduce(g, g.op("Abs", error(g, self, target)), reduction)


@rule("aten.huber_loss.default")
def huber_loss(
    g: Builder, self: Value, target: Value, reduction: int = MEAN, delta: float = 1.0
) -> Value:
    size = g.op("Abs", error(g, self, target))
    near = g.op("Mul", g.op("Mul", size, size), 0.5)
    far = g.op("Mul", g.op("Sub", size, 0.5 * delta), float(delta))
    is_near = g.at(BOOL).op("Less", size, float(delta))
    return reduce(g, g.op("Where", is_near, near, far), reduction)


@rule("aten.smooth_l1_loss.default")
def smooth_l1_loss(
    g: Builder, self: Value, target: Value, reduction: int = MEAN, beta: float = 1.0
) -> Value:
    if beta == 0:
        return l1_loss(g, self, target, reduction)
    return _over(g, huber_loss(g, self, target, reduction, beta), float(beta))


def _over(g: Builder, x: Value, number: float) -> Value:
    return x if number == 1 else g.op("Div", x, number)


@rule("aten.binary_cross_entropy.default")
def binary_cross_entropy(
    g: Builder,
    self: Value,
    target: Value,
    weight: Value | None = None,
    reduction: int = MEAN,
) -> Value:
    """Return the loss with logarithms clamped to -100."""
    hit = _bounded_log(g, self)
    miss = _bounded_log(g, g.op("Sub", g.cast(1), self))
    sure = g.op("Mul", target, hit)
    rest = g.op("Mul", g.op("Sub", g.cast(1), target), miss)
    losses = g.op("Neg", g.op("Add", sure, rest))
    return reduce(
        g, losses if weight is None else g.op("Mul", losses, weight), reduction
    )


def _bounded_log(g: Builder, x: Value) -> Value:
    """Return the logarithm clamped to -100; constant at 0 to avoid a NaN gradient."""
    zero = g.at(BOOL).op("Equal", x, 0)
    level = g.op("Max", g.op("Log", g.op("Where", zero, g.cast(1), x)), -100)
    return g.op("Where", zero, g.cast(-100), level)


@rule("aten.binary_cross_entropy_with_logits.default")
def binary_cross_entropy_with_logits(
    g: Builder,
    self: Value,
    target: Value,
    weight: Value | None = None,
    pos_weight: Value | None = None,
    reduction: int = MEAN,
) -> Value:
    wrong = g.op("Mul", g.op("Sub", g.cast(1), target), self)
    likely = g.op("Softplus", g.op("Neg", self))
    if pos_weight is not None:
        more = g.op("Mul", g.op("Sub", pos_weight, 1), target)
        likely = g.op("Mul", g.op("Add", more, 1), likely)
    losses = g.op("Add", wrong, likely)
    return reduce(
        g, losses if weight is None else g.op("Mul", losses, weight), reduction
    )


@rule("aten.kl_div.default")
def kl_div(
    g: Builder,
    self: Value,
    target: Value,
    reduction: int = MEAN,
    log_target: bool = False,
) -> Value:
    if log_target:
        losses = g.op("Mul", g.op("Exp", target), g.op("Sub", target, self))
        return reduce(g, losses, reduction)
    product = g.op("Mul", target, g.op("Log", target))
    surprise = g.op("Where", g.at(BOOL).op("Equal", target, 0), g.cast(0), product)
    losses = g.op("Sub", surprise, g.op("Mul", target, self))
    return reduce(g, losses, reduction)


@rule("aten.soft_margin_loss.default")
def soft_margin_loss(
    g: Builder, self: Value, target: Value, reduction: int = MEAN
) -> Value:
    product = g.op("Neg", g.op("Mul", *g.floats(target, self)))
    return reduce(g, g.op("Softplus", product), reduction)


@rule("aten.poisson_nll_loss.default")
def poisson_nll_loss(
    g: Builder,
    input: Value,
    target: Value,
    log_input: bool,
    full: bool,
    eps: float,
    reduction: int,
) -> Value:
    if log_input:
        losses = g.op("Sub", g.op("Exp", input), g.op("Mul", target, input))
    else:
        likely = g.op("Log", g.op("Add", input, float(eps)))
        losses = g.op("Sub", input, g.op("Mul", target, likely))
    if full:
        losses = g.op("Add", losses, _stirling(g, target))
    return reduce(g, losses, reduction)


def _stirling(g: Builder, x: Value) -> Value:
    """Return Stirling's approximation of log(x!); 0 up to 1."""
    small = g.at(BOOL).op("LessOrEqual", x, 1)
    safe = g.op("Where", small, g.cast(1), x)
    root = g.op("Mul", g.op("Log", g.op("Mul", safe, 2 * math.pi)), 0.5)
    level = g.op("Sub", g.op("Mul", safe, g.op("Log", safe)), safe)
    return g.op("Where", small, g.cast(0), g.op("Add", level, root))


@rule("aten.hinge_embedding_loss.default")
def hinge_embedding_loss(
    g: Builder, self: Value, target: Value, margin: float = 1.0, reduction: int = MEAN
) -> Value:
    difference = g.op("Relu", g.op("Sub", g.cast(margin), self))
    zero = g.cast(0)
    other = g.op("Where", _is(g, target, 1), zero, difference)
    same = g.op("Where", _is(g, target, -1), zero, self)
    return reduce(g, g.op("Add", other, same), reduction)


def _is(g: Builder, x: Value, number: int) -> Value:
    return g.at(BOOL).op("Equal", x, number)


@rule("aten.margin_ranking_loss.default")
def margin_ranking_loss(
    g: Builder,
    input1: Value,
    input2: Value,
    target: Value,
    margin: float = 0.0,
    reduction: int = MEAN,
) -> Value:
    first, second, sign = g.floats(input1, input2, target)
    product = g.op("Mul", g.op("Neg", sign), g.op("Sub", first, second))
    more = product if margin == 0 else g.op("Add", product, float(margin))
    return reduce(g, g.op("Relu", more), reduction)


def _row_cosine(g: Builder, x: Value, y: Value) -> Value:
    """Return the cosine of rows, with 1e-12 added to their squares."""

    def product(a: Value, b: Value) -> Value:
        return g.op("ReduceSum", g.op("Mul", a, b), [-1], keepdims=0)

    squares = [g.op("Add", product(v, v), 1e-12) for v in (x, y)]
    return g.op("Div", product(x, y), g.op("Sqrt", g.op("Mul", *squares)))


@rule("aten.cosine_embedding_loss.default")
def cosine_embedding_loss(
    g: Builder,
    input1: Value,
    input2: Value,
    target: Value,
    margin: float = 0.0,
    reduction: int = MEAN,
) -> Value:
    likeness = _row_cosine(g, input1, input2)
    zero = g.cast(0)
    same = g.op("Where", _is(g, target, 1), g.op("Sub", g.cast(1), likeness), zero)
    near = g.op("Relu", g.op("Sub", likeness, float(margin)))
    other = g.op("Where", _is(g, target, -1), near, zero)
    return reduce(g, g.op("Add", same, other), reduction)


@rule("aten.triplet_margin_loss.default")
def triplet_margin_loss(
    g: Builder,
    anchor: Value,
    positive: Value,
    negative: Value,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-06,
    swap: bool = False,
    reduction: int = MEAN,
) -> Value:
    near = pairwise_distance(g, anchor, positive, p, eps)
    far = pairwise_distance(g, anchor, negative, p, eps)
    if swap:
        far = g.op("Min", far, pairwise_distance(g, positive, negative, p, eps))
    losses = g.op("Relu", g.op("Add", g.op("Sub", near, far), float(margin)))
    return reduce(g, losses, reduction)


def by_class(
    g: Builder,
    op_type: str,
    x: Value,
    target: Value,
    weight: Value | None,
    reduction: int,
    ignore_index: int,
) -> Value:
    """Return the loss of classes; a single sample counts as a batch of one."""
    options: dict[str, Any] = {
        "reduction": REDUCTIONS[reduction],
        "ignore_index": ignore_index,
    }
    if x.rank > 1:
        return g.op(op_type, x, target, weight, **options)
    batch = g.op("Unsqueeze", x, [0]), g.at(INT64).op("Unsqueeze", target, [0])
    result = g.op(op_type, *batch, weight, **options)
    return g.op("Squeeze", result, [0]) if reduction == 0 else result


@rule("aten.nll_loss_nd.default", "aten.nll_loss.default", "aten.nll_loss2d.default")
def nll_loss(
    g: Builder,
    self: Value,
    target: Value,
    weight: Value | None = None,
    reduction: int = MEAN,
    ignore_index: int = -100,
) -> Value:
    rest = (weight, reduction, ignore_index)
    return by_class(g, "NegativeLogLikelihoodLoss", self, target, *rest)


@rule("aten.nll_loss_forward.default", "aten.nll_loss2d_forward.default")
def nll_loss_forward(
    g: Builder,
    self: Value,
    target: Value,
    weight: Value | None,
    reduction: int,
    ignore_index: int,
) -> tuple[Value, Value]:
    loss = nll_loss(g, self, target, weight, reduction, ignore_index)
    if reduction == 0:
        return loss, g.cast(0.0)
    counted = g.at(BOOL).op("Not", g.at(BOOL).op("Equal", target, ignore_index))
    each = g.cast(counted)
    if weight is not None:
        labels = g.at(INT64).op("Where", counted, target, g.constant(0))
        each = g.op("Mul", each, g.op("Gather", weight, labels))
    return loss, g.op("ReduceSum", each, keepdims=0)


@rule("aten.cross_entropy_loss.default")
def cross_entropy_loss(
    g: Builder,
    self: Value,
    target: Value,
    weight: Value | None = None,
    reduction: int = MEAN,
    ignore_index: int | Value = -100,
    label_smoothing: float = 0.0,
) -> Value:
    if isinstance(ignore_index, Value):
        raise UnsupportedModel("expected a known index to ignore")
    if target.dtype.kind not in "iu":
        if target.rank != self.rank:
            name = name_of(target.dtype)
            raise InvalidModel(f"expected classes of int64, got {name}")
        return _loss_of_probabilities(
            g, self, target, weight, reduction, label_smoothing
        )
    rest = (weight, reduction, ignore_index)
    loss = by_class(g, "SoftmaxCrossEntropyLoss", self, target, *rest)
    if label_smoothing == 0:
        return loss
    return _smooth_labels(g, loss, self, target, *rest, label_smoothing)


def _smooth_labels(
    g: Builder,
    loss: Value,
    x: Value,
    target: Value,
    weight: Value | None,
    reduction: int,
    ignore_index: int,
    smoothing: float,
) -> Value:
    """Return the loss with label smoothing for class indices."""
    axis = 1 if x.rank > 1 else 0
    every = g.op("Neg", g.op("LogSoftmax", x, axis=axis))
    counted = g.at(BOOL).op("Not", g.at(BOOL).op("Equal", target, ignore_index))
    share = g.cast(counted)
    if weight is not None:
        after = [*range(1, x.rank - axis)]
        rows = g.op("Unsqueeze", weight, after) if after else weight
        every = g.op("Mul", every, rows)
        of = g.at(target.dtype)
        labels = of.op("Where", counted, target, of.cast(0))
        share = g.op("Mul", share, g.op("Gather", weight, labels))
    each = g.op("ReduceMean", every, [axis], keepdims=0)
    total = g.op("Where", counted, each, g.cast(0))
    if reduction != 0:
        total = g.op("ReduceSum", total, keepdims=0)
    if reduction == MEAN:
        total = g.op("Div", total, g.op("ReduceSum", share, keepdims=0))
    first = g.op("Mul", loss, 1 - float(smoothing))
    return g.op("Add", first, g.op("Mul", total, float(smoothing)))


def _loss_of_probabilities(
    g: Builder,
    x: Value,
    target: Value,
    weight: Value | None,
    reduction: int,
    smoothing: float,
) -> Value:
    """Return the loss for class probabilities as target."""
    axis = 1 if x.rank > 1 else 0
    share: Value = target
    if smoothing:
        even = float(smoothing) / int(str((x.dims or (1,))[axis]))
        share = g.op("Add", g.op("Mul", target, 1 - float(smoothing)), even)
    likely = g.op("LogSoftmax", x, axis=axis)
    if weight is not None:
        column = list(range(1, x.rank - axis))
        factor = g.op("Unsqueeze", weight, column) if column else weight
        likely = g.op("Mul", likely, factor)
    losses = g.op("ReduceSum", g.op("Mul", share, likely), [axis], keepdims=0)
    return reduce(g, g.op("Neg", losses), reduction)

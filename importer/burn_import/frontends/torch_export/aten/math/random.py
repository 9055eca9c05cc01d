"""Random tensors; each call draws new numbers."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from burn_import.frontends.torch_export.aten.math.creation import filled_tensor
from burn_import.frontends.torch_export.builder import (
    FLOAT32,
    INT64,
    Builder,
    Operand,
    Value,
)
from burn_import.frontends.torch_export.registry import Rule, rule
from burn_ir import UnsupportedModel
from burn_ir.ops.support import ELEMENT_NUMBERS

Sizes = Sequence[int | Value]


def random_tensor(g: Builder, op_type: str, size: Sizes, **options: Any) -> Value:
    """Return a random tensor of a fixed or computed shape."""
    fixed = [n for n in size if isinstance(n, int)]
    kind = ELEMENT_NUMBERS[g.dtype]
    if len(fixed) == len(size):
        return g.op(op_type, shape=tuple(fixed), dtype=kind, **options)
    return g.op(f"{op_type}Like", filled_tensor(g, size, 0), **options)


def random_of_size(op_type: str) -> Rule:
    """Return the rule of random numbers of a given shape."""

    def apply(g: Builder, size: Sizes, dtype: Any = None) -> Value:
        return random_tensor(g, op_type, size)

    return apply


def like(op_type: str) -> Rule:
    """Return the rule of random numbers with the shape of another tensor."""

    def apply(g: Builder, self: Value, dtype: Any = None) -> Value:
        return g.op(f"{op_type}Like", self, dtype=ELEMENT_NUMBERS[g.dtype])

    return apply


for _name, _op in {"rand": "RandomUniform", "randn": "RandomNormal"}.items():
    rule(f"aten.{_name}.default")(random_of_size(_op))
    rule(f"aten.{_name}_like.default")(like(_op))


@rule("aten.randint.low")
def randint(
    g: Builder, low: Operand, high: Operand, size: Sizes, dtype: Any = None
) -> Value:
    of = g.at(FLOAT32)
    first, last = of.cast(low), of.cast(high)
    part = of.op(
        "Mul", random_tensor(of, "RandomUniform", size), of.op("Sub", last, first)
    )
    return g.cast(of.op("Floor", of.op("Add", part, first)))


@rule("aten.randint.default")
def randint_below(g: Builder, high: Operand, size: Sizes, dtype: Any = None) -> Value:
    return randint(g, 0, high, size)


@rule("aten.randint_like.default")
def randint_like(g: Builder, self: Value, high: Operand, dtype: Any = None) -> Value:
    return randint_like_between(g, self, 0, high)


@rule("aten.randint_like.low_dtype")
def randint_like_between(
    g: Builder, self: Value, low: Operand, high: Operand, dtype: Any = None
) -> Value:
    sizes = [g.extent(self, axis) for axis in range(self.rank)]
    return randint(g, low, high, sizes)


@rule("aten.randperm.default")
def randperm(g: Builder, n: int | Value, dtype: Any = None) -> Value:
    keys = random_tensor(g.at(FLOAT32), "RandomUniform", [n])
    _, order = g.at(INT64).many("Sort", 2, keys, domain="burn")
    return g.cast(order)


@rule("aten.bernoulli.default")
def bernoulli(g: Builder, self: Value) -> Value:
    return g.op("Bernoulli", self)


@rule("aten.bernoulli_.Tensor", mutates="self")
@rule("aten.bernoulli.Tensor")
def bernoulli_by(g: Builder, self: Value, p: Value) -> Value:
    """Return draws with probabilities that broadcast to ``self``."""
    shape = g.op("Shape", self)
    return g.op("Bernoulli", g.op("Expand", g.cast(p), shape))


@rule("aten.bernoulli.p")
@rule("aten.bernoulli_.float", mutates="self")
def bernoulli_p(g: Builder, self: Value, p: float = 0.5) -> Value:
    shape = g.op("Shape", self)
    return g.op("Bernoulli", g.op("Expand", g.cast(p), shape))


@rule("aten.multinomial.default")
def multinomial(
    g: Builder, self: Value, num_samples: int, replacement: bool = False
) -> Value:
    """Return drawn classes; without replacement, by an exponential race."""
    if self.rank == 1:
        row = g.at(self.dtype).op("Unsqueeze", self, [0])
        row = replace(row, dims=(1, *(self.dims or ())))
        rows = multinomial(g, row, num_samples, replacement)
        return g.op("Squeeze", rows, [0])
    if replacement:
        chances = g.at(self.dtype).op("Log", self)
        kind = ELEMENT_NUMBERS[INT64]
        return g.op("Multinomial", chances, sample_size=num_samples, dtype=kind)
    of = g.at(self.dtype)
    time = of.op("Neg", of.op("Log", of.op("RandomUniformLike", self)))
    _, order = g.many(
        "TopK", 2, of.op("Div", time, self), g.ints(num_samples), largest=0
    )
    return order


@rule(
    "aten.normal.Tensor_float", "aten.normal.float_Tensor", "aten.normal.Tensor_Tensor"
)
def normal(g: Builder, mean: Operand, std: Operand = 1.0) -> Value:
    like_ = next(x for x in (mean, std) if isinstance(x, Value))
    noise = g.op("RandomNormalLike", like_)
    if isinstance(std, Value) or std != 1:
        noise = g.op("Mul", noise, g.cast(std))
    return g.op("Add", noise, g.cast(mean))


@rule("aten.normal_functional.default")
def normal_functional(
    g: Builder, self: Value, mean: float = 0.0, std: float = 1.0
) -> Value:
    return g.op("RandomNormalLike", self, mean=float(mean), scale=float(std))


@rule("aten.exponential.default")
def exponential(g: Builder, self: Value, lambd: float = 1.0) -> Value:
    drawn_ = g.op("Log", g.op("RandomUniformLike", self))
    return g.op("Div", drawn_, -float(lambd))


@rule("aten.uniform.default")
def uniform(g: Builder, self: Value, from_: float = 0.0, to: float = 1.0) -> Value:
    return g.op("RandomUniformLike", self, low=float(from_), high=float(to))


rule("aten.normal_.default", mutates="self")(normal_functional)


@rule("aten.random.to")
def random_below(g: Builder, self: Value, to: int) -> Value:
    return randint_like_between(g, self, 0, to)


@rule("aten.random.from")
def random_between(g: Builder, self: Value, from_: int, to: int | None) -> Value:
    if to is None:
        raise UnsupportedModel("expected an upper bound of random numbers")
    return randint_like_between(g, self, from_, to)


def open_uniform(g: Builder, self: Value) -> Value:
    """Return random numbers in the open interval (0, 1)."""
    least = 2.0**-24
    return g.op("RandomUniformLike", self, low=least, high=1 - least)


@rule("aten.log_normal.default")
def log_normal(g: Builder, self: Value, mean: float = 1.0, std: float = 2.0) -> Value:
    return g.op("Exp", normal_functional(g, self, mean, std))


@rule("aten.cauchy.default")
def cauchy(g: Builder, self: Value, median: float = 0.0, sigma: float = 1.0) -> Value:
    angle = g.op("Mul", g.op("Sub", open_uniform(g, self), 0.5), math.pi)
    noise = g.op("Mul", g.op("Tan", angle), float(sigma))
    return g.op("Add", noise, float(median))


@rule("aten.geometric.default")
def geometric(g: Builder, self: Value, p: float) -> Value:
    """Draw the number of trials up to the first success."""
    tries = g.op("Div", g.op("Log", open_uniform(g, self)), math.log1p(-float(p)))
    return g.op("Ceil", tries)

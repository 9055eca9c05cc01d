"""Consistency of numbers that both the weights and a configuration contain."""

from __future__ import annotations

from dataclasses import dataclass

from burn.record.errors import joined, shown
from burn_import.frontends.recipes.config import Config
from burn_import.frontends.recipes.graph_writer import RecipeWriter
from burn_ir import InvalidModel


@dataclass(frozen=True)
class Fact:
    """A number that weights determine, and a clause that explains it."""

    number: int
    clause: str


def extent(w: RecipeWriter, name: str, axis: int) -> Fact:
    """Return the extent of an axis of a weight of this module.

    Raises:
        InvalidModel: the weight has no such axis.
    """
    shape = w.shape(name)
    if axis >= len(shape):
        raise InvalidModel(
            f"weight {shown(w.key(name))}: expected more than {axis} axes, "
            f"got shape {list(shape)}"
        )
    return Fact(shape[axis], f"weight {shown(w.key(name))} has shape {list(shape)}")


def length(w: RecipeWriter, name: str) -> Fact:
    """Return the number of modules in a list of this module."""
    count = w.count(name)
    return Fact(count, f"there are weights of {count} modules in {shown(w.key(name))}")


def agree(config: Config, **facts: Fact) -> None:
    """Check that the configuration's numbers equal those of the weights.

    Raises:
        InvalidModel: some differ; each is listed with the weight that it contradicts.
    """
    problems = [
        f"config {shown(key)}: expected {fact.number}, since {fact.clause}, got {value}"
        for key, fact in facts.items()
        if (value := config.value(key)) is not None and value != fact.number
    ]
    if problems:
        raise InvalidModel(joined(problems))


def heads(
    w: RecipeWriter,
    config: Config,
    name: str,
    key: str = "num_attention_heads",
    axis: int = 0,
) -> int:
    """Return the number of heads that share the output features of layer ``name``.

    Raises:
        NotClaimed: the configuration does not give it.
        InvalidModel: the number does not divide the features.
    """
    fact = extent(w, f"{name}.weight", axis)
    count = config.required(key, 1)
    if count < 1 or fact.number % count:
        raise InvalidModel(
            f"config {shown(key)}: expected a divisor of {fact.number}, "
            f"since {fact.clause}, got {count}"
        )
    return count

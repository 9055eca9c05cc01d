"""What weights and a configuration both say, compared."""

from __future__ import annotations

from dataclasses import dataclass

from burn.record.errors import joined, shown
from burn_import.recipes.config import Config
from burn_import.recipes.writer import Writer
from burn_ir import InvalidModel

#: The size of a head where no configuration says how many there are.
HEAD = 64


@dataclass(frozen=True)
class Fact:
    """A number that weights show, and a clause that says where."""

    number: int
    clause: str


def extent(w: Writer, name: str, axis: int) -> Fact:
    """The extent of an axis of a weight of this module.

    Raises:
        InvalidModel: it has no such axis.
    """
    shape = w.shape(name)
    if axis >= len(shape):
        raise InvalidModel(
            f"weight {shown(w.key(name))}: expected more than {axis} axes, "
            f"got shape {list(shape)}"
        )
    return Fact(shape[axis], f"weight {shown(w.key(name))} has shape {list(shape)}")


def length(w: Writer, name: str) -> Fact:
    """How many modules a list of this module has."""
    count = w.count(name)
    return Fact(count, f"there are weights of {count} modules in {shown(w.key(name))}")


def agree(config: Config, **facts: Fact) -> None:
    """Return if the configuration has no other numbers than the weights.

    Raises:
        InvalidModel: it has; each is named beside the weight that it contradicts.
    """
    problems = [
        f"config {shown(key)}: expected {fact.number}, since {fact.clause}, got {value}"
        for key, fact in facts.items()
        if (value := config.values.get(key, fact.number)) != fact.number
    ]
    if problems:
        raise InvalidModel(joined(problems))


def heads(
    w: Writer,
    config: Config,
    name: str,
    key: str = "num_attention_heads",
    size: int = HEAD,
    axis: int = 0,
) -> int:
    """How many heads share the features that the layer ``name`` makes.

    Without a configuration they have ``size`` features each.

    Raises:
        InvalidModel: they would not be of one size.
    """
    fact = extent(w, f"{name}.weight", axis)
    count = config.get(key, max(fact.number // size, 1))
    if count < 1 or fact.number % count:
        raise InvalidModel(
            f"config {shown(key)}: expected a divisor of {fact.number}, "
            f"since {fact.clause}, got {count}"
        )
    return count

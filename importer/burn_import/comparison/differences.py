"""Differences of two models by part and name, and of their weights by value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from burn.store.tensor_matching import type_text
from burn_import.tracing.identifiers import argument, strip_reserved_suffix

if TYPE_CHECKING:
    from burn_import.comparison.contents import Contents
    from burn_import.comparison.nodes import NodeFacts
    from burn_ir.types import Array

#: Number of elements that are read and compared at once.
_PIECE = 2**20


@dataclass(frozen=True)
class Difference:
    """A named part that one model lacks ("" there), or that differs."""

    part: str
    name: str
    before: str
    after: str

    @property
    def change(self) -> str:
        """``added``, ``removed`` or ``changed``."""
        if self.before and self.after:
            return "changed"
        return "removed" if self.before else "added"


@dataclass(frozen=True)
class ValueDifference:
    """The difference between two weights of equal shape.

    ``different`` counts the elements that differ. ``relative`` is ``absolute``
    divided by the largest magnitude in the first model. Both are None for texts,
    and infinite if an element is not finite.
    """

    key: str
    elements: int
    different: int
    absolute: float | None
    relative: float | None


@dataclass(frozen=True)
class Comparison:
    """All differences; the weights in both models are compared lazily, pair by pair."""

    differences: tuple[Difference, ...]
    values: tuple[ValueDifference, ...]
    weights: int

    @property
    def is_equal(self) -> bool:
        """Whether the models have no difference."""
        return not self.differences and not self.values


def compare(first: Contents, second: Contents) -> Comparison:
    """Return the differences of the parts that both models have."""
    rows: list[Difference] = []
    for part in ("opset", "input", "output", "operator"):
        old, new = (getattr(side, f"{part}s") for side in (first, second))
        if part == "input" and first.is_module != second.is_module:
            old, new = _arguments(old), _arguments(new)
        if old is not None and new is not None:
            rows += _part_differences(part, _texts(old), _texts(new))
    if first.nodes is not None and second.nodes is not None:
        rows += _node_differences(first.nodes, second.nodes)
    rows += _layer_differences(first.layers, second.layers)
    types = [
        {key: type_text(a.dtype, a.shape) for key, a in side.weights.items()}
        for side in (first, second)
    ]
    rows += _part_differences("weight", *types)
    values = [
        value
        for key, array in first.weights.items()
        if (other := second.weights.get(key)) is not None and other.shape == array.shape
        if (value := value_difference(key, array, other)) is not None
    ]
    return Comparison(tuple(rows), tuple(values), len(first.weights))


def _arguments(inputs: Mapping[str, str] | None) -> Mapping[str, str] | None:
    """Return the types of inputs by the names that they have as arguments."""
    if inputs is None:
        return None
    named = {
        strip_reserved_suffix(argument(name)): shown for name, shown in inputs.items()
    }
    return named if len(named) == len(inputs) else inputs


def _texts(rows: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in rows.items()}


def _part_differences(
    part: str, old: Mapping[str, str], new: Mapping[str, str]
) -> Iterator[Difference]:
    for name in dict.fromkeys((*old, *new)):
        before, after = old.get(name, ""), new.get(name, "")
        if before != after:
            yield Difference(part, name, before, after)


def _layer_differences(
    old: Mapping[str, str], new: Mapping[str, str]
) -> Iterator[Difference]:
    """Yield the layers that one model lacks, or whose known classes differ."""
    for path in dict.fromkeys((*old, *new)):
        before, after = (side.get(path) for side in (old, new))
        if before is None or after is None or (before != after and before and after):
            texts = (
                "" if kind is None else kind or "module" for kind in (before, after)
            )
            yield Difference("layer", path or "(model)", *texts)


def _node_differences(
    old: Mapping[str, NodeFacts], new: Mapping[str, NodeFacts]
) -> Iterator[Difference]:
    for name in dict.fromkeys((*old, *new)):
        before, after = old.get(name), new.get(name)
        if before is None or after is None:
            texts = ("" if one is None else one.operator for one in (before, after))
            yield Difference("node", name, *texts)
        elif before != after:
            a, b = _node_fields(before), _node_fields(after)
            keys = [key for key in dict.fromkeys((*a, *b)) if a.get(key) != b.get(key)]
            yield Difference("node", name, *(_listed(keys, side) for side in (a, b)))


def _node_fields(node: NodeFacts) -> dict[str, str]:
    inputs = {f"input {number}": name for number, name in enumerate(node.inputs)}
    return {"operator": node.operator, **node.attributes, **inputs}


def _listed(keys: list[str], facts: Mapping[str, str]) -> str:
    return "; ".join(f"{key} {facts.get(key, 'none')}" for key in keys)


def value_difference(key: str, a: Array, b: Array) -> ValueDifference | None:
    """Return the difference of two arrays of one shape, or None if equal.

    NaNs compare equal. The arrays are read in chunks.
    """
    different, absolute, largest = 0, 0.0, 0.0
    is_text = a.dtype.kind in "OSU" or b.dtype.kind in "OSU"
    a, b = a.reshape(-1), b.reshape(-1)
    for at in range(0, a.size, _PIECE):
        x, y = a[at : at + _PIECE], b[at : at + _PIECE]
        unequal = np.asarray(x != y)
        if not is_text:
            x, y, unequal = _numbers(x, y, unequal)
            largest = max(largest, float(np.nanmax(np.abs(x), initial=0.0)))
        if unequal.any():
            different += int(unequal.sum())
            if not is_text:
                absolute = max(absolute, _largest(x[unequal], y[unequal]))
    if not different:
        return None
    if is_text:
        return ValueDifference(key, a.size, different, None, None)
    relative = absolute / largest if largest else float("inf")
    return ValueDifference(key, a.size, different, absolute, relative)


def _numbers(x: Array, y: Array, unequal: Array) -> tuple[Array, Array, Array]:
    """Return two chunks in float64 or complex128, and the mask of their differences."""
    wide = np.complex128 if "c" in (x.dtype.kind, y.dtype.kind) else np.float64
    x, y = x.astype(wide), y.astype(wide)
    return x, y, unequal & ~(np.isnan(x) & np.isnan(y))


def _largest(x: Array, y: Array) -> float:
    with np.errstate(invalid="ignore", over="ignore"):
        gap = np.abs(x - y)
    return float(np.where(np.isnan(gap), np.inf, gap).max())

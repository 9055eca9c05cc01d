"""The table of recipes, and which of them a state dict is for."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from burn_import.pytorch.checkpoint import LazyTensor
from burn_import.recipes.config import Config
from burn_import.recipes.writer import Writer
from burn_ir import UnsupportedModel
from burn_ir.raw import RawModel

Build = Callable[[Writer, Config], RawModel]


@dataclass(frozen=True)
class Recipe:
    """One architecture: how its keys look below a common prefix, and its graph.

    ``keys`` are keys that have to be there, all of them in the module ``base`` or none;
    ``without`` those that must not. ``rows`` says how many rows a weight usually has,
    where keys fit other recipes, too. ``kinds`` are names in ``model_type``, and
    ``class_name`` is the class below whose attribute all keys may be.
    """

    name: str
    class_name: str
    keys: tuple[str, ...]
    without: tuple[str, ...]
    kinds: tuple[str, ...]
    build: Build
    base: str = ""
    rows: Mapping[str, int] = field(default_factory=dict)


RECIPES: list[Recipe] = []


def recipe(
    name: str,
    class_name: str,
    *keys: str,
    kinds: Iterable[str] = (),
    base: str = "",
    rows: Mapping[str, int] | None = None,
    without: Iterable[str] = (),
) -> Callable[[Build], Build]:
    """Register the function that writes the graph of an architecture."""

    def register(build: Build) -> Build:
        names = tuple(without), tuple(kinds) or (name,)
        made = Recipe(name, class_name, keys, *names, build, base, rows or {})
        RECIPES.append(made)
        return build

    return register


def find(
    tensors: Mapping[str, LazyTensor], config: Config
) -> tuple[Recipe, str] | None:
    """The recipe for these keys, and the prefix that they have before its own.

    A configuration that names an architecture decides among recipes whose keys fit,
    then the shortest prefix: what is called ``roberta.`` is no part of another model.
    Where only the rows of a weight decide, the architecture is among what is assumed.

    Raises:
        UnsupportedModel: nothing decides among several.
    """
    fitting = []
    for candidate in RECIPES:
        prefix = _prefix(candidate, tensors.keys())
        if prefix is not None:
            rank = prefix.count("."), _rank(candidate, prefix, tensors)
            fitting.append((rank, candidate, prefix))
    named = [found for found in fitting if config.kind in found[1].kinds]
    best = named or ([] if config.kind else fitting)
    if not best:
        return None
    rank, chosen, prefix = min(best, key=lambda found: found[0])
    even = [other for each, other, _ in best if each == rank]
    names = [o.name for o in even if not set(o.kinds) & set(chosen.kinds)]
    if names:
        raise UnsupportedModel(
            "expected the weights of one architecture, got some that fit several: "
            f"{', '.join([chosen.name, *names])}; model_type in a config.json tells "
            "which (--config)"
        )
    if not config.kind and any(
        each[0] == rank[0] and other.kinds != chosen.kinds for each, other, _ in best
    ):
        config.assumed["model_type"] = chosen.kinds[0]
    return chosen, prefix


def _rank(candidate: Recipe, prefix: str, tensors: Mapping[str, LazyTensor]) -> int:
    """0 if the weights have the recipe's rows, 2 if others, 1 if it names none."""
    if not candidate.rows:
        return 1
    based = f"{prefix}{candidate.base}."
    start = based if based + candidate.keys[0] in tensors else prefix
    found = ((tensors.get(start + key), n) for key, n in candidate.rows.items())
    fits = all(t is not None and t.shape[:1] == (rows,) for t, rows in found)
    return 0 if fits else 2


def _prefix(candidate: Recipe, keys: Collection[str]) -> str | None:
    """The prefix at which all keys of a recipe are there; None if there is none."""
    base = re.escape(f"{candidate.base}.") if candidate.base else ""
    first = re.compile(rf"((?:\w+\.)*?)({base}|){re.escape(candidate.keys[0])}")
    for key in keys:
        match = first.fullmatch(key)
        start = match[1] + match[2] if match else ""
        if match is None or any(start + other in keys for other in candidate.without):
            continue
        if all(start + other in keys for other in candidate.keys):
            return match[1]
    return None

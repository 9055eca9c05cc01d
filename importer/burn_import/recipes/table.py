"""The table of recipes, and which of them a state dict is for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from burn_import.recipes.config import Config
from burn_import.recipes.writer import Writer
from burn_ir.raw import RawModel

Build = Callable[[Writer, Config], RawModel]


@dataclass(frozen=True)
class Recipe:
    """One architecture: how its keys look below a common prefix, and its graph.

    ``keys`` are keys that have to be there, ``without`` those that must not; ``kinds``
    are names in ``model_type``, and ``class_name`` is the class below whose attribute
    all keys may be.
    """

    name: str
    class_name: str
    keys: tuple[str, ...]
    without: tuple[str, ...]
    kinds: tuple[str, ...]
    build: Build


RECIPES: list[Recipe] = []


def recipe(
    name: str,
    class_name: str,
    *keys: str,
    kinds: Iterable[str] = (),
    without: Iterable[str] = (),
) -> Callable[[Build], Build]:
    """Register the function that writes the graph of an architecture."""

    def register(build: Build) -> Build:
        known = tuple(kinds) or (name,)
        RECIPES.append(Recipe(name, class_name, keys, tuple(without), known, build))
        return build

    return register


def find(keys: Iterable[str], config: Config) -> tuple[Recipe, str] | None:
    """The recipe for these keys, and the prefix that they have before its own.

    A configuration that names an architecture decides among recipes whose keys fit.
    """
    known = set(keys)
    fitting = []
    for candidate in RECIPES:
        prefix = _prefix(candidate, known)
        if prefix is not None:
            fitting.append((candidate, prefix))
    named = [pair for pair in fitting if config.kind in pair[0].kinds]
    best = named or ([] if config.kind else fitting)
    return best[0] if best else None


def _prefix(candidate: Recipe, keys: set[str]) -> str | None:
    """The prefix at which all keys of a recipe are there; None if there is none."""
    first = re.compile(rf"((?:\w+\.)*){re.escape(candidate.keys[0])}")
    for key in keys:
        match = first.fullmatch(key)
        if match is None or any(match[1] + no in keys for no in candidate.without):
            continue
        if all(match[1] + other in keys for other in candidate.keys):
            return match[1]
    return None

"""The table of recipes, and the choice of one for a state dict."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from burn_import.frontends.checkpoints.checkpoint import LazyTensor
from burn_import.frontends.recipes.config import Config, NotClaimed
from burn_import.frontends.recipes.graph_writer import RecipeWriter
from burn_ir.raw import RawModel

Build = Callable[[RecipeWriter, Config], RawModel]


@dataclass(frozen=True)
class Recipe:
    """One architecture: the keys of its weights below a common prefix, and its graph.

    All ``keys`` must exist, either all in the module ``base`` or all outside of it;
    ``without`` must not. ``kinds`` are its values of ``model_type``, and ``class_name``
    is its class. With ``is_configured`` a configuration must name it, because other
    architectures have the same keys. ``supports`` maps entries of a configuration that
    the recipe does not read to the values it supports.
    """

    name: str
    class_name: str
    keys: tuple[str, ...]
    without: tuple[str, ...]
    kinds: tuple[str, ...]
    build: Build
    base: str = ""
    is_configured: bool = True
    supports: Mapping[str, tuple[object, ...]] = field(default_factory=dict)


RECIPES: list[Recipe] = []


def recipe(
    name: str,
    class_name: str,
    *keys: str,
    kinds: Iterable[str] = (),
    base: str = "",
    without: Iterable[str] = (),
    is_configured: bool = True,
    supports: Mapping[str, tuple[object, ...]] | None = None,
) -> Callable[[Build], Build]:
    """Return a decorator that registers the graph writer of an architecture."""

    def register(build: Build) -> Build:
        names = tuple(without), tuple(kinds) or (name,)
        requirements = is_configured, supports or {}
        RECIPES.append(
            Recipe(name, class_name, keys, *names, build, base, *requirements)
        )
        return build

    return register


def find(
    tensors: Mapping[str, LazyTensor], config: Config
) -> tuple[Recipe, str] | None:
    """Return the recipe for these keys, and the prefix of its keys; None if none fits.

    Among recipes whose keys fit, the configuration's ``model_type`` decides, then the
    shortest prefix. Without ``model_type`` only a recipe with unambiguous keys applies.

    Raises:
        NotClaimed: several fit equally, or a configuration is required.
    """
    fitting = [
        (prefix.count("."), candidate, prefix)
        for candidate in RECIPES
        if (prefix := _prefix(candidate, tensors.keys())) is not None
    ]
    if config.kind:
        best = [entry for entry in fitting if config.kind in entry[1].kinds]
        if not best:
            raise NotClaimed(f"no known architecture called {config.kind} fits them")
    else:
        best = [entry for entry in fitting if not entry[1].is_configured]
        if fitting and not best:
            raise NotClaimed(_ambiguity_message([entry[1] for entry in fitting]))
    if not best:
        return None
    rank, chosen, prefix = min(best, key=lambda entry: entry[0])
    even = [other for each, other, _ in best if each == rank]
    if any(not set(other.kinds) & set(chosen.kinds) for other in even):
        raise NotClaimed(_ambiguity_message(even))
    return chosen, prefix


def _ambiguity_message(recipes: Iterable[Recipe]) -> str:
    """Return the message about keys that several architectures have."""
    kinds = ", ".join(sorted({kind for each in recipes for kind in each.kinds}))
    return (
        f"the keys fit {kinds}, and other architectures have the same ones; "
        "the model_type of a config.json beside the file (or --config) decides"
    )


def _prefix(candidate: Recipe, keys: Collection[str]) -> str | None:
    """Return the prefix below which all keys of a recipe exist; None if none."""
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

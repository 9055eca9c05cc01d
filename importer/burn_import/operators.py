"""Operators that others declare, from modules that are named and from entry points.

A module that declares operators (subclasses of ``burn_ir.Op``) does so when it is
imported. ``docs/custom-operators.md`` shows one.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING

from burn_ir import UnsupportedModel

if TYPE_CHECKING:
    from burn_ir import RawModel

#: The group of entry points; their names are domains, their values modules.
GROUP = "burn_import.operators"


class OperatorsNotLoaded(UnsupportedModel):  # noqa: N818
    """A module that should declare operators cannot be imported."""


def load_operators(modules: Iterable[str]) -> None:
    """Return when the operators of the named modules are declared.

    Raises:
        OperatorsNotLoaded: a module is not there, or fails.
    """
    for name in modules:
        _import(name, f"operators {name!r}")


def load_operators_for(model: RawModel) -> bool:
    """Whether an installed package was found for a domain used, and is loaded now.

    An entry point is loaded if a node of the model has the domain it is named after.

    Raises:
        OperatorsNotLoaded: the module of an entry point is not there, or fails.
    """
    from burn_ir.support_check import walk

    used = {node.domain for node in walk(model.graph)} - {""}
    if not used:
        return False
    from importlib.metadata import entry_points  # loads much that no other file needs

    points = entry_points(group=GROUP)
    found = [point for point in sorted(points) if point.name in used]
    for point in found:
        origin = point.dist.name if point.dist else "an unnamed package"
        _import(point.module, f"operators of domain {point.name!r} from {origin}")
    return bool(found)


def _import(module: str, what: str) -> None:
    try:
        import_module(module)
    except (ImportError, SyntaxError, TypeError, ValueError) as error:
        told = f"{type(error).__name__}: {error}"
        raise OperatorsNotLoaded(f"cannot load the {what}: {told}") from error

"""Loading of custom operators, from named modules and from entry points.

A module that declares operators (subclasses of ``burn_ir.Op``) does so when it is
imported. ``docs/custom-operators.md`` shows one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from burn_ir import UnsupportedModel

if TYPE_CHECKING:
    from burn_ir import RawModel

#: The group of entry points; their names are domains, their values modules.
GROUP = "burn_import.operators"


class OperatorsNotLoaded(UnsupportedModel):  # noqa: N818
    """A module of custom operators cannot be imported."""


@contextmanager
def importable_from(folder: Path, operators: Sequence[str]) -> Iterator[None]:
    """Context in which Python finds the modules ``operators`` in ``folder``, too."""
    if not operators:
        yield
        return
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


def load_operators(modules: Iterable[str]) -> None:
    """Import the named modules, which declare operators.

    Raises:
        OperatorsNotLoaded: a module does not exist, or fails.
    """
    for name in modules:
        _import(name, f"operators {name!r}")


def load_operators_for(model: RawModel) -> bool:
    """Load installed packages for the model's domains; return if one was.

    An entry point is loaded if a node of the model has the domain that is its name.

    Raises:
        OperatorsNotLoaded: the module of an entry point does not exist, or fails.
    """
    from burn_ir.support_check import walk

    used = {node.domain for node in walk(model.graph)} - {""}
    if not used:
        return False
    from importlib.metadata import entry_points  # slow to import, and needed only here

    points = entry_points(group=GROUP)
    points_used = [point for point in sorted(points) if point.name in used]
    for point in points_used:
        origin = point.dist.name if point.dist else "an unnamed package"
        _import(point.module, f"operators of domain {point.name!r} from {origin}")
    return bool(points_used)


def _import(module: str, source: str) -> None:
    try:
        import_module(module)
    except (ImportError, SyntaxError, TypeError, ValueError) as error:
        reason = f"{type(error).__name__}: {error}"
        hint = (
            "Expected a module that Python finds, here or installed."
            if isinstance(error, ModuleNotFoundError)
            else ""
        )
        raise OperatorsNotLoaded(f"cannot load the {source}: {reason}", hint) from error

"""Import statements of a standalone module."""

from __future__ import annotations

from collections.abc import Iterable

from burn_import.internal import InternalError
from burn_import.standalone.library import External

#: Modules outside the standard library.
_PACKAGES = ("ml_dtypes", "numpy")


def import_lines(externals: Iterable[External]) -> str:
    """Return the import statements of ``externals``, sorted as ruff sorts them.

    Raises:
        InternalError: two of them bind one name.
    """
    externals = list(externals)
    bound = {external.name: external.statement for external in externals}
    for external in externals:
        if bound[external.name] != external.statement:
            pair = f"{external.statement!r} and {bound[external.name]!r}"
            raise InternalError(f"expected one meaning of {external.name}, got {pair}")
    statements = {external.statement for external in externals}
    statements.add("from types import SimpleNamespace")
    groups: list[list[str]] = [[], []]
    members: dict[str, set[str]] = {}
    for statement in sorted(statements):
        module = statement.split()[1]
        if statement.startswith("from "):
            members.setdefault(module, set()).add(statement.partition(" import ")[2])
        else:
            groups[_is_package(module)].append(statement)
    for module, names in sorted(members.items()):
        shown = ", ".join(sorted(names, key=_kind))
        groups[_is_package(module)].append(f"from {module} import {shown}")
    return "\n\n".join("\n".join(group) for group in groups if group)


def _is_package(module: str) -> bool:
    return module.partition(".")[0] in _PACKAGES


def _kind(name: str) -> tuple[int, str]:
    """Return a sort key: constants first, then classes, then other names."""
    if name.isupper() and len(name) > 1:
        return 0, name
    return (1 if name[0].isupper() else 2), name

"""Lazy imports: names of a package that are imported at their first use (PEP 562).

``import burn`` is to take little longer than ``import numpy``, so a package lists here
what most programs do not need. Type checkers read imports under ``TYPE_CHECKING``::

    if TYPE_CHECKING:
        from burn.plan import compile
    else:
        __getattr__, __dir__ = lazy_names(__name__, {"burn.plan": ("compile",)})
"""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any


def lazy_names(
    package: str,
    names: Mapping[str, tuple[str, ...]],
    hints: Mapping[str, str] | None = None,
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and ``__dir__`` of a package.

    ``names`` are the attributes by the module that defines them; where that module is
    the package itself they are its submodules. ``hints`` are replacements of names
    that other libraries have, for the error message.
    """
    origins = {name: module for module, group in names.items() for name in group}

    def get_attribute(name: str) -> Any:
        origin = origins.get(name)
        if origin is None:
            remedy = f"; use {hints[name]}" if hints and name in hints else ""
            message = f"module {package!r} has no attribute {name!r}{remedy}"
            raise AttributeError(message)
        if origin == package:
            return import_module(f"{package}.{name}")
        value = getattr(import_module(origin), name)
        setattr(sys.modules[package], name, value)  # not looked up here again
        return value

    def list_names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *origins})

    return get_attribute, list_names


class LazyModule(ModuleType):
    """A placeholder for a module that is imported when an attribute is first read.

    The first read replaces ``owner.attribute`` by the module, so later reads are
    direct.
    """

    def __init__(self, name: str, owner: ModuleType, attribute: str) -> None:
        super().__init__(name)
        self._slot = owner, attribute

    def __getattr__(self, name: str) -> Any:
        module = import_module(self.__name__)
        setattr(*self._slot, module)
        return getattr(module, name)

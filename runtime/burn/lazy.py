"""Lazy imports: names of a package that are imported at their first use (PEP 562).

``import burn`` imports not even NumPy, and ``burn.nn`` only the layers that are named.
A package lists its names here; type checkers read imports under ``TYPE_CHECKING``::

    if TYPE_CHECKING:
        from burn.plan import compile
    else:
        __getattr__, __dir__ = lazy_names(__name__, {"burn.plan": ("compile",)})
"""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any


def lazy_names(
    package: str,
    names: Mapping[str, tuple[str, ...]],
    hint: Callable[[str], str | None] = lambda name: None,
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and ``__dir__`` of a package.

    ``names`` are the attributes by the module that defines them; where that module is
    the package itself they are its submodules. ``hint`` returns the replacement of a
    name that other libraries have, for the error message.
    """
    origins = {name: module for module, group in names.items() for name in group}

    def get_attribute(name: str) -> Any:
        origin = origins.get(name)
        if origin is None:
            if name[0] == "_":  # Python looks for many
                remedy = None
            elif find_spec(f"{package}.{name}") is not None:
                remedy = f"from {package} import {name}"  # which asks for it here first
            else:
                remedy = hint(name)
            message = f"module {package!r} has no attribute {name!r}"
            if remedy is not None:
                raise AttributeError(f"{message}; use {remedy}")
            raise AttributeError(message, name=name, obj=sys.modules[package])
        if origin == package:
            return import_module(f"{package}.{name}")
        value = getattr(import_module(origin), name)
        setattr(sys.modules[package], name, value)  # not looked up here again
        return value

    def list_names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *origins})

    return get_attribute, list_names


def function_hint(name: str) -> str | None:
    """Return the replacement of a function of PyTorch or NumPy, or None."""
    table = import_module("burn.function_hints")  # which imports operations' names
    hint: str | None = table.function_hint(name)
    return hint


def public_names(package: str, list_names: Callable[[], list[str]]) -> list[str]:
    """Return ``__all__`` of a package: its lazy names, and the classes and functions
    that it imports from the runtime. ``list_names`` is its ``__dir__``.
    """
    variables = vars(sys.modules[package])
    root = package.partition(".")[0]

    def is_public(name: str) -> bool:
        module = getattr(variables.get(name), "__module__", None) or ""
        is_import = module.startswith(f"{root}.") and module != __name__
        return name[0] != "_" and (name not in variables or is_import)

    return list(filter(is_public, list_names()))


def keep_functions(package: str, *names: str) -> None:
    """Keep functions of a package that have the name of the submodule they are in.

    The import of ``burn.tensor`` would replace the function ``burn.tensor`` by the
    module, and a module in ``vars(burn)`` is never looked up by ``__getattr__``.
    """

    class Package(ModuleType):
        def __setattr__(self, name: str, value: Any) -> None:
            if name in names and isinstance(value, ModuleType):
                value = getattr(value, name)
            super().__setattr__(name, value)

    sys.modules[package].__class__ = Package


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

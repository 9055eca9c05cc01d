"""Hooks that observe or replace the results of modules.

Python looks ``__call__`` up on the class, so a hooked module gets a subclass of its
class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from burn.nn.module import Module

#: A hook: receives a module and its result, and returns the new result.
Observe = Callable[[Module, Any], Any]


def is_callable(module: Module) -> bool:
    """Return whether the class of a module defines ``__call__``, unlike a list's."""
    return any("__call__" in vars(cls) for cls in type(module).__mro__)


@contextmanager
def calling(model: Module, observe: Observe) -> Iterator[None]:
    """Pass the results of all modules of ``model`` through ``observe`` in this
    context.
    """
    modules = {id(m): m for _, m in model.modules() if is_callable(m)}
    before = {key: type(module) for key, module in modules.items()}
    observed: dict[type[Module], type[Module]] = {}
    try:
        for key, module in modules.items():
            cls = before[key]
            if cls not in observed:
                observed[cls] = _observed(cls, observe)
            module.__class__ = observed[cls]
        yield
    finally:
        for key, module in modules.items():
            module.__class__ = before[key]


def _observed(cls: type[Module], observe: Observe) -> type[Module]:
    call: Callable[..., Any] = cls.__call__

    def __call__(self: Module, *args: Any, **kwargs: Any) -> Any:  # noqa: N807
        return observe(self, call(self, *args, **kwargs))

    names = {"__call__": __call__, "__module__": cls.__module__}
    return type(cls.__name__, (cls,), names)

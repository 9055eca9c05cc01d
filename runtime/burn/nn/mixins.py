"""Subclasses created at run time, which change the calls of existing modules.

Python looks ``__call__`` up on the class, so a changed module gets a subclass of its
class and a mixin.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from burn.box import note_replacement
from burn.nn.module import Module


class Mixin(Module):
    """The base class of mixins for module classes. The last one added is outermost."""

    def __reduce__(self) -> tuple[Any, ...]:
        # pickle cannot import a class created at run time; recreate it.
        return _empty, _parts(type(self)), vars(self)


_Parts: TypeAlias = tuple[type[Module], tuple[type[Mixin], ...]]

#: Classes created by ``mix_in``, by original class and mixins; and the reverse.
_CLASSES: dict[_Parts, type[Module]] = {}
_PARTS: dict[type[Module], _Parts] = {}


def mix_in(module: Module, mixin: type[Mixin]) -> None:
    """Add a mixin to the class of ``module``, unless it has it."""
    original, mixins = _parts(type(module))
    if mixin not in mixins:
        _set_class(module, _mixed(original, (mixin, *mixins)))


def take_out(module: Module, mixin: type[Mixin]) -> None:
    """Remove a mixin from the class of ``module``."""
    original, mixins = _parts(type(module))
    rest = tuple(each for each in mixins if each is not mixin)
    _set_class(module, _mixed(original, rest))


def original_class(module: Module) -> type[Module]:
    """Return the class of ``module`` without mixins."""
    return _parts(type(module))[0]


def set_original_class(module: Module, cls: type[Module]) -> None:
    """Replace the class of ``module`` by ``cls``, and keep its mixins."""
    _, mixins = _parts(type(module))
    _set_class(module, _mixed(cls, mixins))


def _set_class(module: Module, cls: type[Module]) -> None:
    object.__setattr__(module, "__class__", cls)
    note_replacement()


def _parts(cls: type[Module]) -> _Parts:
    """Return the class of a module before mixins were added, and the mixins."""
    return _PARTS.get(cls, (cls, ()))


def _mixed(original: type[Module], mixins: tuple[type[Mixin], ...]) -> type[Module]:
    if not mixins:
        return original
    key = original, mixins
    if key not in _CLASSES:
        names = {"__module__": original.__module__}
        cls = _CLASSES[key] = type(original.__name__, (*mixins, original), names)
        _PARTS[cls] = key
    return _CLASSES[key]


def _empty(original: Any, mixins: Any) -> Module:
    cls = _mixed(original, mixins)
    return cls.__new__(cls)

"""Dropout on the results of layers that a model has already."""

from __future__ import annotations

from typing import Any, TypeVar

from burn.nn.calls import is_callable
from burn.nn.dropout import Dropout
from burn.nn.module import Module
from burn.nn.patterns import selected
from burn.tensor import Tensor

M = TypeVar("M", bound=Module)


def dropout(model: M, pattern: str, p: float = 0.5, *, seed: int | None = None) -> M:
    """``model`` with dropout after the modules whose paths match, in training alone.

    Exporters drop dropout: this puts it back. Keys stay as they are, and inference
    computes what it did. A module that has dropout already gets the new probability;
    ``p=0`` takes it away. The module has to return a tensor, or a tuple of which the
    first is one. Modules are changed in place.

    Raises:
        ValueError: no module matches, or ``p`` is not in [0, 1].
    """
    paths = {path: m for path, m in model.modules() if path and is_callable(m)}
    # ``head`` is the layer alone: what is below it keeps its results.
    exact = [paths[pattern]] if pattern in paths else None
    for module in exact or [paths[path] for path in selected(paths, pattern)]:
        _set(module, p, seed)
    return model


def _set(module: Module, p: float, seed: int | None) -> None:
    layer = Dropout(p, seed=seed)
    if isinstance(module, _WithDropout):
        _remove(module)
    if p == 0.0:
        return
    backends = [box.backend for _, box in module.boxes()]
    if backends:
        layer.to(backends[0])
    module.__class__ = _with_dropout(type(module))
    module.output_dropout = layer  # type: ignore[attr-defined]


def _remove(module: _WithDropout) -> None:
    original = module.original()
    del module.output_dropout
    object.__setattr__(module, "__class__", original)


class _WithDropout(Module):
    """A module of another class, whose result goes through dropout."""

    output_dropout: Dropout

    @classmethod
    def original(cls) -> type[Module]:
        """The class that the module has without dropout."""
        base: type[Module] = cls.__mro__[2]
        return base

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        call: Any = super().__call__  # type: ignore[misc]
        result = call(*args, **kwargs)
        if isinstance(result, tuple) and type(result) is tuple:
            return (self.output_dropout(result[0]), *result[1:])
        if not isinstance(result, Tensor):
            raise TypeError(
                f"dropout after {type(self).__name__}: expected a tensor or a tuple, "
                f"got {type(result).__name__}"
            )
        return self.output_dropout(result)

    def __reduce__(self) -> tuple[Any, ...]:
        # The class is made at run time: copies and pickles make it from the original.
        return _empty, (self.original(),), vars(self)


#: The classes with dropout, by those without.
_CLASSES: dict[Any, type[_WithDropout]] = {}


def _with_dropout(cls: Any) -> type[_WithDropout]:
    if cls not in _CLASSES:
        names = {"__module__": cls.__module__}
        _CLASSES[cls] = type(cls.__name__, (_WithDropout, cls), names)
    return _CLASSES[cls]


def _empty(original: Any) -> Module:
    cls = _with_dropout(original)
    return cls.__new__(cls)

"""Dropout on the outputs of existing modules, selected by path."""

from __future__ import annotations

from typing import Any, TypeVar

from burn.nn.calls import is_callable
from burn.nn.dropout import Dropout
from burn.nn.mixins import Mixin, mix_in, take_out
from burn.nn.module import Module
from burn.nn.patterns import outermost, selected
from burn.tensor import Tensor

M = TypeVar("M", bound=Module)


def dropout(model: M, pattern: str, p: float = 0.5, *, seed: int | None = None) -> M:
    """Add dropout to the outputs of modules, in place, and return ``model``.

    Use it to restore the dropout that exporters remove. It is active in training only;
    keys of weights and results of inference do not change.

    Args:
        model: the model to change.
        pattern: a path, or a pattern of paths as in :meth:`Module.freeze`. Of modules
            inside each other the outermost is changed. It returns a tensor, or a tuple
            whose first element is one.
        p: the probability of zeroing an element; 0 removes dropout from all modules
            that match. A module that has dropout already gets the new probability.
        seed: the seed of the random numbers.

    Raises:
        ValueError: no module matches, or ``p`` is not in [0, 1].
    """
    paths = {path: m for path, m in model.modules() if path and is_callable(m)}
    find = outermost if p else selected
    for path in find(paths, pattern):
        _set(paths[path], p, seed)
    return model


def _set(module: Module, p: float, seed: int | None) -> None:
    layer = Dropout(p, seed=seed)
    if isinstance(module, _WithDropout):
        del module.output_dropout
        take_out(module, _WithDropout)
    if p == 0.0:
        return
    backends = [box.backend for _, box in module.boxes()]
    if backends:
        layer.to(backends[0])
    mix_in(module, _WithDropout)
    module.output_dropout = layer  # type: ignore[attr-defined]


class _WithDropout(Mixin):
    """Mixin of modules with dropout on their outputs."""

    output_dropout: Dropout

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

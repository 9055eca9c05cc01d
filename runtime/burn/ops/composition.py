"""Gradients of fused primitives, through an equivalent composition of primitives."""

from collections.abc import Callable
from typing import Any

from burn.backend.autodiff import Autodiff, gradients_of
from burn.tensor import Tensor


def through(
    body: Callable[..., Any], grads: tuple[Any, ...], *args: Any
) -> tuple[Tensor | None, ...]:
    """Return the gradients of ``args`` for a call equivalent to ``body(*args)``.

    ``body`` is a composition of primitives with results to which ``grads`` belong. It
    runs again on its own tape, so this suits rarely needed gradients, such as the
    gradient of a fused gradient.
    """
    home = max((arg.backend for arg in args if arg is not None), key=lambda b: b.level)
    tape = Autodiff(home, fresh=True)
    leaves = [None if arg is None else Tensor(arg, tape).leaf(None) for arg in args]
    outs = body(*leaves)
    outs = outs if isinstance(outs, tuple) else (outs,)
    total: Any = None
    for out, grad in zip(outs, grads, strict=True):
        share = (out * grad).sum()
        total = share if total is None else total + share
    gradients = gradients_of(total)
    return tuple(None if leaf is None else gradients.get(leaf) for leaf in leaves)


class Joint:
    """Gradients that are computed together when the first of them is needed."""

    def __init__(self, compute: Callable[[], tuple[Any, ...]]) -> None:
        self._compute = compute
        self._found: tuple[Any, ...] | None = None

    def __getitem__(self, index: int) -> Callable[[], Any]:
        """Return a function that returns gradient ``index``."""

        def read() -> Any:
            if self._found is None:
                self._found = self._compute()
            return self._found[index]

        return read

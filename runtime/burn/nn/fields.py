"""Checks of modules: plain lists of layers, which are no state, and other backends."""

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, TypeAlias

from burn.backend.base import Backend
from burn.box import Box

Children: TypeAlias = Callable[[Any], Iterator[tuple[str, Any]]]


def refuse_containers(children: Children) -> Children:
    """Return ``children`` with a check that fields are no plain lists of modules or
    boxes.
    """

    @wraps(children)
    def checked(module: Any) -> Iterator[tuple[str, Any]]:
        for name, value in vars(module).items():
            if isinstance(value, list | tuple | dict) and name[:1] != "_":
                _check_container(f"{type(module).__name__}.{name}", value)
        return children(module)

    return checked


def _check_container(field: str, value: Any) -> None:
    """Check that a field is not a plain list, tuple or dict with modules or boxes.

    Raises:
        TypeError: it is: its items would be neither trained, moved nor saved.
    """
    parts = [
        leaf for leaf in _leaves(value) if isinstance(leaf, Box) or _is_module(leaf)
    ]
    if _is_module(value) or not parts:
        return
    kind, remedy = "modules", "use nn.ModuleList([...])"
    if isinstance(parts[0], Box):
        kind, remedy = "parameters", "use nn.ParameterList([...])"
    if isinstance(value, dict):
        remedy = "assign each of them to an attribute"
    raise TypeError(
        f"{field} is a {type(value).__name__} of {kind}, which would not be trained, "
        f"moved or saved; {remedy}"
    )


def _is_module(value: Any) -> bool:
    # Importing ``Module`` would be an import cycle.
    return hasattr(type(value), "load_state_dict")


def _leaves(value: Any) -> Iterator[Any]:
    """Yield the items of a list, tuple or dict, recursively."""
    for item in value.values() if isinstance(value, dict) else value:
        if type(item) in (list, tuple, dict):
            yield from _leaves(item)
        else:
            yield item


def check_backend(cls: type, backend: Any) -> None:
    """Check that ``backend`` is a backend.

    Raises:
        TypeError: it is another value, such as PyTorch's ``"cuda"``.
    """
    if not isinstance(backend, Backend):
        raise TypeError(
            f"{cls.__name__}: expected a backend, such as burn.Cpu() or burn.Cuda(0), "
            f"got {backend!r}"
        )

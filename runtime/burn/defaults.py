"""The default devices of tensors."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from burn.backend.base import Backend


class _FirstRead(type):
    """Imports the devices, one of which registers itself, when a default is read."""

    def __getattr__(cls, name: str) -> Any:
        import_module("burn.backend")
        return vars(cls)[name]


class _Defaults(metaclass=_FirstRead):
    """The backend of host constants and the default device."""

    host: Any
    device: Any


def register_defaults(host: "Backend", device: "Backend") -> None:
    """Set the backend of host constants and the default device. The CPU calls this."""
    _Defaults.host, _Defaults.device = host, device


def host() -> Any:
    """Return the backend of host constants, which any device takes."""
    return _Defaults.host


def default_device() -> Any:
    """Return the device of tensors that are created without a backend."""
    return _Defaults.device

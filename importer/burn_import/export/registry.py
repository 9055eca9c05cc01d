"""The registry of handwritten forms."""

from collections.abc import Callable
from typing import Any

from burn import ops
from burn.primitive import primitives

Form = Callable[..., Any]
FORMS: dict[str, Form] = {}


def form(*names: str) -> Callable[[Form], Form]:
    """Register the decorated function as the form of primitives or composites.

    It is called with the writer and the arguments of the call, and returns a value
    or a list of values. It raises ``writer.refuse(...)`` for arguments without an
    ONNX form.
    """

    def register(function: Form) -> Form:
        for name in names:
            if name in FORMS or not (hasattr(ops, name) or name in primitives()):
                raise ValueError(f"{name!r} is no primitive, or has two forms")
            FORMS[name] = function
        return function

    return register

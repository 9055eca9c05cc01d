"""Modules around models of libraries: positional tensors in, a tuple of tensors out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch


def flatten_tensors(value: Any) -> Iterator[Any]:
    """Yield the tensors in tuples, lists, mappings and dataclasses, in order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from flatten_tensors(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from flatten_tensors(item)
    elif hasattr(value, "__dataclass_fields__"):
        for name in value.__dataclass_fields__:
            yield from flatten_tensors(getattr(value, name))


class Wrapper(torch.nn.Module):
    """A model called with keyword arguments whose outputs are flattened to a tuple."""

    def __init__(self, model: Any, names: Sequence[str], fixed: Mapping[str, Any]):
        super().__init__()
        self.model = model
        self.names = tuple(names)
        self.fixed = dict(fixed)

    def call_model(self, *tensors: Any) -> tuple[Any, ...]:
        """Return the distinct tensors in the output of the model."""
        named = dict(zip(self.names, tensors, strict=True))
        outputs: list[Any] = []
        for tensor in flatten_tensors(self.model(**named, **self.fixed)):
            if not any(tensor is seen for seen in outputs):
                outputs.append(tensor)
        return tuple(outputs)


def wrap_model(model: Any, names: Sequence[str], fixed: Mapping[str, Any]) -> Any:
    """Return a module whose ``forward`` has the parameters ``names``.

    Exporters take the names of inputs from the signature, so each wrapper gets a
    ``forward`` of its own.
    """
    parameters = ", ".join(names)
    source = (
        f"def forward(self, {parameters}):\n    return self.call_model({parameters})"
    )
    scope: dict[str, Any] = {}
    exec(source, scope)
    kind = type("Model", (Wrapper,), {"forward": scope["forward"]})
    return kind(model, names, fixed)

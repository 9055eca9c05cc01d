"""The example run of an exported model: its arguments, names and results."""

import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from burn.nn import Module
from burn.plan.pytree import is_named, mapped
from burn.tensor import Tensor, innermost, tensor
from burn_import.tracing.identifiers import strip_reserved_suffix


class ExampleRun(NamedTuple):
    """A model with example arguments, and a name for each tensor among them."""

    model: Any
    args: tuple[Any, ...]
    named: dict[str, Any]
    names: list[str]

    @property
    def tensors(self) -> list[Tensor]:
        """Return the tensors among the arguments, in order."""
        inputs = (*self.args, *self.named.values())
        every = [leaf for value in inputs for _, leaf in leaves(value, "")]
        return [leaf for leaf in every if type(leaf) is Tensor]


def example_run(model: Any, example: Any, names: Sequence[str] = ()) -> ExampleRun:
    """Return the run of a model, in evaluation mode, on an example.

    Raises:
        ValueError: there are more or fewer names than tensors.
    """
    if isinstance(model, Module):
        model = model.valid()
    args, named = arguments(example)
    inputs = list(names) or input_names_of(model, args, named)
    run = ExampleRun(model, args, named, inputs)
    if len(run.names) != len(run.tensors):
        raise ValueError(f"expected {len(run.tensors)} input names, got {run.names}")
    return run


def arguments(example: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the positional and named arguments of an example, as tensors."""

    def as_tensor(leaf: Any) -> Any:
        if type(leaf) is Tensor:
            return innermost(leaf)
        return tensor(leaf) if isinstance(leaf, np.ndarray | np.generic) else leaf

    inputs = mapped(as_tensor, example)
    if isinstance(inputs, dict):
        return (), inputs
    return (inputs if type(inputs) is tuple else (inputs,)), {}


def input_names_of(
    model: Any, args: tuple[Any, ...], named: Mapping[str, Any]
) -> list[str]:
    """Return a name for each tensor among the arguments."""
    try:
        call = model.__call__ if hasattr(model, "boxes") else model
        signature = inspect.signature(inspect.unwrap(call))
    except (TypeError, ValueError):
        signature = None
    parameters = list(signature.parameters) if signature is not None else []
    if parameters and parameters[0] == "self" and hasattr(model, "boxes"):
        parameters = parameters[1:]
    parameters += [f"input_{i}" for i in range(len(parameters), len(args))]
    pairs = [*zip(parameters, args, strict=False), *named.items()]
    return [name for prefix, value in pairs for name, _ in leaves(value, prefix)]


def leaves(value: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    """Yield (name, leaf) for each tensor or number in nested values."""
    if isinstance(value, dict):
        items: Any = [(str(key), item) for key, item in value.items()]
    elif is_named(type(value)):
        items = list(zip(value._fields, value, strict=True))
    elif isinstance(value, list | tuple):
        items = [(str(i), item) for i, item in enumerate(value)]
    elif value is None or isinstance(value, str):
        return
    else:
        yield prefix, value
        return
    for key, item in items:
        yield from leaves(item, f"{prefix}_{key}")


def documented_outputs(model: Any) -> list[str]:
    """Return the outputs that the docstring of a generated module lists for its class.

    Other classes, and files whose docstring was removed, have none.
    """
    module = sys.modules.get(type(model).__module__)
    text = getattr(module, "__doc__", None) or ""
    if not text.startswith(f"{type(model).__name__}: "):
        return []
    lines = text.partition("\nOutputs:\n")[2].partition("\n\n")[0].splitlines()
    return [strip_reserved_suffix(line.split()[0]) for line in lines]


def expected_results(run: ExampleRun) -> tuple[dict[str, Any], list[Any]]:
    """Return the inputs of the example by name, and the model's results."""
    arrays = [innermost(leaf).numpy() for leaf in run.tensors]
    results = [leaf for _, leaf in leaves(run.model(*run.args, **run.named), "")]
    numbers = [np.asarray(_array(leaf)) for leaf in results]
    return dict(zip(run.names, arrays, strict=True)), numbers


def _array(leaf: Any) -> Any:
    value = getattr(leaf, "value", leaf)
    return innermost(value).numpy() if type(value) is Tensor else value

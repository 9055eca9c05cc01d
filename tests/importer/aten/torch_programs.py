"""Programs exported by PyTorch, created only by the opt-in tests."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from burn_ir.types import Array
from tests.importer.aten.case import SIZED, Case, Extent, InputSpec


def tensor(array: Array) -> Any:
    """Return an array as a tensor of PyTorch."""
    import torch

    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.astype(np.float32)).bfloat16()
    return torch.from_numpy(np.array(array))


def arrays(results: Any) -> list[Array]:
    """Return PyTorch's results as arrays."""
    several = results if isinstance(results, tuple | list) else (results,)
    return [array(x.detach().resolve_conj()) for x in several if x is not None]


def array(x: Any) -> Array:
    """Return a tensor of PyTorch as an array."""
    if str(x.dtype) == "torch.bfloat16":
        return np.asarray(x.float().numpy().astype(ml_dtypes.bfloat16))
    return np.asarray(x.numpy())


def operator_of(case: Case) -> Any:
    """Return the operator of a case; None if this version of PyTorch has none."""
    import torch

    family, name, overload = case.target.split(".")
    packet = getattr(getattr(torch.ops, family), name, None)
    return getattr(packet, overload, None)


def called(case: Case) -> Callable[..., Any]:
    """Return the call of a case as a function of its tensors."""
    op = operator_of(case)
    assert op is not None

    def run(*inputs: Any) -> Any:
        # PyTorch does not export all in-place changes of inputs.
        pairs = zip(inputs, case.inputs, strict=True)
        given = [x.clone() if name in case.changed else x for x, name in pairs]
        left = iter(given[1:] if SIZED in case.inputs else given)
        args = {key: filled(value, left, given) for key, value in case.args.items()}
        count = list(args).index("self") + 1 if "self" in args else 0
        result = op(*list(args.values())[:count], **dict(list(args.items())[count:]))
        several = tuple(result) if isinstance(result, tuple | list) else (result,)
        if case.changed:
            names = list(case.inputs)
            after = (given[names.index(name)] for name in case.changed)
            return *several, *after
        return result[0] if case.is_first_only else result

    return run


def filled(value: Any, left: Any, given: Sequence[Any]) -> Any:
    """Return an argument with the input tensors of the case."""
    import torch

    if isinstance(value, InputSpec):
        return next(left)
    if isinstance(value, Extent):
        return given[0].shape[value.axis]
    if isinstance(value, np.dtype):
        return getattr(torch, value.name)
    if isinstance(value, list | tuple):
        return [filled(item, left, given) for item in value]
    return value


def module(function: Any) -> Any:
    """Return a PyTorch module that calls a function, or the module itself."""
    import torch

    if isinstance(function, torch.nn.Module):
        return function
    result: Any = type(
        "Net", (torch.nn.Module,), {"forward": lambda _, *x: function(*x)}
    )
    return result()


def exported(
    function: Callable[..., Any],
    samples: Sequence[Array],
    path: Path,
    varying: bool,
    decomposed: bool,
) -> bool:
    """Return whether the extent is still symbolic in the exported program."""
    import torch

    model = module(function)
    inputs = tuple(map(tensor, samples))
    shapes: Any = None
    if varying:
        first = {0: torch.export.Dim.AUTO}
        shapes = tuple(first if x.ndim and len(x) == SAMPLE else None for x in inputs)
        shapes = shapes if model is function else (shapes,)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.export.export(
            model.eval(), inputs, dynamic_shapes=shapes, strict=False
        )
        if decomposed:
            program = program.run_decompositions()
        torch.export.save(program, path)
    return bool(program.range_constraints)


#: The symbolic extent in exports.
SAMPLE = 5

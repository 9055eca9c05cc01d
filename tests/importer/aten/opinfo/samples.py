"""Calls of PyTorch's operators with the sample inputs that PyTorch tests them with."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from tests.importer.aten.torch_programs import module

#: Sample inputs of an operator that are used; PyTorch has up to some hundreds.
PER_OPERATOR = 4


@dataclass(frozen=True)
class Sample:
    """A call of an operator: a module, whose inputs are the tensors among arguments."""

    title: str
    module: Any
    inputs: tuple[Any, ...]
    is_differentiable: bool

    def __str__(self) -> str:
        return self.title


def is_available() -> bool:
    """Return whether PyTorch's list of operators can be imported."""
    return all(find_spec(name) is not None for name in ("torch", "expecttest"))


def operators(dtype: str) -> Iterator[Any]:
    """Yield PyTorch's descriptions of the operators that support a dtype."""
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_methods_invocations import op_db
    wanted = getattr(torch, dtype)
    for info in op_db:
        # Operators made by PyTorch's just-in-time compiler for GPUs need one.
        if wanted in info.dtypes and not info.name.startswith("jiterator"):
            yield info


def name_of(info: Any) -> str:
    """Return the name of an operator, with that of a variant."""
    variant = info.variant_test_name
    return f"{info.name}.{variant}" if variant else str(info.name)


def samples(info: Any, dtype: str, count: int = PER_OPERATOR) -> Iterator[Sample]:
    """Yield evenly spaced samples of an operator."""
    import torch

    wanted = getattr(torch, dtype)
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of sparse tensors
        every = list(info.sample_inputs("cpu", wanted, requires_grad=False))
    if not every:
        return
    chosen = np.linspace(0, len(every) - 1, min(count, len(every))).astype(int)
    for index in sorted(set(chosen.tolist())):
        made = _sample(info, every[index], index)
        if made is not None:
            yield made


def _sample(info: Any, sample: Any, index: int) -> Sample | None:
    """Return the sample as a module and its inputs; None without dense tensors."""
    import torch
    from torch.utils import _pytree as pytree

    arguments = ((sample.input, *sample.args), sample.kwargs)
    leaves, structure = pytree.tree_flatten(arguments)
    places = [n for n, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    tensors = tuple(leaves[n].detach().clone() for n in places)
    if not tensors or any(x.layout != torch.strided for x in tensors):
        return None
    module = _module(info.op, leaves, structure, places)
    floating = any(x.is_floating_point() for x in tensors)
    differentiable = bool(info.supports_autograd) and floating
    title = f"{name_of(info)} {index} {[list(x.shape) for x in tensors]}"
    return Sample(title, module, tensors, differentiable)


def _module(op: Any, leaves: list[Any], structure: Any, places: list[int]) -> Any:
    """Return a module that calls an operator with tensors at places of arguments."""
    from torch.utils import _pytree as pytree

    def run(*tensors: Any) -> Any:
        filled = list(leaves)
        for place, tensor in zip(places, tensors, strict=True):
            filled[place] = tensor
        args, kwargs = pytree.tree_unflatten(filled, structure)
        results = dense(op(*args, **kwargs))
        return tuple(results) if len(results) != 1 else results[0]

    return module(run).eval()


def dense(results: Any) -> list[Any]:
    """Return the tensors in nested results."""
    import torch
    from torch.utils import _pytree as pytree

    leaves = pytree.tree_leaves(results)
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]

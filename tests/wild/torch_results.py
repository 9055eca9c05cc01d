"""What PyTorch computes for a case: outputs, gradients and rounding errors."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from tests.wild.compare import (
    Array,
    MismatchError,
    compare_gradients,
    largest_error,
)
from tests.wild.entry import Case
from tests.wild.exporters import output_arrays, output_tensors

#: The largest change of a parameter's element in a finite difference.
STEP = 1e-7
#: Random changes of all parameters, and their size: a few float32 roundings.
DRAWS = 4
ROUNDING = 1e-6


def run(module: Any, inputs: Sequence[Any], seed: int = 0) -> list[Array]:
    """Return the outputs of ``module`` as arrays; ``seed`` is that of PyTorch."""
    torch.manual_seed(seed)
    with torch.no_grad():
        return [array.copy() for array in output_arrays(module(*inputs))]


def output_weights(position: int, shape: Sequence[int]) -> Array:
    """Return the fixed random factors of one output in the scalar to differentiate."""
    generator = np.random.default_rng([7, position])
    return generator.standard_normal(tuple(shape)).astype(np.float32)


def gradients(module: Any, inputs: Sequence[Any]) -> dict[str, Array]:
    """Return gradients of the sum of all float outputs times fixed factors, by key.

    Parameters that the result does not depend on are left out. Complex parameters and
    outputs count as pairs.
    """
    parameters = _float_parameters(module)
    for parameter in parameters.values():
        parameter.requires_grad_(True)
    terms = [term for term in _terms(module, inputs) if term.requires_grad]
    if not terms or not parameters:
        return {}
    result = torch.autograd.grad(
        torch.stack([term.double() for term in terms]).sum(),
        list(parameters.values()),
        allow_unused=True,
    )
    named = zip(parameters, result, strict=True)
    return {name: g.detach().numpy() for name, g in named if g is not None}


def _float_parameters(module: Any) -> dict[str, Any]:
    return {
        name: parameter
        for name, parameter in module.named_parameters()
        if parameter.is_floating_point()
    }


def _terms(module: Any, inputs: Sequence[Any]) -> list[Any]:
    """Return, for each float output, the sum of its elements times fixed factors."""
    torch.manual_seed(0)
    result = module(*inputs)
    tensors = output_tensors(result)
    terms = []
    for position, tensor in enumerate(tensors):
        if tensor.is_complex():
            tensor = torch.view_as_real(tensor)
        if tensor.is_floating_point():
            factors = torch.from_numpy(output_weights(position, tensor.shape))
            terms.append((tensor * factors.to(tensor.dtype)).sum())
    return terms


def _copied(case: Case) -> Any:
    """Return a copy of the module, which may store tensors of its last call.

    Those with a history cannot be copied, so it is called without gradients first.
    """
    run(case.module, case.inputs)
    return copy.deepcopy(case.module)


def double_case(case: Case) -> Case:
    """Return a copy of a case with parameters, buffers and inputs in float64."""
    module = _copied(case).double()
    inputs, larger = (
        (
            None
            if tensors is None
            else tuple(x.double() if x.is_floating_point() else x for x in tensors)
        )
        for tensors in (case.inputs, case.larger)
    )
    return Case(module, inputs or (), larger)


def _double_case(case: Case) -> tuple[Any, Sequence[Any]]:
    double = double_case(case)
    return double.module, double.inputs


def gradients64(case: Case) -> dict[str, Array]:
    """Return the gradients as float64 arithmetic gives them."""
    return gradients(*_double_case(case))


def slope64(case: Case, direction: Mapping[str, Array]) -> float:
    """Return the derivative of the scalar of ``gradients`` along a direction.

    It is a central difference in float64, which sees the outputs alone: a ``detach``
    or a function with a gradient of its own changes nothing. ``direction`` has arrays
    by key of a parameter.
    """
    module, inputs = _double_case(case)
    parameters = _float_parameters(module)
    steps = {key: torch.as_tensor(d).double() for key, d in direction.items()}
    largest = max(float(step.abs().max()) for step in steps.values())
    width = STEP / largest
    totals = []
    with torch.no_grad():
        for factor in (width, -2 * width):
            for key, step in steps.items():
                parameters[key] += factor * step
            totals.append(float(sum(_terms(module, inputs))))
    return (totals[0] - totals[1]) / (2 * width)


def gradient_noise(case: Case, expected: Mapping[str, Array]) -> float:
    """Return how far gradients move if parameters change by a few roundings.

    It is the largest error of PyTorch's float32 gradients for ``DRAWS`` random changes
    of all parameters, relative to their elements. ReLU at zero, ties of a maximum and
    comparisons make it large.
    """
    module = _copied(case)
    generator = torch.Generator().manual_seed(0)
    parameters = _float_parameters(module)
    values = {key: p.detach().clone() for key, p in parameters.items()}
    noise = 0.0
    for _ in range(DRAWS):
        with torch.no_grad():
            for key, parameter in parameters.items():
                change = torch.randn(parameter.shape, generator=generator)
                parameter.copy_(values[key] * (1 + ROUNDING * change))
        moved = gradients(module, case.inputs)
        noise = max(noise, compare_gradients(moved, expected).error)
    return noise


def rounding_error(case: Case, expected: list[Array]) -> float:
    """Return how far PyTorch's float32 outputs are from its float64 outputs.

    0 if the model cannot run in float64.
    """
    try:
        return largest_error(expected, run(*_double_case(case)))
    except (RuntimeError, TypeError, ValueError, MismatchError):
        return 0.0


def derived_keys(module: Any, model: Any, extra: Sequence[str]) -> list[str]:
    """Return which arrays of ``model`` the exporter computed from parameters.

    ``extra`` are keys that PyTorch's state does not have. A trainable array with the
    same elements as a parameter, in any order, is a copy of that and not computed. What
    the import takes for folded is a buffer, so that a copy has no gradient, either.
    """
    import burn

    boxes = dict(model.boxes())
    elements = [
        np.sort(parameter.detach().float().numpy(), None)
        for parameter in module.parameters()
    ]
    derived = []
    for key in extra:
        if not isinstance(boxes[key], burn.Parameter):
            if key.rpartition(".")[2].startswith("folded"):
                derived.append(key)
            continue
        values = np.sort(boxes[key].value.numpy().astype(np.float32), None)
        if not any(np.array_equal(values, own) for own in elements):
            derived.append(key)
    return derived


@dataclass(frozen=True)
class KeyDifferences:
    """How the keys of a generated module differ from PyTorch's ``state_dict``.

    ``changed`` are keys of both whose shape or value differs.
    """

    count: int
    missing: list[str]
    extra: list[str]
    changed: list[str]


def compare_keys(module: Any, model: Any) -> KeyDifferences:
    """Compare keys, shapes and values of two states."""
    theirs = {
        key: tensor
        for key, tensor in module.state_dict(keep_vars=False).items()
        if isinstance(tensor, torch.Tensor) and not key.endswith("num_batches_tracked")
    }
    ours = {key: tensor.numpy() for key, tensor in model.state_dict().items()}
    changed = []
    for key in ours.keys() & theirs.keys():
        tensor = theirs[key].detach()
        value = torch.view_as_real(tensor) if tensor.is_complex() else tensor
        a, b = ours[key], value.float().numpy()
        if a.shape != b.shape or not np.array_equal(
            a.astype(np.float32), b, equal_nan=True
        ):
            changed.append(key)
    parameters = {name for name, _ in module.named_parameters()}
    return KeyDifferences(
        len(ours),
        sorted(parameters - ours.keys()),
        sorted(ours.keys() - theirs.keys()),
        sorted(changed),
    )

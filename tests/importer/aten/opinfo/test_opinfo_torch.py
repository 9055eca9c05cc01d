"""Operators with PyTorch's samples compute the same after export and import.

Values of each dtype, and gradients by floating inputs, through ``torch.export`` and
TorchScript. A refusal must be one of an unsupported call, which names the operator.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu
from burn_import import load
from burn_ir import UnsupportedModel
from tests.importer.aten.opinfo.differences import DIFFERENT, OTHER_GRADIENTS
from tests.importer.aten.opinfo.samples import (
    Sample,
    dense,
    is_available,
    name_of,
    operators,
    samples,
)
from tests.importer.aten.torch_programs import array

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(not is_available(), reason="needs PyTorch and expecttest"),
]
DTYPES = {"float32": 1e-4, "int64": 1e-4, "complex64": 1e-3, "bool": 1e-4}
FORMATS = ("pt2", "pt")
#: What PyTorch's exporters raise for calls that they do not support.
EXPORT_ERRORS = (
    *(RuntimeError, TypeError, ValueError, AssertionError, AttributeError),
    *(IndexError, KeyError, NotImplementedError),
)


def cases() -> list[Any]:
    """Return the operators by dtype; none without PyTorch."""
    if not is_available():
        return []
    return [
        pytest.param(dtype, info, id=f"{dtype}-{name_of(info)}")
        for dtype in DTYPES
        for info in operators(dtype)
    ]


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize(("dtype", "info"), cases())
def test_samples_of_an_operator(
    dtype: str, info: Any, suffix: str, tmp_path: Path
) -> None:
    name = name_of(info)
    for key in (name, f"{dtype}-{name}"):
        if key in DIFFERENT:
            pytest.skip(DIFFERENT[key])
    compared = 0
    refused: list[str] = []
    for sample in samples(info, dtype):
        path = tmp_path / f"net.{suffix}"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = results_of(sample)
            if not expected or not exports(sample, path):
                continue
            try:
                check_values(path, sample, expected, DTYPES[dtype])
                if sample.is_differentiable and name not in OTHER_GRADIENTS:
                    check_gradients(path, sample)
            except UnsupportedModel as error:
                refused.append(str(error))
            else:
                compared += 1
    if not compared:
        pytest.skip(refused[0] if refused else "PyTorch cannot run or export it")


def results_of(sample: Sample) -> list[Any]:
    """Return PyTorch's results; none where it fails, or if they are not dense."""
    import torch

    torch.manual_seed(0)
    try:
        results = dense(sample.module(*(x.clone() for x in sample.inputs)))
    except (RuntimeError, TypeError, ValueError, NotImplementedError, IndexError):
        return []
    is_plain = all(x.layout == torch.strided for x in results)
    return results if is_plain else []


def exports(sample: Sample, path: Path) -> bool:
    """Return whether PyTorch can write the call to ``path``."""
    import torch

    inputs = tuple(x.clone() for x in sample.inputs)
    try:
        if path.suffix == ".pt":
            traced = torch.jit.trace(sample.module, inputs, check_trace=False)
            traced.save(str(path))
        else:
            program = torch.export.export(sample.module, inputs, strict=False)
            torch.export.save(program, path)
    except EXPORT_ERRORS:
        return False
    return True


def check_values(
    path: Path, sample: Sample, expected: list[Any], tolerance: float
) -> None:
    model: Any = load(path)
    actual = tensors_of(model(*map(ours, sample.inputs)))
    assert len(actual) == len(expected), sample
    for a, b in zip(actual, expected, strict=True):
        check_equal(a, b, tolerance, sample)


def ours(x: Any) -> Any:
    """Return a tensor of PyTorch as one of ours; complex numbers as pairs."""
    return burn.tensor(array_of(x))


def array_of(x: Any) -> Any:
    """Return a tensor of PyTorch as an array; complex numbers as pairs."""
    import torch

    plain = x.detach().resolve_conj().resolve_neg()
    return array(torch.view_as_real(plain) if plain.is_complex() else plain).copy()


def tensors_of(results: Any) -> list[Any]:
    """Return our tensors in nested results."""
    if isinstance(results, dict):
        results = list(results.values())
    if isinstance(results, tuple | list):
        return [x for item in results for x in tensors_of(item)]
    return [results] if isinstance(results, burn.Tensor) else []


def check_equal(actual: Any, expected: Any, tolerance: float, sample: Sample) -> None:
    array = array_of(expected)
    assert (actual.dtype, actual.shape) == (array.dtype, array.shape), sample
    a, b = (x.astype(np.float64) for x in (actual.numpy(), array))
    largest = np.abs(b[np.isfinite(b)]).max(initial=1)
    np.testing.assert_allclose(
        a, b, tolerance, largest * tolerance * 0.1, err_msg=str(sample)
    )


def check_gradients(path: Path, sample: Sample) -> None:
    """Check gradients of a weighted sum of the results by all floating inputs."""
    import torch

    leaves = [x.clone().requires_grad_(x.is_floating_point()) for x in sample.inputs]
    try:
        results = dense(sample.module(*leaves))
    except RuntimeError:  # some operand has no derivative
        return
    flags = [x.requires_grad and x.is_floating_point() for x in results]
    kept = [x for x, flag in zip(results, flags, strict=True) if flag]
    if not kept:
        return
    torch.manual_seed(1)
    weights = [torch.rand(x.shape).to(x.dtype) + 0.5 for x in kept]
    total: Any = sum((x * w).sum() for x, w in zip(kept, weights, strict=True))
    wanted = [x for x in leaves if x.requires_grad]
    try:
        expected = torch.autograd.grad(total, wanted, allow_unused=True)
    except (RuntimeError, NotImplementedError):  # it has no derivative
        return
    if all(x is None or not x.count_nonzero() for x in expected):
        return  # our backward refuses a loss without any dependency
    actual = our_gradients(path, sample, flags, weights)
    for a, b in zip(actual, expected, strict=True):
        if a is None:
            assert b is None or not b.count_nonzero(), sample
        elif b is not None:
            check_equal(a, b, 1e-3, sample)


def our_gradients(
    path: Path, sample: Sample, flags: list[bool], weights: list[Any]
) -> list[Any]:
    backend = Autodiff(Cpu())
    leaves = [
        (
            ours(x).to(backend).require_grad()
            if x.is_floating_point()
            else ours(x).to(backend)
        )
        for x in sample.inputs
    ]
    model: Any = load(path).to(backend)
    results = tensors_of(model(*leaves))
    kept = [x for x, flag in zip(results, flags, strict=True) if flag]
    total: Any = 0
    for result, weight in zip(kept, weights, strict=True):
        total = burn.ops.sum(result * ours(weight).to(backend)) + total
    gradients = total.backward()
    pairs = zip(leaves, sample.inputs, strict=True)
    return [gradients.get(x) for x, given in pairs if given.is_floating_point()]

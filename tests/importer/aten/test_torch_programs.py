"""Layers and functions exported by PyTorch compute the same without it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn_import import load
from burn_import.frontends.torch_export.unsupported import REASONS
from burn_ir import UnsupportedModel
from tests.importer.aten.torch_functions import functions
from tests.importer.aten.torch_layers import SIZE, Entry, layers
from tests.importer.aten.torch_programs import exported, module

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(find_spec("torch") is None, reason="needs PyTorch"),
]
#: Other valid reasons for refusing a program before it is decomposed.
IN_PLACE = "a change in place of"
SIZES = (3, SIZE)


def entries() -> list[Entry]:
    """Return all exported entries; none without PyTorch."""
    if find_spec("torch") is None:
        return []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [*layers(), *functions()]


@pytest.mark.parametrize("decomposed", [False, True], ids=["", "decomposed"])
@pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry[0])
def test_a_program_computes_what_pytorch_does(
    entry: Entry, decomposed: bool, tmp_path: Path
) -> None:
    import torch

    torch.manual_seed(0)
    _, function, samples = entry
    path = tmp_path / "net.pt2"
    arrays = [x.numpy() for x in samples]
    varies = exported(function, arrays, path, True, decomposed)
    try:
        model: Any = load(path)
    except UnsupportedModel as error:
        check_refusal(error, decomposed)
        pytest.skip(str(error))
    for size in SIZES if varies else SIZES[-1:]:
        given = [x[:size] if x.ndim and len(x) == SIZE else x for x in samples]
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            expected = flat(module(function).eval()(*given))
        result = flat(model(*(burn.tensor(x.numpy()) for x in given)))
        compare(result, expected)


def check_refusal(error: UnsupportedModel, decomposed: bool) -> None:
    """Return if everything that is refused has one of the stated reasons."""
    for problem in error.problems:
        in_place = IN_PLACE in problem.message and not decomposed
        assert in_place or any(reason in problem.message for reason in REASONS), problem


def compare(actual: Sequence[Any], expected: Sequence[Any]) -> None:
    """Return if our tensors equal those of PyTorch, including dtypes and shapes."""
    assert len(actual) == len(expected)
    for a, b in zip(actual, expected, strict=True):
        assert (str(a.dtype), a.shape) == (str(b.dtype).split(".")[1], tuple(b.shape))
        numbers = a.numpy().astype(np.float64)
        np.testing.assert_allclose(numbers, b.double().numpy(), 1e-4, 1e-5)


def flat(results: Any) -> list[Any]:
    """Return the tensors in nested results."""
    if isinstance(results, dict):
        results = list(results.values())
    if isinstance(results, tuple | list):
        return [tensor for item in results for tensor in flat(item)]
    return [results]

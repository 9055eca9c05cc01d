"""Scripts with control flow from PyTorch, against PyTorch at several sizes."""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn_import import load
from burn_import.options import Options
from burn_ir import UnsupportedModel
from tests.importer.torchscript.test_torch import flat

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(find_spec("torch") is None, reason="needs PyTorch"),
]
SHAPES = Options(shapes={"x": ("batch", 3)})


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Return nothing; one test for each model."""
    if find_spec("torch") is None:
        metafunc.parametrize("kind", [None])
        return
    from tests.importer.torchscript import list_models, scripted_models

    models = (*scripted_models.MODELS, *list_models.MODELS)
    metafunc.parametrize("kind", models, ids=lambda kind: kind.__name__)


def scripted(kind: Any, path: Path) -> Any:
    """Return a model whose script is in a file."""
    import torch

    torch.manual_seed(0)
    model = kind().eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.save(torch.jit.script(model), path)
    return model


def test_a_script_is_computed_or_its_construct_is_named(
    kind: Any, tmp_path: Path
) -> None:
    import torch

    from tests.importer.torchscript import list_models, scripted_models

    path = tmp_path / "net.pt"
    model = scripted(kind, path)
    refused: dict[Any, str] = {**scripted_models.REFUSED, **list_models.REFUSED}
    if kind in refused:
        with pytest.raises(UnsupportedModel, match=refused[kind]):
            load(path, SHAPES)
        return
    ours: Any = load(path, SHAPES)
    for seed in range(6):  # of both signs, with absolute values below and above one
        x = torch.randn(2 + seed, 3) * (1 + seed)
        x = x.abs() if seed % 2 else x
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # nested tensors are a prototype
            expected = flat(model(x))
        result = flat(ours(burn.tensor(x.numpy())))
        for a, b in zip(result, expected, strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-6)

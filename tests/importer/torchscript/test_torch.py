"""Traces and scripts from PyTorch, against PyTorch: operators and models."""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn_import import load
from burn_import.frontends.torch_export.complex_as_real import stored_array
from burn_import.options import Options
from burn_ir import UnsupportedModel
from tests.importer.aten import families
from tests.importer.aten.case import SIZES, Case
from tests.importer.aten.test_aten import compare
from tests.importer.aten.torch_programs import called, module, operator_of, tensor

pytestmark = pytest.mark.torch
#: Cases that PyTorch cannot trace, or computes differently from NumPy.
UNTRACED = {
    "aten.fill.Scalar": "there is no aten::fill in TorchScript",
    "aten.fill.Tensor": "there is no aten::fill in TorchScript",
    "aten.view.dtype": "TorchScript does not know what it shares",
    "aten.arange.default-sized": "a number that is computed is a tensor for the tracer",
    "aten.arange.start": "a number that is computed is a tensor for the tracer",
    **dict.fromkeys(
        ("aten.mm.dtype", "aten.bmm.dtype", "aten.addmm.dtype"),
        "PyTorch computes it on CUDA alone",
    ),
    "aten.vander.default": "NumPy gives float64 for float32, PyTorch float32",
}
CASES = [case for case in families.CASES if case.target.startswith("aten.")]
if find_spec("torch") is None:
    pytest.skip(f"{len(CASES)} cases: needs PyTorch", allow_module_level=True)
#: Prefixes of operators that PyTorch's tracer fails on.
UNTRACEABLE = (
    *("aten.convolution_backward", "aten.native_layer_norm_backward"),
    *("aten.native_group_norm_backward", "aten.resize_"),
)
MODELS = (
    *("resnet", "inverted", "dense", "unet", "resized", "attention", "vit"),
    *("recurrent", "encoder", "indexed"),
)


def refused(case: Case) -> str:
    """Return the message of a case that is refused, else ""."""
    return "known strides" if case.target.startswith("aten.as_strided") else ""


def flat(result: Any) -> list[Any]:
    """Return the tensors in the result of a model."""
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, list | tuple):
        return [actual for item in result for actual in flat(item)]
    return [result]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_traced_operator_is_computed(case: Case, tmp_path: Path) -> None:
    import torch

    if case.name in UNTRACED:
        pytest.skip(UNTRACED[case.name])
    if case.target.startswith(UNTRACEABLE) or operator_of(case) is None:
        pytest.skip("PyTorch's tracer fails")
    arrays = case.arrays(SIZES[-1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(
            module(called(case)).eval(), tuple(map(tensor, arrays)), check_trace=False
        )
        torch.jit.save(traced, tmp_path / "net.pt")
    reason = refused(case)
    if reason:
        with pytest.raises(UnsupportedModel, match=reason):
            load(tmp_path / "net.pt")
        return
    model: Any = load(tmp_path / "net.pt")
    result = model(*map(burn.tensor, map(stored_array, arrays)))
    results = result if isinstance(result, tuple) else (result,)
    compare(case, [np.asarray(x.numpy()) for x in results], case.results(arrays))


def made(name: str) -> tuple[Any, Any]:
    """Return a model with nonzero weights, and its inputs by batch."""
    import torch

    from tests.importer.torchscript import torch_models

    torch.manual_seed(0)
    make, inputs = torch_models.MODELS[name]
    model = make().eval()
    for key, value in model.state_dict().items():
        if value.is_floating_point():
            value.uniform_(0.5, 2) if key.endswith("var") else value.normal_(0, 0.3)
    return model, inputs


@pytest.mark.parametrize("how", ["trace", "script"])
@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_computed_at_two_sizes(name: str, how: str, tmp_path: Path) -> None:
    import torch

    model, inputs = made(name)
    path, shapes = tmp_path / "net.pt", {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if how == "trace":
            script = torch.jit.trace(model, inputs(2), strict=False, check_trace=False)
        else:
            script = torch.jit.script(model)
            parameter = script.forward.schema.arguments[1].name
            shapes = {parameter: ("batch", *inputs(2)[0].shape[1:])}
        torch.jit.save(script, path)
    ours: Any = load(path, Options(shapes=shapes))
    for batch in (2, 5):
        given = inputs(batch)
        with torch.no_grad():
            expected = flat(model(*given))
        result = flat(ours(*(burn.tensor(x.numpy()) for x in given)))
        for a, b in zip(result, expected, strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-5)
    theirs = {k for k in model.state_dict() if not k.endswith("num_batches_tracked")}
    assert set(ours.state_dict()) == theirs

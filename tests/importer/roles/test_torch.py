"""Models of one role each: keys, kinds, values and a step of training as in PyTorch."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn import nn
from burn.record import open_record
from burn_import import load
from burn_import.pipeline import import_model
from tests.importer.roles.checks import State, state_of, wrong_keys
from tests.modules import generate, import_file

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(find_spec("torch") is None, reason="needs PyTorch"),
]
if find_spec("torch") is not None:
    from tests.importer.roles.models import MODELS
else:
    MODELS = ()
RATE = 0.1


def pt2(model: Any, args: Any, path: Path) -> Path:
    """Write an exported program."""
    import torch

    path = path / "net.pt2"
    torch.export.save(torch.export.export(model, args, strict=False), path)
    return path


def torchscript(model: Any, args: Any, path: Path) -> Path:
    """Write a trace."""
    import torch

    path = path / "net.pt"
    torch.jit.trace(model, args, check_trace=False).save(path)
    return path


def preserved(model: Any, args: Any, path: Path) -> Path:
    """Write ONNX by the TorchScript exporter, with nothing folded."""
    import torch

    mode = torch.onnx.TrainingMode.PRESERVE
    return onnx(
        model, args, path, dynamo=False, training=mode, do_constant_folding=False
    )


def folded(model: Any, args: Any, path: Path) -> Path:
    """Write ONNX by the TorchScript exporter."""
    return onnx(model, args, path, dynamo=False)


def dynamo(model: Any, args: Any, path: Path) -> Path:
    """Write ONNX by the exporter of ``torch.export``."""
    pytest.importorskip("onnxscript")
    return onnx(model, args, path, dynamo=True, external_data=False)


def unoptimized(model: Any, args: Any, path: Path) -> Path:
    """Write ONNX by the exporter of ``torch.export``, with nothing folded."""
    pytest.importorskip("onnxscript")
    options: Any = {"dynamo": True, "optimize": False, "external_data": False}
    return onnx(model, args, path, **options)


def onnx(model: Any, args: Any, path: Path, **options: Any) -> Path:
    """Write ONNX; what the exporter does not know is skipped."""
    import torch

    path = path / "net.onnx"
    try:
        torch.onnx.export(model, args, path, **options)
    except torch.onnx.OnnxExporterError as error:
        pytest.skip(str(error)[:80])
    return path


PROGRAMS = (pt2, torchscript)
FILES = (preserved, folded, dynamo)
#: The exporters write a kernel and the batch normalization behind it as one.
ONE_KERNEL = frozenset({"normalized_batch", "normalized_rows"})


def exported(
    result: Callable[[], Any], write: Callable[..., Path], path: Path
) -> tuple[Any, Any, Path]:
    """Return a model in inference mode, its inputs, and its file."""
    import torch

    torch.manual_seed(0)
    model, args = result()
    model.eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model, args, write(model, args, path)


def author_state(model: Any) -> State:
    """Return all parameters and buffers of a PyTorch module."""
    parameters = dict(model.named_parameters(remove_duplicate=False))
    tensors = parameters | dict(model.named_buffers(remove_duplicate=False))
    arrays = {key: t.detach().numpy().copy() for key, t in tensors.items()}
    return State(arrays, frozenset(parameters))


def call(module: Any, args: Any) -> Any:
    """Return the result of a module of ours."""
    return module(*[burn.tensor(arg.numpy()) for arg in args])


@pytest.mark.parametrize("write", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("build", MODELS, ids=lambda f: f.__name__)
def test_programs_keep_the_state(
    build: Callable[[], Any], write: Callable[..., Path], tmp_path: Path
) -> None:
    import torch

    model, args, path = exported(build, write, tmp_path)
    file, name = generate(path, tmp_path)
    module: nn.Module = getattr(import_file(file), name).load()
    ours, author = state_of(module), author_state(model)
    assert wrong_keys(ours, author) == []
    assert set(author.parameters) == set(ours.parameters)
    with torch.no_grad():
        expected = model(*args).numpy()
    np.testing.assert_allclose(call(module, args).numpy(), expected, atol=1e-5)


@pytest.mark.parametrize("write", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("build", MODELS, ids=lambda f: f.__name__)
def test_a_step_and_back(
    build: Callable[[], Any], write: Callable[..., Path], tmp_path: Path
) -> None:
    """One step of gradient descent changes the same keys to the same numbers."""
    import torch

    model, args, path = exported(build, write, tmp_path)
    module = load(path).to(burn.Autodiff(burn.Cpu()))
    grads = (call(module, args) ** 2).sum().backward()
    for _, box in module.parameters():
        if box in grads:
            box.set((box.value - RATE * grads[box]).detach())
    model.train()(*args).square().sum().backward()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.grad is not None:
                parameter -= RATE * parameter.grad
    stepped, theirs = state_of(module), author_state(model.eval())
    for key in sorted(set(theirs.arrays) & set(stepped.arrays)):
        np.testing.assert_allclose(
            stepped.arrays[key], theirs.arrays[key], rtol=1e-3, atol=1e-4, err_msg=key
        )
    module.valid().save_weights(tmp_path / "stepped.safetensors")
    record = open_record(tmp_path / "stepped.safetensors")
    keys = {key: torch.tensor(np.array(array)) for key, array in record.items()}
    state = {key: keys.get(key, value) for key, value in model.state_dict().items()}
    model.load_state_dict(state, strict=True)
    with torch.no_grad():
        expected = model(*args).numpy()
    np.testing.assert_allclose(
        call(module.valid(), args).numpy(), expected, rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize("write", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("build", MODELS, ids=lambda f: f.__name__)
def test_a_state_dict_loads_and_is_loaded(
    build: Callable[[], Any], write: Callable[..., Path], tmp_path: Path
) -> None:
    """The keys are those of the author's ``state_dict``, strictly, in both directions.

    A trace lists all buffers, those of ``persistent=False`` too.
    """
    import torch

    model, args, path = exported(build, write, tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        jit: Any = torch.jit
        author: Any = model if write is pt2 else jit.load(path)
    state = {k: t.detach().roll(1) for k, t in author.state_dict().items()}
    module = load(path)
    module.load_state_dict({key: t.numpy() for key, t in state.items()})
    ours = {key: torch.tensor(t.numpy()) for key, t in module.state_dict().items()}
    # PyTorch makes the counts of batches itself where they lack, but not in a trace.
    counts = {k: t for k, t in state.items() if k.endswith("num_batches_tracked")}
    ours |= counts if write is torchscript else {}
    author.load_state_dict(ours, strict=True)
    for key, tensor in author.state_dict().items():
        if not key.endswith("num_batches_tracked"):
            assert torch.equal(tensor, state[key]), key


@pytest.mark.parametrize("write", FILES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("build", MODELS, ids=lambda f: f.__name__)
def test_files_hold_nothing_else_under_keys(
    build: Callable[[], Any], write: Callable[..., Path], tmp_path: Path
) -> None:
    model, args, path = exported(build, write, tmp_path)
    ours, author = state_of(load(path)), author_state(model)
    wrong = wrong_keys(ours, author)
    if build.__name__ not in ONE_KERNEL or write is preserved:
        assert wrong == []


@pytest.mark.parametrize("write", [preserved, unoptimized], ids=lambda f: f.__name__)
def test_the_options_that_the_note_names_keep_parameters(
    write: Callable[..., Path], tmp_path: Path
) -> None:
    (build,) = (model for model in MODELS if model.__name__ == "normalized_batch")
    model, _, path = exported(build, dynamo, tmp_path)
    assert "optimize=False" in " ".join(import_model(path).notes)
    model, _, path = exported(build, write, tmp_path)
    assert import_model(path).notes == ()
    ours, author = state_of(load(path)), author_state(model)
    # Without optimization the exporter adds a bias of zeros to the convolution.
    assert set(author.parameters) <= set(ours.parameters)

"""Third-party models as modules of PyTorch: values, gradients, keys.

They are not in the repository: ``--zoo`` says where they are. Everything here needs
PyTorch (``-m torch``).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn_import.options import Options
from burn_import.pipeline import import_model, write_model
from tests.modules import Array, generate, import_file
from tests.zoo.recorded import Case, zoo_cases

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytestmark = pytest.mark.torch

#: How many files there are in each folder.
COUNTS = {"arch": 159, "real": 11}
#: Files whose gradients are compared with those of Burn.
GRADIENTS = (
    *("arch/bert.ts-op17", "arch/bilstm_tagger.ts-op17", "arch/conv3d.ts-op9"),
    *("arch/gpt2.ts-op17", "arch/gru_lm.ts-op17", "arch/llama_gqa_kv.ts-op17"),
    *("arch/mamba.dynamo-op20", "arch/mobilenet_v2.dynamo-op20", "arch/swin.ts-op13"),
    *("arch/t5_encoder.ts-op17", "arch/tcn_1d.dynamo-op20", "real/dtln/dtln_2"),
)


def cases(zoo: Path) -> list[Case]:
    """Return the files with recorded calls."""
    if not (zoo / "manifest.json").is_file():
        return []
    return [c for c in zoo_cases(zoo) if c.name.split("/")[0] in COUNTS and c.goldens]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Return nothing; one test for each file, or one that is skipped."""
    found = cases(metafunc.config.getoption("--zoo"))
    reason = f"no models (see --zoo): {sum(COUNTS.values())} not checked"
    none = [pytest.param(None, marks=pytest.mark.skip(reason=reason))]
    if "case" in metafunc.fixturenames:
        metafunc.parametrize(
            "case", [pytest.param(case, id=case.name) for case in found] or none
        )
    if "trained" in metafunc.fixturenames:
        some = [pytest.param(c, id=c.name) for c in found if c.name in GRADIENTS]
        assert not found or len(some) == len(GRADIENTS)
        metafunc.parametrize("trained", some or none)


def loaded(path: Path, folder: Path) -> Any:
    """Return the model of a file as a module of PyTorch, with its weights."""
    options = Options(class_name="Net", stem="torch_net", target="torch")
    written = write_model(import_model(path, options), folder / "torch_net.py")
    text = written.module.read_text("ascii")
    assert "burn" not in text.split('"""', 2)[2]
    return import_file(written.module).Net.load()


def as_tensor(value: Any) -> Any:
    """Return a recorded input as a tensor of PyTorch."""
    if isinstance(value, list):
        return [as_tensor(item) for item in value]
    return torch.from_numpy(np.array(value))


def as_array(value: Any) -> Any:
    """Return a result as arrays."""
    if isinstance(value, list | tuple):
        return [as_array(item) for item in value]
    return value.detach().numpy()


def results(model: Any, inputs: list[Any]) -> list[Any]:
    """Return what a model gives, several results or one."""
    result = model(*inputs)
    return list(result) if isinstance(result, tuple) else [result]


def test_outputs_are_those_recorded(case: Case, tmp_path: Path) -> None:
    model = loaded(case.path, tmp_path)
    for golden in case.goldens:
        inputs, expected = golden.read()
        with torch.no_grad():
            actual = results(model, [as_tensor(value) for value in inputs])
        for position, value in expected.items():
            where = f"{golden.path.name}, output {position}"
            case.compare(as_array(actual[position]), value, where)


def losses(model: Any, inputs: list[Any], wrap: Any) -> Any:
    """Return a sum of all float results with fixed weights of both signs."""
    total: Any = 0.0
    for result in results(model, inputs):
        if "float" in str(result.dtype):
            shape = tuple(result.shape)
            weights = np.cos(np.arange(np.prod(shape, dtype=int)), dtype=np.float32)
            total = total + (result * wrap(weights.reshape(shape))).sum()
    return total


def gradients_of_burn(path: Path, folder: Path, inputs: list[Any]) -> dict[str, Array]:
    """Return the gradient of each parameter of Burn's module, by its path."""
    module, name = generate(path, folder)
    tape = burn.Autodiff(burn.Cpu())
    model = getattr(import_file(module), name).load(backend=tape)
    loss = losses(model, [burn.tensor(value) for value in inputs], burn.tensor)
    named = loss.backward().by_name(model)
    return {path: gradient.numpy() for path, gradient in named.items()}


def named_gradients(model: Any) -> Iterator[tuple[str, Array]]:
    """Yield the gradient of each parameter of a module of PyTorch that has one."""
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            yield name, parameter.grad.numpy()


def test_gradients_are_those_of_burn(trained: Case, tmp_path: Path) -> None:
    inputs, _ = trained.goldens[0].read()
    model = loaded(trained.path, tmp_path).train()
    losses(model, [as_tensor(v) for v in inputs], torch.from_numpy).backward()
    expected = gradients_of_burn(trained.path, tmp_path, inputs)
    actual = dict(named_gradients(model))
    common = actual.keys() & expected.keys()
    assert len(common) >= 0.8 * len(expected) > 0
    for name in sorted(common):
        scale = max(float(np.abs(expected[name]).max()), 0.01)
        error = np.abs(actual[name] - expected[name]) / scale
        assert error.max() < 2e-3, name

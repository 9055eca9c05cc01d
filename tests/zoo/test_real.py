"""Trained third-party models: generated, written, imported from disk, compared.

The models are not in the repository. ``--zoo FOLDER`` says where they are; its
``manifest.json`` names the tolerance and the recorded inputs and outputs of each.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn.nn import Module
from burn_import import load
from tests.modules import (
    Array,
    assert_close,
    assert_same,
    call,
    generate,
    import_file,
    value_names,
)

#: Every model that has to be there when the folder is.
NAMES = (
    *("dtln/dtln_2", "magika/magika_v3_3", "mnist/mnist", "mnist/opt_mnist"),
    *("mnist-external/mnist", "silero-vad/silero_vad", "ultraface/rfb_320"),
    *("silero-vad/silero_vad_16k_op15", "silero-vad/silero_vad_half"),
    *("super-resolution/super_resolution", "yunet/yunet_n_dynamic"),
)


@dataclass(frozen=True)
class Entry:
    """One model of the manifest, with its generated class once it is imported."""

    name: str
    path: Path
    goldens: tuple[Path, ...]
    tolerance: dict[str, float]
    model_class: Any = None

    def cases(self) -> Iterator[tuple[list[Array], dict[str, Array]]]:
        """Return inputs and expected outputs, in the order of the graph."""
        inputs, outputs = value_names(self.path)
        for golden in self.goldens:
            with np.load(golden) as data:
                yield (
                    [data[f"in:{name}"] for name in inputs],
                    {name: data[f"out:{name}"] for name in outputs},
                )


def entries(zoo: Path) -> dict[str, Entry]:
    """Return the real models that the manifest lists, by name."""
    manifest = json.loads((zoo / "manifest.json").read_text("utf-8"))
    results = {}
    for file in manifest["files"]:
        name = file["path"].removeprefix("real/").removesuffix(".onnx")
        if file["path"] == f"real/{name}.onnx":
            goldens = tuple(zoo / golden for golden in file["golden"])
            results[name] = Entry(name, zoo / file["path"], goldens, file["tolerance"])
    return results


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Return nothing; one test for each model, or a skipped one if there is none."""
    if "entry" not in metafunc.fixturenames:
        return
    zoo: Path = metafunc.config.getoption("--zoo")
    if (zoo / "manifest.json").is_file():
        result = entries(zoo)
        metafunc.parametrize("entry", result.values(), ids=result, indirect=True)
    else:
        skip = pytest.mark.skip(reason=f"no models in {zoo.name}/ (see --zoo)")
        metafunc.parametrize("entry", [pytest.param(None, marks=skip)], indirect=True)


@pytest.fixture(scope="module")
def entry(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Entry:
    """The model, with the class generated for it."""
    listed: Entry = request.param
    path, name = generate(listed.path, tmp_path_factory.mktemp("real"))
    return replace(listed, model_class=getattr(import_file(path), name))


@pytest.fixture(scope="module")
def model(entry: Entry) -> Module:
    """The generated model with its weights."""
    loaded: Module = entry.model_class.load()
    return loaded


def test_the_folder_is_complete(request: pytest.FixtureRequest) -> None:
    zoo: Path = request.config.getoption("--zoo")
    if not (zoo / "manifest.json").is_file():
        pytest.skip(f"no folder of models (--zoo): {len(NAMES)} models not checked")
    assert set(NAMES) <= set(entries(zoo))


def test_the_module_agrees_with_the_recorded_outputs(
    entry: Entry, model: Module
) -> None:
    assert entry.goldens
    for inputs, expected in entry.cases():
        assert_close(call(model, inputs), expected, **entry.tolerance)


def test_several_outputs_have_names(entry: Entry, model: Module) -> None:
    inputs, expected = next(entry.cases())
    assert callable(model)
    result = model(*map(burn.tensor, inputs))
    if len(expected) > 1:
        assert len(result._fields) == len(expected)
    else:
        assert isinstance(result, burn.Tensor)


@pytest.mark.sampled(2)
def test_load_gives_the_same_weights(entry: Entry, model: Module) -> None:
    loaded = {
        key: value.numpy() for key, value in load(entry.path).state_dict().items()
    }
    written = {key: value.numpy() for key, value in model.state_dict().items()}
    assert list(loaded) == list(written)
    assert_same(list(loaded.values()), list(written.values()))


@pytest.mark.sampled(2)
def test_load_gives_the_same_bits(entry: Entry, model: Module) -> None:
    loaded = load(entry.path)
    for inputs, _ in entry.cases():
        assert_same(call(loaded, inputs), call(model, inputs))


@pytest.mark.sampled(2)
def test_load_agrees_with_the_recorded_outputs(entry: Entry) -> None:
    loaded = load(entry.path)
    for inputs, expected in entry.cases():
        assert_close(call(loaded, inputs), expected, **entry.tolerance)


def test_valid_of_the_differentiated_model_gives_the_same_bits(
    entry: Entry, model: Module
) -> None:
    trained = entry.model_class.load(backend=burn.Autodiff(burn.Cpu()))
    assert all(box.value.backend.tracks_gradients for _, box in trained.parameters())
    for inputs, _ in entry.cases():
        assert_same(call(trained.valid(), inputs), call(model, inputs))

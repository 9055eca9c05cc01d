"""Third-party traces, imported without PyTorch.

They are not in the repository: ``--zoo`` says where they are. Outputs are compared by
position with every recorded call of the same model, at every size.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn_import import load
from burn_import.pytorch import read
from tests.zoo.test_parity import keys, module, tree

#: What is in a ``state_dict`` and not in the module, and what is only in the module.
DIFFERING = {
    # PyTorch does not save the buffer of positions, and TorchScript does not say so.
    "bert_tiny": {"+m.embeddings.position_ids"},
    # The same of a buffer that is not persistent, which nothing reads.
    "buffer_mutation": {"+tmp"},
    # Counts of batches, which nothing reads.
    "cnn_bn": {"-b1.num_batches_tracked", "-b2.num_batches_tracked"},
    "digits_cnn": {"-b1.num_batches_tracked", "-b2.num_batches_tracked"},
}


def entries(zoo: Path) -> list[Any]:
    """Return what the manifest says of the archives; None if it is not there."""
    if not (zoo / "manifest.json").is_file():
        return [None]
    files = json.loads((zoo / "manifest.json").read_text("utf-8"))["files"]
    results = [file for file in files if file["kind"] == "torchscript"]
    return [file for file in results if file.get("golden")]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Return nothing; one test for each archive."""
    if "entry" in metafunc.fixturenames:
        results = entries(metafunc.config.getoption("--zoo"))
        names = [name_of(e) if e else "no archives (see --zoo)" for e in results]
        metafunc.parametrize("entry", results, ids=names)


def name_of(entry: Any) -> str:
    """Return the name of a model."""
    return Path(entry["path"]).name.partition(".")[0]


def test_what_is_recorded_is_computed(
    entry: Any, request: pytest.FixtureRequest
) -> None:
    if entry is None:
        pytest.skip("no models (see --zoo): 10 archives not checked")
    zoo: Path = request.config.getoption("--zoo")
    path = zoo / entry["path"]
    model: Any = load(path)
    for golden in entry["golden"]:
        compare(model, zoo / golden)
    compare_keys(model, path.with_name(f"{name_of(entry)}.state_dict.pt"))


def compare(model: Any, golden: Path) -> None:
    """Return if the model gives what is recorded."""
    with np.load(golden) as data:
        inputs = [data[key] for key in data.files if key.startswith("in:")]
        expected = [data[key] for key in data.files if key.startswith("out:")]
    result = model(*map(burn.tensor, inputs))
    results = result if isinstance(result, tuple) else (result,)
    for actual, right in zip(results, expected, strict=True):
        np.testing.assert_allclose(
            actual.numpy(), right, rtol=1e-5, atol=1e-5, err_msg=golden.name
        )


def compare_keys(model: Any, path: Path) -> None:
    """Return if the keys are those of the ``state_dict``, but for what is listed."""
    ours, theirs = set(model.state_dict()), set(read(path))
    actual = {f"+{key}" for key in ours - theirs} | {f"-{key}" for key in theirs - ours}
    assert actual == DIFFERING.get(path.name.partition(".")[0], set())


def test_the_tree_is_that_of_the_exported_program(
    entry: Any, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    if entry is None:
        pytest.skip("no models (see --zoo): 10 archives not compared")
    path = request.config.getoption("--zoo") / entry["path"]
    name = name_of(entry)
    script = module(path, tmp_path / "a")
    program = module(path.with_name(f"{name}.pt2"), tmp_path / "b")
    assert tree(script) == tree(program)
    unsaved = {
        key.removeprefix("+") for key in DIFFERING.get(name, ()) if key[0] == "+"
    }
    actual = keys(script)
    assert {key: actual[key] for key in actual.keys() - unsaved} == keys(program)

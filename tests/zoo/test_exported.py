"""Third-party exported programs (``.pt2``), imported without PyTorch.

They are not in the repository: ``--zoo`` says where they are. Outputs are compared by
position with every recorded call, at every size.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn_import.frontends.torch_export import read
from burn_ir import UnreadableFile
from tests.modules import generate, import_file

#: What does not give what is recorded, and why.
FAILING: dict[str, str] = {}


def entries(zoo: Path) -> list[Any]:
    """Return what the manifest says of the programs; None if it is not there."""
    if not (zoo / "manifest.json").is_file():
        return [None]
    files = json.loads((zoo / "manifest.json").read_text("utf-8"))["files"]
    results = [file for file in files if file["path"].endswith(".pt2")]
    return [file for file in results if file["category"] == "pytorch"]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Return nothing; one test for each program."""
    if "entry" in metafunc.fixturenames:
        results = entries(metafunc.config.getoption("--zoo"))
        names = [name_of(e) if e else "no programs (see --zoo)" for e in results]
        metafunc.parametrize("entry", results, ids=names)


def name_of(entry: Any) -> str:
    """Return the path of a program without its suffix."""
    return str(entry["path"]).removesuffix(".pt2")


def test_what_is_recorded_is_computed(
    entry: Any, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    if entry is None:
        pytest.skip("no models (see --zoo): 14 programs not checked")
    zoo: Path = request.config.getoption("--zoo")
    if name_of(entry) in FAILING:
        with pytest.raises((AssertionError, KeyError)):
            compare(zoo, entry, tmp_path)
        pytest.xfail(FAILING[name_of(entry)])
    compare(zoo, entry, tmp_path)


def compare(zoo: Path, entry: Any, folder: Path) -> None:
    """Return if the module gives what is recorded, call after call."""
    path, name = generate(zoo / entry["path"], folder)
    model = getattr(import_file(path), name).load()
    for golden in entry["golden"]:
        with np.load(zoo / golden) as data:
            inputs = [data[f"in:{value['name']}"] for value in entry["inputs"]]
            result = model(*map(burn.tensor, inputs))
            results = result if isinstance(result, tuple) else (result,)
            for position, actual in enumerate(results):
                expected = data[f"out:#{position}"]
                np.testing.assert_allclose(
                    actual.numpy(), expected, rtol=1e-5, atol=1e-5, err_msg=golden
                )


def test_deep_json_is_refused(request: pytest.FixtureRequest) -> None:
    path: Path = request.config.getoption("--zoo") / "adversarial/pt2_bad_json.pt2"
    if not path.is_file():
        pytest.skip("no models (see --zoo)")
    with pytest.raises(UnreadableFile, match="expected JSON"):
        read(path)

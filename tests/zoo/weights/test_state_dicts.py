"""Third-party weights: each file becomes source that loads them, or a reason.

They are not in the repository: ``--zoo`` and ``--burn-fixtures`` say where they are.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn.record import RecordError
from burn_import import load
from burn_import.codegen.gate.gate import check_body
from burn_import.frontends.recipes.reader import weights_in
from burn_import.options import Hints, Options
from burn_import.pipeline import Compiled, import_model, write_model
from burn_import.pytorch import read
from burn_import.weights import arrays_of
from burn_ir import ModelError

ROOT = Path(__file__).parent.parent.parent.parent
SUFFIXES = (".pt", ".pth", ".ckpt", ".bin", ".safetensors", ".index.json")
#: In the names of files that hold a program too.
PROGRAM = "torchscript"
#: Folders with weights, and how many files of them become source.
FOLDERS = {
    "zoo/pytorch": 39,
    "zoo/real": 7,
    "burn-fixtures/burn-pt": 57,
}
#: Why the others do not: parts of their names, and of what is said.
REFUSED = {
    "malicious_os_system": "the pickle calls",
    "broken.pt": "damaged or cut off",
    "sd_all_dtypes": "complex128",
}
#: Layers' counts of batches are left out; keys that Python does not allow are others.
COUNTER = "num_batches_tracked"
RENAMED = {"weird_keys.pt", "list_of_tensors.pt", "single_tensor.pt", "sd_nested.pt"}
RENAMED |= {"buffer_mutation.state_dict.pt", "quantized_tensor.pt"}
OPTIONS = Options(class_name="Net", stem="net")


def files(request: pytest.FixtureRequest, name: str) -> list[Path]:
    """Return the files of weights in a folder."""
    option, _, rest = name.partition("/")
    top: Path = request.config.getoption(f"--{option}")
    paths = sorted((top / rest).rglob("*"))
    results = [p for p in paths if p.name.endswith(SUFFIXES) and PROGRAM not in p.name]
    if not results:
        pytest.skip(f"no weights in {name}: {FOLDERS[name]} not checked")
    return results


@pytest.mark.parametrize("name", FOLDERS)
@pytest.mark.sampled(3)
def test_files_become_source_or_a_reason(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    result = 0
    for path in files(request, name):
        reason = next((w for part, w in REFUSED.items() if part in path.name), None)
        if reason is None:
            check(path, tmp_path / f"net_{result}.py")
            result += 1
            continue
        with pytest.raises((ModelError, RecordError), match=reason):
            write_model(import_model(path, OPTIONS), tmp_path / "refused.py")
    assert result == FOLDERS[name]
    lint(tmp_path)


def check(path: Path, module: Path) -> None:
    """Return if the module of a file holds its weights, each bit by bit."""
    compiled = import_model(path, OPTIONS)
    check_body(compiled.text.encode("ascii"))
    write_model(compiled, module)
    assert compiled.text == import_model(path, OPTIONS).text
    state = load(path, OPTIONS).state_dict()
    source = dict(arrays_of(weights_in(path, None)))
    kept = {key: a for key, a in source.items() if key in state or COUNTER not in key}
    assert len(kept) == len(state), path.name
    if path.name in RENAMED:
        actual = sorted(value.numpy().tobytes() for value in state.values())
        assert actual == sorted(array.tobytes() for array in kept.values())
        return
    for key, array in kept.items():
        value = state[key].numpy()
        assert value.dtype == array.dtype and value.shape == array.shape
        assert value.tobytes() == array.tobytes(), (path.name, key)


def lint(folder: Path) -> None:
    """Return if ruff has nothing to say of the modules in a folder."""
    pytest.importorskip("ruff")
    config = ("--no-cache", "--config", str(ROOT / "pyproject.toml"))
    command = [sys.executable, "-m", "ruff", "check", *config, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_all_of_a_checkpoint_can_be_asked_for(request: pytest.FixtureRequest) -> None:
    actual = [
        p for p in files(request, "zoo/pytorch") if p.name == "checkpoint_full.pt"
    ]
    hints = Hints(top_level_key="model_state_dict")
    asked: Compiled = import_model(actual[0], Options(stem="net", hints=hints))
    assert [key for key, _ in asked.weights] == [
        key.removeprefix("model_state_dict.")
        for key in read(actual[0])
        if key.startswith("model_state_dict.") and COUNTER not in key
    ]


def test_a_trained_network_of_numbered_layers(request: pytest.FixtureRequest) -> None:
    folder: Path = request.config.getoption("--zoo") / "pytorch/digits_mlp"
    if not folder.is_dir():
        pytest.skip("no weights of digits_mlp: 2 outputs not checked")
    hints = Hints(activation="relu")
    options = Options(stem="net", hints=hints)
    model: Any = load(folder / "digits_mlp.state_dict.pt", options)
    for number in ("", "2"):
        golden = np.load(folder / f"digits_mlp.pt2.golden{number}.npz")
        image, expected = golden["in:image"], golden["out:#0"]
        actual = model(burn.tensor(image.reshape(len(image), -1))).numpy()
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)

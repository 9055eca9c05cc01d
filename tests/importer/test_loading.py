"""``load`` gives the module that would be written, without writing it."""

import copy
import inspect
import linecache
import os
import pickle
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import burn
from burn_import import Options, load
from burn_import.pipeline import import_model, write_model
from tests.modules import Array, assert_same, call, import_file

GOLDEN = Path(__file__).parent.parent / "golden"
MODELS = sorted(path.parent.name for path in GOLDEN.glob("*/model.onnx"))
#: Some third-party models, if the folder exists.
ZOO = [
    "arch/bert.ts-op17.onnx",
    "arch/llama.dynamo-op20.onnx",
    "arch/convnext.ts-op11.onnx",
    "arch/gru_lm.dynamo-op20.onnx",
    "quant/bert_qdq_u8s8_per_tensor.onnx",
]


def recorded_inputs(path: Path, data: Path, prefix: str) -> list[Array | None]:
    """Return the inputs of one recorded call, None where one is left out."""
    names = [
        value.name for value in onnx.load(path, load_external_data=False).graph.input
    ]
    with np.load(data) as file:
        return [file.get(f"{prefix}:{name}") for name in names]


def same_bits(path: Path, inputs: list[Array | None], folder: Path) -> None:
    """Return nothing if the loaded and the written module agree to the last bit."""
    options = Options("Net", "model")
    compiled = import_model(path, options)
    written = write_model(compiled, folder / "model.py")
    model = getattr(import_file(written.module), compiled.class_name).load()
    loaded = load(path, options)
    assert inspect.getsource(sys.modules[type(loaded).__module__]) == compiled.text
    ours, theirs = loaded.state_dict(), model.state_dict()
    assert list(ours) == list(theirs)
    assert_same(
        [v.numpy() for v in ours.values()], [v.numpy() for v in theirs.values()]
    )
    assert_same(call(loaded, inputs), call(model, inputs))


@pytest.mark.parametrize("name", MODELS)
def test_a_loaded_model_gives_the_bits_of_a_written_one(
    name: str, tmp_path: Path
) -> None:
    path = GOLDEN / name / "model.onnx"
    with np.load(GOLDEN / name / "io.npz") as data:
        first, *_ = sorted({key.partition(":")[0][2:] for key in data if key < "o"})
    same_bits(
        path, recorded_inputs(path, GOLDEN / name / "io.npz", f"in{first}"), tmp_path
    )


@pytest.mark.parametrize("name", ZOO)
def test_so_do_models_of_others(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    path = request.config.getoption("--zoo") / name
    if not path.is_file():
        pytest.skip(f"no third-party models (see --zoo): {name} not checked")
    data = path.with_suffix("").with_name(f"{path.stem}.golden.npz")
    same_bits(path, recorded_inputs(path, data, "in"), tmp_path)


@pytest.fixture
def loaded() -> Any:
    """A model of two classes and more."""
    return load(GOLDEN / "residual" / "model.onnx")


def test_tracebacks_show_the_line(loaded: Any) -> None:
    vars(loaded)["stem"] = None
    with pytest.raises(TypeError, match="NoneType") as caught:
        loaded(burn.tensor(np.zeros((1, 3, 9, 10), np.float32)))
    frames = traceback.extract_tb(caught.value.__traceback__)
    ours = [f for f in frames if f.filename.startswith("<burn_import.loaded_")]
    source = inspect.getsource(sys.modules[type(loaded).__module__]).splitlines()
    assert ours
    for frame in ours:
        assert frame.lineno and frame.line == source[frame.lineno - 1].strip()
    linecache.checkcache()  # what IPython and pdb do: the lines stay
    assert linecache.getline(ours[0].filename, ours[0].lineno or 0).strip()


def test_the_source_of_classes_is_known(loaded: Any) -> None:
    kind = type(loaded)
    text = inspect.getsource(kind)
    assert text.startswith(f"class {kind.__name__}(nn.Module):")
    assert inspect.getsource(kind.__call__).lstrip().startswith("@nn.check_inputs(")
    assert kind.__module__.startswith("burn_import.loaded_")
    assert type(load(GOLDEN / "residual" / "model.onnx")) is not kind


def test_copies_and_pickles_in_this_process(loaded: Any) -> None:
    for twin in (copy.deepcopy(loaded), pickle.loads(pickle.dumps(loaded))):
        assert type(twin) is type(loaded) and twin is not loaded
        ours, theirs = loaded.state_dict(), twin.state_dict()
        assert_same(
            [v.numpy() for v in ours.values()], [v.numpy() for v in theirs.values()]
        )


def test_a_record_is_not_looked_for(loaded: Any) -> None:
    """There is no file beside a loaded module: ``load`` of its class says so."""
    with pytest.raises(FileNotFoundError):
        type(loaded).load()


def test_options_are_those_of_the_command() -> None:
    path = GOLDEN / "residual" / "model.onnx"
    options = Options(class_name="Half", dtype="float16", flat=True)
    half: Any = load(path, options)
    assert type(half).__name__ == "Half"
    assert {str(v.dtype) for v in half.state_dict().values()} == {"float16"}
    text = import_model(path, options).text
    assert inspect.getsource(sys.modules[type(half).__module__]) == text


def test_another_process_does_not_take_a_pickle_for_another_model(
    loaded: Any, tmp_path: Path
) -> None:
    """There is a first loaded model there, too, but it is not this one."""
    path = tmp_path / "model.pickle"
    path.write_bytes(pickle.dumps(load(GOLDEN / "residual" / "model.onnx")))
    code = (
        "import pickle, sys; from pathlib import Path; from burn_import import load\n"
        f"load({str(GOLDEN / 'shapes' / 'model.onnx')!r})\n"
        f"pickle.loads(Path({str(path)!r}).read_bytes())"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )
    assert "No module named 'burn_import.loaded_" in done.stderr

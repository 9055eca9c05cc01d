"""One model as a program (``.pt2``) and as ONNX becomes one tree of modules.

They are not in the repository: ``--zoo`` says where they are. Weights of one load into
the other, and give the same outputs there.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn.nn import Module
from burn_import.options import Options
from burn_import.pipeline import import_model, write_model
from tests.modules import import_file

#: What PyTorch's exporter to ONNX does to a model before it writes the file: the passes
#: that do the same to the program, and why.
EXPORTED: dict[str, tuple[tuple[str, ...], str]] = {
    name: (
        ("all", "fold_batch_norm"),
        "the exporter to ONNX multiplies batch normalization into the convolution",
    )
    for name in ("cnn_bn", "cnn_bn.decomposed", "digits_cnn")
}
#: Modules that nothing reads the results of: programs list them, ONNX files do not.
UNREAD = dict.fromkeys(("bert_tiny", "bert_tiny.decomposed"), "m.pooler")
#: Buffers with ``persistent=False``, which ONNX files do not tell from others.
UNSAVED = {"m.embeddings.position_ids"}
#: Programs of which there is no ONNX file.
ALONE = {"buffer_mutation": "the exporter to ONNX refuses what changes a buffer"}

_PADDING = re.compile(r", padding_idx=\d+")


def programs(zoo: Path) -> list[Path | None]:
    """Return the programs; None if they are not there."""
    return [*sorted((zoo / "pytorch").rglob("*.pt2"))] or [None]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Return nothing; one test for each program."""
    if "path" in metafunc.fixturenames:
        results = programs(metafunc.config.getoption("--zoo"))
        names = [path.stem if path else "no programs (see --zoo)" for path in results]
        metafunc.parametrize("path", results, ids=names)


def module(path: Path, folder: Path, passes: tuple[str, ...] | None = None) -> Any:
    """Return the module that is written for the file at ``path``."""
    folder.mkdir()
    options = Options(class_name="Net", stem="net", passes=passes)
    written = write_model(import_model(path, options), folder / "net.py").module
    return import_file(written).Net.load()


def tree(model: Module) -> list[str]:
    """Return the path, class and arguments of every module.

    ONNX has no padding_idx: PyTorch's exporters leave it out.
    """
    return [
        f"{path} {type(inner).__name__}({_PADDING.sub('', inner.describe())})"
        for path, inner in model.modules()
    ]


def keys(model: Module) -> dict[str, str]:
    """Return the type of every tensor of the state."""
    state = model.state_dict()
    return {key: f"{v.dtype}{list(v.shape)}" for key, v in sorted(state.items())}


def inputs(path: Path) -> list[list[Any]]:
    """Return the recorded inputs, at every size."""
    results = []
    for golden in sorted(path.parent.glob(f"{path.name}.golden*.npz")):
        with np.load(golden) as data:
            arrays = [data[name] for name in data.files if name.startswith("in:")]
            results.append([burn.tensor(array) for array in arrays])
    return results


def outputs(model: Any, given: list[Any]) -> list[Any]:
    """Return what ``model`` gives, as arrays."""
    result = model(*given)
    results = result if isinstance(result, tuple) else (result,)
    return [value.numpy() for value in results]


def test_a_program_is_what_the_onnx_file_is(path: Path | None, tmp_path: Path) -> None:
    if path is None:
        pytest.skip("no models (see --zoo): 14 programs not compared")
    name = path.stem
    twin = path.with_name(f"{name.partition('.')[0]}.dynamo-op20.onnx")
    if name in ALONE:
        assert not twin.exists()
        pytest.skip(ALONE[name])
    passes, _ = EXPORTED.get(name, (None, ""))
    program, onnx = module(path, tmp_path / "a", passes), module(twin, tmp_path / "b")
    left_out = UNREAD.get(name)
    assert without(left_out, tree(program)) == tree(onnx)
    saved = {key: kind for key, kind in keys(onnx).items() if key not in UNSAVED}
    assert set(without(left_out, keys(program))) == set(saved)
    assert keys(program).items() >= saved.items()
    if passes is not None:
        plain = module(path, tmp_path / "c")
        assert tree(plain) != tree(onnx)  # else the table has a line too many
    agree(program, onnx, inputs(path))


def without(prefix: str | None, names: Iterable[str]) -> list[str]:
    """Return the names that do not begin with ``prefix``."""
    return [name for name in names if prefix is None or not name.startswith(prefix)]


def agree(program: Module, onnx: Module, given: list[list[Any]]) -> None:
    """Return if other weights, loaded from one to the other, do the same in both.

    What one does not have stays as it is in the other.
    """
    assert given
    for source, target in ((program, onnx), (onnx, program)):
        state = {
            key: value * 1.25 if value.dtype == "float32" else value
            for key, value in source.state_dict().items()
        }
        source.load_state_dict(state)
        shared = {k: v for k, v in state.items() if k in target.state_dict()}
        target.load_state_dict({**target.state_dict(), **shared})
        for call in given:
            pairs = zip(outputs(program, call), outputs(onnx, call), strict=True)
            for a, b in pairs:
                np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)

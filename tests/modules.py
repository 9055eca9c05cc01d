"""Generated modules: imported from their files, called with arrays, compared."""

from collections.abc import Mapping, Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray

import burn
from burn.nn import Module
from burn_import.cli.modules import CurrentSource
from burn_import.options import Options
from burn_import.pipeline import import_model, write_model

Array = NDArray[Any]
Arrays = Mapping[str, Array]


def generate(model: Path, folder: Path) -> tuple[Path, str]:
    """Return the module written for ``model`` into ``folder``, and its main class."""
    compiled = import_model(model, Options(class_name="Net", stem="net"))
    return write_model(compiled, folder / "net.py").module, compiled.class_name


def import_file(path: Path) -> ModuleType:
    """Return the module at ``path``, executed, without a place in ``sys.modules``.

    Bytecode is not read: a test may write the file twice in a second.
    """
    loader = CurrentSource(path.stem, str(path))
    spec = spec_from_file_location(path.stem, path, loader=loader)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def call(model: Module, inputs: Sequence[Array | None]) -> list[Array]:
    """Return the results of ``model``; None leaves an input out."""
    given = list(inputs)
    while given and given[-1] is None:
        given.pop()
    assert callable(model)
    result = model(*(None if x is None else burn.tensor(x) for x in given))
    return [x.numpy() for x in (result if isinstance(result, tuple) else (result,))]


def value_names(path: Path, stored: bool = False) -> tuple[list[str], list[str]]:
    """Return the names of a model's inputs, and of its outputs.

    Inputs with a stored value count if ``stored``.
    """
    graph = onnx.load(path, load_external_data=False).graph
    left_out = set() if stored else {tensor.name for tensor in graph.initializer}
    inputs = [value.name for value in graph.input if value.name not in left_out]
    return inputs, [value.name for value in graph.output]


def onnxruntime_outputs(path: Path, feeds: Arrays) -> list[Array]:
    """Return what onnxruntime computes, without its graph optimizations."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = (
        onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    )
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        path, options, providers=["CPUExecutionProvider"]
    )
    return [np.asarray(value) for value in session.run(None, dict(feeds))]


def assert_same(actual: Sequence[Array], expected: Sequence[Array]) -> None:
    """Return nothing if all bits agree; NaN equals NaN."""
    assert len(actual) == len(expected)
    for a, b in zip(actual, expected, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_array_equal(a, b)


def assert_close(
    actual: Sequence[Array],
    expected: Mapping[str, Array],
    rtol: float,
    atol: float,
) -> None:
    """Return nothing if dtypes, shapes, and what is no float agree exactly."""
    assert len(actual) == len(expected)
    for a, (name, b) in zip(actual, expected.items(), strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape), name
        loose = b.dtype.kind in "fc"
        np.testing.assert_allclose(
            a,
            b,
            rtol=rtol if loose else 0,
            atol=atol if loose else 0,
            err_msg=name,
        )

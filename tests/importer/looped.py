"""Models written as text, imported and run beside onnxruntime."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper, parser

import burn
from tests.modules import Array, generate, import_file

Feeds = Mapping[str, Any]


def parsed(
    text: str, weights: Mapping[str, Array] | None = None, opset: int = 18
) -> onnx.ModelProto:
    """The model of one graph (and functions behind it), with further stored arrays.

    Two underscores in what a node reads stand for a dot, which text cannot have.
    """
    domains = f'"" : {opset}, "local" : 1'
    head = f"<ir_version: 8, opset_import: [{domains}]>"
    model = parser.parse_model(f"{head}\n{text}")
    dotted(model.graph)
    for name, array in (weights or {}).items():
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    return model


def dotted(graph: onnx.GraphProto) -> None:
    """Put dots into what the nodes of a graph and its bodies read."""
    for node in graph.node:
        node.input[:] = [name.replace("__", ".") for name in node.input]
        for attribute in node.attribute:
            dotted(attribute.g)


def onnxruntime_session(model: onnx.ModelProto) -> onnxruntime.InferenceSession:
    """A session of onnxruntime without its graph optimizations."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = (
        onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    )
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def onnxruntime_results(model: onnx.ModelProto, feeds: Feeds) -> list[Any]:
    """Return the results of onnxruntime for ``feeds``."""
    return list(onnxruntime_session(model).run(None, dict(feeds)))


def check(
    folder: Path,
    text: str,
    *feeds: Feeds,
    weights: Mapping[str, Array] | None = None,
    opset: int = 18,
) -> str:
    """The body of the generated module, which agrees with onnxruntime on ``feeds``."""
    model = parsed(text, weights, opset)
    path = folder / "model.onnx"
    onnx.save(model, path)
    module, name = generate(path, folder)
    loaded, session = getattr(import_file(module), name).load(), onnxruntime_session(
        model
    )
    for given in feeds:
        inputs = [given[value.name] for value in model.graph.input]
        result = loaded(*map(tensors, inputs))
        several = len(model.graph.output) > 1
        actual = list(result) if several else [result]
        compare(list(map(arrays, actual)), session.run(None, dict(given)))
    return module.read_text()


def tensors(value: Any) -> Any:
    """An array as a tensor; those in a list, too."""
    if value is None:
        return None
    if isinstance(value, list):
        return [tensors(item) for item in value]
    return burn.tensor(value)


def arrays(value: Any) -> Any:
    """A tensor as an array; those in a list, too."""
    if isinstance(value, list):
        return [arrays(item) for item in value]
    return None if value is None else value.numpy()


def compare(actual: Sequence[Any], expected: Sequence[Any]) -> None:
    """Fail unless the values agree, lists item by item."""
    assert len(actual) == len(expected)
    for a, b in zip(actual, expected, strict=True):
        if isinstance(b, list):
            assert isinstance(a, list)
            compare(a, b)
        elif b is None:
            assert a is None
        else:
            b = np.asarray(b)
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def normal(*shape: int, seed: int = 0) -> Array:
    """Random numbers."""
    rng = np.random.default_rng(seed + sum(shape))
    return rng.standard_normal(shape, np.float32)


def number(value: int) -> Array:
    """An int64 tensor of rank 0."""
    return np.array(value, np.int64)

"""Nodes that are not valid ONNX are refused, by the import or when they run."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx.parser
import pytest
from onnx import numpy_helper

from burn_ir import ModelError
from tests.fuzz.rules.explained import explanation
from tests.fuzz.subject import IMPORTS, called, imported
from tests.fuzz.test_found import floats

HEADER = """<ir_version: 9, opset_import: ["" : {}, "com.microsoft" : 1,
"ai.onnx.ml" : 3]>
"""
#: The opset, a node on inputs ``x`` and ``y``, their contents, and what is expected.
CASES: dict[str, tuple[int, str, dict[str, Any], str]] = {
    "GatherND of other batches": (
        13,
        "GatherND <batch_dims: int = 1> (x, y)",
        {"x": floats(2, 3), "y": np.zeros((4, 1, 1), np.int64)},
        "expected 1 equal extents first",
    ),
    "GatherND out of bounds": (
        13,
        "GatherND (x, y)",
        {"x": floats(2, 3), "y": np.array([[2]])},
        "index 2 is out of bounds for axis 0 with size 2",
    ),
    "Pad of an axis that is named twice": (
        19,
        "Pad (x, y, , z)",
        {"x": floats(2, 3), "y": np.zeros(6, np.int64), "z": np.array([0, -2, -1])},
        "expected distinct axes",
    ),
    "half of the spectrum of a complex signal": (
        17,
        "DFT <onesided: int = 1> (x)",
        {"x": floats(1, 4, 2)},
        "expected a real signal",
    ),
    "a group norm of one scale": (
        21,
        "GroupNormalization <num_groups: int = 1> (x, y, y)",
        {"x": floats(2, 3, 4), "y": floats(1)},
        "expected a .* of 3|each of 3",
    ),
    "a group norm of a matrix of scales": (
        21,
        "GroupNormalization <num_groups: int = 3> (x, x, x)",
        {"x": floats(1, 3)},
        "expected a vector",
    ),
    "a loss of targets for another batch": (
        13,
        "NegativeLogLikelihoodLoss (x, y)",
        {"x": floats(2, 3), "y": np.array([0, 1, 2])},
        r"expected equal extents on axis 0|expected targets of shape \[2\]",
    ),
    "PRelu of a larger slope": (
        16,
        "PRelu (x, y)",
        {"x": floats(1, 3), "y": floats(2, 3)},
        "expected a slope that broadcasts to",
    ),
    "a regressor of other features": (
        13,
        "ai.onnx.ml.LinearRegressor <coefficients: floats = [1.0, 2.0]> (x)",
        {"x": floats(2, 3)},
        "expected 2 features|expected equal inner extents",
    ),
    "a classifier of other features": (
        13,
        "ai.onnx.ml.LinearClassifier <coefficients: floats = [1.0, 2.0, 3.0, 4.0], "
        "intercepts: floats = [1.0, 2.0], classlabels_ints: ints = [0, 1]> (x)",
        {"x": floats(2, 3)},
        "expected 2 features|expected equal inner extents",
    ),
    "GatherND on an axis without elements": (
        13,
        "GatherND (x, y)",
        {"x": floats(2, 0, 0), "y": np.array([[0, 0]])},
        "index 0 is out of bounds for axis 1 with size 0",
    ),
    "Conv of pads for two axes, of one that has one": (
        13,
        "Conv <pads: ints = [1, 2, 2, 2]> (x, y)",
        {"x": floats(1, 2, 4), "y": floats(2, 2, 3)},
        "expected 2 pads",
    ),
    "a residual of another batch": (
        13,
        "com.microsoft.SkipLayerNormalization (x, y, z)",
        {"x": floats(5, 3, 2), "y": floats(3, 3, 2), "z": floats(2)},
        "expected shapes that broadcast|could not be broadcast",
    ),
    "the inverse of what is not square": (
        13,
        "com.microsoft.Inverse (x)",
        {"x": floats(1, 1, 3)},
        "expected square matrices|must be square",
    ),
    "a quantized window that is wider than the axis": (
        13,
        "com.microsoft.QLinearAveragePool <kernel_shape = [2, 3]> (w, y, z, y, z)",
        {"y": np.array(0.5, np.float32)},
        "expected windows that fit",
    ),
    "scales along an axis, of one that is a scalar": (
        13,
        "com.microsoft.QLinearSigmoid (q, y, z, y, z)",
        {"x": floats(1), "y": floats(3)},
        "expected one number|expected one scale",
    ),
}


def model_of(opset: int, node: str, feeds: Mapping[str, Any], known: bool) -> Any:
    """A model of one node, with the extents of its inputs or names for them."""
    inputs = []
    for name, x in feeds.items():
        names = [f"{name}{axis}" for axis in range(x.ndim)]
        dims = map(str, x.shape) if known else names
        kind = "float" if x.dtype == np.float32 else "int64"
        inputs.append(f"{kind}[{','.join(dims)}] {name}")
    constants = "<uint8[1,2,2] q = {1,2,3,4}, uint8 z = {0}>"
    if "Pool" in node:
        constants = "<uint8[1,1,3,2] w = {1,2,3,4,5,6}, uint8 z = {0}>"
    if "MatMul" in node:
        constants = "<uint8[1,3] q = {1,2,3}>"
    kind = "uint8" if "QLinear" in node else "float"
    text = f"g ({', '.join(inputs)}) => ({kind} out) {constants} {{ out = {node} }}"
    model = onnx.parser.parse_model(HEADER.format(opset) + text)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    return model


#: Nodes that are refused where the extents are stored in the file.
KNOWN: dict[str, tuple[int, str, dict[str, Any], str]] = {
    "a scale of more elements than the product": (
        13,
        "com.microsoft.DynamicQuantizeMatMul (x, q, y)",
        {"x": floats(1, 5, 1), "y": floats(4, 1, 1)},
        "expected scales that fit",
    ),
    "a residual of a larger batch": (
        13,
        "com.microsoft.SkipLayerNormalization (x, y, z)",
        {"x": floats(1, 3, 2), "y": floats(4, 3, 2), "z": floats(2)},
        "expected terms that fit",
    ),
}


@pytest.mark.parametrize("name", KNOWN)
def test_invalid_of_known_extents(name: str) -> None:
    opset, node, feeds, expected = KNOWN[name]
    model = model_of(opset, node, feeds, True)
    with (
        pytest.raises(ModelError, match=expected),
        imported(model, IMPORTS["default"]),
    ):
        pass


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_invalid(name: str, known: bool) -> None:
    opset, node, feeds, expected = CASES[name]
    model = model_of(opset, node, feeds, known)
    with (
        pytest.raises((ModelError, ValueError, IndexError), match=expected),
        imported(model, IMPORTS["default"]) as module,
    ):
        called(module, feeds)


@pytest.mark.parametrize("name", [*CASES, *KNOWN])
def test_explained(name: str) -> None:
    opset, node, feeds, _ = (CASES | KNOWN)[name]
    model = model_of(opset, node, feeds, True)
    (only,) = model.graph.node
    stored = {x.name: numpy_helper.to_array(x) for x in model.graph.initializer}
    contents = {**stored, **feeds}
    assert explanation(only, [contents.get(n) for n in only.input])

"""Corrections of attributes that an exporter uses with another meaning."""

import numpy as np
import pytest

import burn
from burn_ir import RawGraph, RawModel, RawNode, Type, build, evaluate

MODE = "coordinate_transformation_mode"
X = np.array([[[0.0, 1.0, 4.0, 9.0]]], np.float32)
#: The second of two results from 2.4: at element 3, or at 3 / 1.4.
ROUNDED, NOT_ROUNDED = 9.0, 4.0 + 5.0 / 7.0


@pytest.mark.parametrize(
    ("producer", "expected"),
    [("pytorch 2.4.0", ROUNDED), ("", ROUNDED), ("backend-test", NOT_ROUNDED)],
)
@pytest.mark.parametrize("inside", [False, True])
def test_corners_of_scaled_extents(
    producer: str, expected: float, inside: bool
) -> None:
    attrs = {MODE: "align_corners", "mode": "linear"}
    node = RawNode("Resize", "", attrs, ("x", None, "scales"), ("y",))
    constants = {"scales": np.array([1, 1, 0.6], np.float32), "c": np.array(True)}
    if inside:
        body = RawGraph("branch", {}, ("y",), (node,), {})
        branches = {"then_branch": body, "else_branch": body}
        node = RawNode("If", "", branches, ("c",), ("y",))
    inputs = {"x": Type(X.dtype, X.shape)}
    graph = RawGraph("main", inputs, ("y",), (node,), constants)
    built = build(RawModel(graph, {"": 19}, producer))
    (y,) = evaluate(built, [burn.tensor(X)])
    np.testing.assert_allclose(y.numpy(), [[[0.0, expected]]], rtol=1e-5)

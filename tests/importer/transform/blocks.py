"""A small model of two layers, and helpers for the tests of options."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

import burn
from burn_import import Options, load
from burn_import.pipeline import import_model
from burn_import.transform import WrongOptions
from tests.importer.onnx_files import graph, model, saved, stored

RNG = np.random.default_rng(11)
WIDTH = 6
#: The result of the first layer.
MIDDLE = "/enc/0/y"


def weight(*shape: int) -> Any:
    """Return random float32."""
    return RNG.normal(size=shape).astype(np.float32)


WEIGHTS = {
    "enc.0.lin.weight": weight(WIDTH, WIDTH),
    "enc.0.lin.bias": weight(WIDTH),
    "enc.1.lin.weight": weight(WIDTH, WIDTH),
    "enc.1.lin.bias": weight(WIDTH),
    "head.weight": weight(3, WIDTH),
}
X = weight(2, 4, WIDTH)


def two_blocks(folder: Path) -> Path:
    """Write two dense layers with a residual; ``x`` gives the extents of heads."""
    nodes = []
    before = "x"
    for n in (0, 1):
        location = f"/enc/enc.{n}"
        turned, dense = f"{location}/t", f"{location}/lin/Gemm_output_0"
        nodes += [
            helper.make_node("Transpose", [f"enc.{n}.lin.weight"], [turned]),
            helper.make_node("MatMul", [before, turned], [f"{location}/m"]),
            helper.make_node("Add", [f"{location}/m", f"enc.{n}.lin.bias"], [dense]),
            helper.make_node("Tanh", [dense], [f"{location}/a"]),
            helper.make_node("Add", [f"{location}/a", before], [f"/enc/{n}/y"]),
        ]
        before = f"/enc/{n}/y"
    nodes += [
        helper.make_node("Shape", ["x"], ["shape"], start=0, end=2),
        helper.make_node("Concat", ["shape", "heads"], ["split"], axis=0),
        helper.make_node("Reshape", [before, "split"], ["parts"]),
        helper.make_node("ReduceMean", ["parts"], ["mean"], axes=[2], keepdims=0),
        helper.make_node("Relu", ["mean"], ["y"]),
    ]
    arrays = {**WEIGHTS, "heads": np.array([2, 3])}
    tensors = tuple(stored(n, a) for n, a in arrays.items() if n != "head.weight")
    shape = {"x": ["batch", "seq", WIDTH]}
    return saved(folder / "net.onnx", model(graph(nodes, shape, ("y",), tensors)))


def blocks(x: Any, first: int = 0) -> Any:
    """Return the result of the dense layers from ``first`` on."""
    for n in range(first, 2):
        dense = x @ WEIGHTS[f"enc.{n}.lin.weight"].T + WEIGHTS[f"enc.{n}.lin.bias"]
        x = np.tanh(dense) + x
    return x


def head(x: Any) -> Any:
    """Return the result of the nodes after the dense layers."""
    return np.maximum(x.reshape(*x.shape[:2], 2, 3).mean(2), 0)


def close(actual: Any, expected: Any, tolerance: float = 1e-5) -> None:
    """Return if the arrays are equal up to a tolerance."""
    actual = np.asarray(actual, np.float64)
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


def computed(path: Path, x: Any, **options: Any) -> Any:
    """Return the outputs of the model for ``x``, imported with these options."""
    net: Any = load(path, Options(**options))
    return net(burn.tensor(x)).numpy()


def wrong(path: Path, **options: Any) -> list[str]:
    """Return the problems with which options are refused."""
    with pytest.raises(WrongOptions) as caught:
        import_model(path, Options(**options))
    return [str(problem) for problem in caught.value.problems]

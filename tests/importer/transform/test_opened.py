"""Fixed extents of inputs that ``--shape`` makes symbolic."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import NodeProto, helper

import burn
from burn_import import Options, load
from burn_ir.errors import InvalidModel
from tests.importer.onnx_files import graph, model, saved, stored
from tests.importer.transform.blocks import wrong

RANDOM = np.random.default_rng(0)


def node(kind: str, inputs: str, output: str, **attrs: Any) -> NodeProto:
    return helper.make_node(kind, inputs.split(), [output], name=output, **attrs)


def numbers(*shape: int) -> Any:
    return RANDOM.standard_normal(shape).astype("float32")


def written(
    tmp_path: Path, nodes: list[NodeProto], weights: Any, **inputs: list[Any]
) -> Path:
    arrays = [stored(name, np.asarray(array)) for name, array in weights.items()]
    body = graph(nodes, inputs, initializers=tuple(arrays))
    return saved(tmp_path / "net.onnx", model(body))


def flattened(tmp_path: Path) -> Path:
    """A convolution, and a Reshape to one row."""
    nodes = [
        node("Conv", "x kernel", "c", pads=[1, 1, 1, 1]),
        node("Reshape", "c row", "r"),
        node("MatMul", "r head", "y"),
    ]
    weights = {"kernel": numbers(2, 3, 3, 3), "row": [1, -1], "head": numbers(32, 5)}
    return written(tmp_path, nodes, weights, x=[1, 3, 4, 4])


def heads(tmp_path: Path) -> Path:
    """Attention whose heads are merged with the batch of 1."""
    nodes = [
        node("Reshape", "x split", "s"),
        node("Transpose", "s", "t", perm=[0, 2, 1, 3]),
        node("Reshape", "t merged", "m"),
        node("Transpose", "m", "mt", perm=[0, 2, 1]),
        node("MatMul", "m mt", "scores"),
        node("Softmax", "scores", "p", axis=-1),
        node("MatMul", "p m", "o"),
        node("Reshape", "o parted", "q"),
        node("Transpose", "q", "u", perm=[0, 2, 1, 3]),
        node("Reshape", "u joined", "v"),
        node("MatMul", "v head", "y"),
    ]
    weights = {
        "split": [1, 5, 2, 4],
        "merged": [2, 5, 4],
        "parted": [1, 2, 5, 4],
        "joined": [1, 5, 8],
        "head": numbers(8, 3),
    }
    return written(tmp_path, nodes, weights, x=[1, 5, 8])


def length_first(tmp_path: Path) -> Path:
    """The same with the batch in the second axis, and a matrix of all positions."""
    nodes = [
        node("Reshape", "x split", "s"),
        node("Transpose", "s", "t", perm=[1, 0, 2]),
        node("Transpose", "t", "tt", perm=[0, 2, 1]),
        node("MatMul", "t tt", "scores"),
        node("Softmax", "scores", "p", axis=-1),
        node("MatMul", "p t", "o"),
        node("Transpose", "o", "u", perm=[1, 0, 2]),
        node("Reshape", "u rows", "r"),
        node("Gemm", "r head bias", "g"),
        node("Reshape", "g back", "z"),
        node("Add", "z x", "y"),
    ]
    weights = {
        "split": [5, 2, 4],
        "rows": [5, 8],
        "head": numbers(8, 8),
        "bias": numbers(8),
        "back": [5, 1, 8],
    }
    return written(tmp_path, nodes, weights, x=[5, 1, 8])


def token(tmp_path: Path) -> Path:
    """A stored token before the sequence."""
    nodes = [
        node("Concat", "token x", "c", axis=1),
        node("Add", "c positions", "a"),
        node("Tanh", "a", "y"),
    ]
    weights = {"token": numbers(1, 1, 4), "positions": numbers(1, 6, 4)}
    return written(tmp_path, nodes, weights, x=[1, 5, 4])


def recurrent(tmp_path: Path) -> Path:
    """An LSTM with stored initial states."""
    nodes = [
        node("Transpose", "x", "t", perm=[1, 0, 2]),
        helper.make_node(
            "LSTM", ["t", "w", "r", "", "", "h", "c"], ["l"], hidden_size=4
        ),
        node("Squeeze", "l one", "s"),
        node("Transpose", "s", "y", perm=[1, 0, 2]),
    ]
    weights = {
        "w": numbers(1, 16, 3),
        "r": numbers(1, 16, 4),
        "h": numbers(1, 1, 4),
        "c": numbers(1, 1, 4),
        "one": [1],
    }
    return written(tmp_path, nodes, weights, x=[1, 5, 3])


def resized(tmp_path: Path) -> Path:
    """A Resize to sizes that contain the batch, and samples at a stored grid."""
    nodes = [
        helper.make_node("Resize", ["x", "", "", "sizes"], ["r"], mode="linear"),
        node("GridSample", "r grid", "y"),
    ]
    weights = {"sizes": [1, 2, 6, 8], "grid": np.tanh(numbers(1, 3, 3, 2))}
    return written(tmp_path, nodes, weights, x=[1, 2, 3, 4])


def of_two(tmp_path: Path) -> Path:
    """A batch of 2 with a stored token that is repeated, and one that is expanded."""
    nodes = [
        node("Expand", "token shape", "t"),
        node("Concat", "stored t x", "c", axis=1),
        node("Reshape", "c rows", "y"),
    ]
    weights = {
        "stored": np.repeat(numbers(1, 1, 4), 2, 0),
        "token": numbers(1, 1, 4),
        "shape": [2, 1, 4],
        "rows": [2, 28],
    }
    return written(tmp_path, nodes, weights, x=[2, 5, 4])


FILES = [flattened, heads, length_first, token, recurrent, resized, of_two]


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.__name__))
def test_examples_of_a_batch(tmp_path: Path, file: Any) -> None:
    path = file(tmp_path)
    fixed: Any = load(path)
    declared: Any = onnx.load(path).graph.input[0].type.tensor_type.shape
    shape = [dim.dim_value for dim in declared.dim]
    axis = 1 if file is length_first else 0
    names: list[int | str] = list(shape)
    names[axis] = "batch"
    opened: Any = load(path, Options(shapes={"x": tuple(names)}))
    compiled: Any = burn.compile(opened)
    for count in (1, 2, 3):
        x = numbers(*shape[:axis], count * shape[axis], *shape[axis + 1 :])
        parts = np.split(x, count, axis)
        expected = np.concatenate([fixed(burn.tensor(p)).numpy() for p in parts], axis)
        for call in (opened, compiled, compiled):
            np.testing.assert_allclose(
                call(burn.tensor(x)).numpy(), expected, rtol=1e-5, atol=1e-5
            )


def test_gradients_of_a_batch(tmp_path: Path) -> None:
    path = token(tmp_path)
    backend = burn.Autodiff(burn.Cpu())
    fixed: Any = load(path).to(backend)
    opened: Any = load(path, Options(shapes={"x": ("batch", 5, 4)})).to(backend)
    x = numbers(3, 5, 4)

    def gradient(net: Any, array: Any) -> Any:
        return (net(burn.tensor(array, backend)) ** 2).sum().backward()[net.token]

    alone = sum(gradient(fixed, x[i : i + 1]).numpy() for i in range(3))
    np.testing.assert_allclose(gradient(opened, x).numpy(), alone, rtol=1e-5)


def test_a_batch_beside_a_name(tmp_path: Path) -> None:
    nodes = [node("Reshape", "x row", "r"), node("Tanh", "r", "y")]
    path = written(tmp_path, nodes, {"row": [1, 2, -1]}, x=[1, "length", 4])
    net: Any = load(path, Options(shapes={"x": ("batch", "length", 4)}))
    for batch, length in ((1, 3), (3, 1), (2, 5)):
        x = numbers(batch, length, 4)
        result = net(burn.tensor(x)).numpy()
        np.testing.assert_allclose(result, np.tanh(x.reshape(batch, 2, -1)), rtol=1e-5)


def test_two_inputs(tmp_path: Path) -> None:
    nodes = [node("MatMul", "a b", "m"), node("Reshape", "m row", "y")]
    path = written(tmp_path, nodes, {"row": [1, 4]}, a=[1, 2, 3], b=[1, 3, 2])
    net: Any = load(path, Options(shapes={"a": ("n", 2, 3), "b": ("n", 3, 2)}))
    a, b = numbers(4, 2, 3), numbers(4, 3, 2)
    result = net(burn.tensor(a), burn.tensor(b)).numpy()
    np.testing.assert_allclose(result, (a @ b).reshape(4, 4), rtol=1e-5)


def refused(tmp_path: Path, nodes: list[NodeProto], weights: Any = None) -> str:
    path = written(tmp_path, nodes, weights or {}, x=[2, 3])
    (message,) = wrong(path, shapes={"x": ("batch", 3)})
    return message


def test_examples_that_depend_on_each_other(tmp_path: Path) -> None:
    mean = [node("ReduceMean", "x", "m", axes=[0]), node("Sub", "x m", "y")]
    message = refused(tmp_path, mean)
    assert message.startswith("output 'y': expected examples that do not depend on ")
    assert "each other along 'batch', and they differ by" in message
    first = [node("Gather", "x zero", "y", axis=0)]
    assert "no axis for them" in refused(tmp_path, first, {"zero": 0})
    assert "differ" in refused(tmp_path, [node("Softmax", "x", "y", axis=0)])


def test_stored_examples_that_differ(tmp_path: Path) -> None:
    joined = [node("Concat", "x w", "y", axis=1)]
    path = written(tmp_path, joined, {"w": numbers(2, 3)}, x=[2, 3])
    with pytest.raises(InvalidModel, match=r"(?s)'y'.*'w' to repeat one example 2"):
        load(path, Options(shapes={"x": ("batch", 3)}))
    message = refused(tmp_path, [node("Add", "x w", "y")], {"w": numbers(2, 3)})
    assert (
        "node 'y' (Add, opset 17): expected a node that works for any batch" in message
    )


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"a": ("n", "m", 3), "b": (1, 3, 2)}, "expected one name for extents that"),
        ({"a": ("n", 2, "n"), "b": (1, 3, 2)}, "expected equal extents to call 'n'"),
        ({"c": ("k", "k")}, "expected a name that no extent of the file has, got 'k'"),
        ({"a": (4, 2, 3)}, "input 'a', axis 0: expected 1, as the file has, got 4"),
    ],
)
def test_extents_that_do_not_fit(tmp_path: Path, shapes: Any, message: str) -> None:
    nodes = [node("MatMul", "a b", "m"), node("Add", "m c", "y")]
    path = written(tmp_path, nodes, {}, a=[1, 2, 3], b=[1, 3, 2], c=["k", 2])
    (actual,) = wrong(path, shapes=shapes)
    assert actual.startswith(message)

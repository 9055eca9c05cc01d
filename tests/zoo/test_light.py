"""The nine image classifiers that the onnx wheel brings, with weights and without.

Their weights are constants repeated over a shape, so that the files stay small. This
shows that the layers fit together and little more. The second test therefore puts
random weights into the same graphs and compares with onnxruntime.
"""

from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from burn_import import load
from tests.modules import Array, call, generate, import_file, onnxruntime_outputs

FLOAT = onnx.TensorProto.FLOAT
LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
SMALL = (
    *("densenet121", "inception_v1", "inception_v2"),
    *("resnet50", "shufflenet", "squeezenet"),
)
#: 240 to 575 MB of weights each.
LARGE = ("bvlc_alexnet", "vgg19", "zfnet512")
NAMES = [*SMALL, *(pytest.param(name, marks=pytest.mark.models) for name in LARGE)]
#: Elements of a weight that is not drawn: those of the Gemms of large classifiers, most
#: of their bytes. Their networks end there; resnet50 has such a layer of 2 million.
MOST = 2**23
#: What the operands of a node are, by operator and position.
ROLES = {
    "Conv": ("", "weight", "shift"),
    "Gemm": ("", "weight", "shift"),
    "BatchNormalization": ("", "scale", "shift", "shift", "scale"),
    "Mul": ("scale", "scale"),
    "Add": ("shift", "shift"),
    "Sum": ("shift", "shift"),
}


def test_every_light_model_is_named() -> None:
    actual = {path.stem.removeprefix("light_") for path in LIGHT.glob("*.onnx")}
    assert actual == {*SMALL, *LARGE}


def shape_of_input(proto: onnx.ModelProto) -> tuple[str, tuple[int, ...]]:
    """Return name and shape of the one input without a stored value."""
    stored = {tensor.name for tensor in proto.graph.initializer}
    (value,) = (v for v in proto.graph.input if v.name not in stored)
    return value.name, tuple(d.dim_value for d in value.type.tensor_type.shape.dim)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.sampled(3)
def test_constant_weights_give_the_expected_output(name: str) -> None:
    path = LIGHT / f"light_{name}.onnx"
    _, shape = shape_of_input(onnx.load(path))
    # The input that onnx.backend.test gives to these models.
    size = np.prod(shape)
    image = (np.arange(size).reshape(shape) / size).astype(np.float32)
    expected = onnx.load_tensor(path.with_name(f"light_{name}_output_0.pb"))
    (actual,) = call(load(path), [image])
    np.testing.assert_allclose(actual, numpy_helper.to_array(expected), rtol=1e-3)


def roles(graph: onnx.GraphProto) -> dict[str, str]:
    """Return what each value is to the nodes that read it, through Unsqueeze too."""
    results: dict[str, str] = {}
    for node in reversed(graph.node):
        if node.op_type in {"Unsqueeze", "Reshape"}:
            results[node.input[0]] = results.get(node.output[0], "")
            continue
        for value, role in zip(node.input, ROLES.get(node.op_type, ()), strict=False):
            results[value] = role
    return results


def drawn(rng: np.random.Generator, role: str, shape: tuple[int, ...]) -> Array:
    """Return random weights that keep the size of activations, layer after layer."""
    if role == "scale":
        return rng.uniform(0.5, 1.5, shape).astype(np.float32)
    values = rng.standard_normal(shape, np.float32)
    if role == "shift":
        return values * np.float32(0.1)
    assert role == "weight", role
    return values * np.float32(np.sqrt(2 / np.prod(shape[1:])))


def with_random_weights(path: Path, target: Path) -> onnx.ModelProto:
    """Return the model with initializers for ConstantOfShape, saved at ``target``.

    A Softmax at the end is left out: it would hide what comes before it. The network
    ends before the first weight of more than ``MOST`` elements.
    """
    proto = onnx.load(path)
    graph = proto.graph
    rng = np.random.default_rng(17)
    roles_by_key = roles(graph)
    stored = {tensor.name: tensor for tensor in graph.initializer}
    fills = [node for node in graph.node if node.op_type == "ConstantOfShape"]
    shapes = {
        node.output[0]: tuple(numpy_helper.to_array(stored[node.input[0]]).tolist())
        for node in fills
    }
    large = {name for name, shape in shapes.items() if np.prod(shape) > MOST}
    others = (node for node in graph.node if node.op_type != "ConstantOfShape")
    nodes = list(takewhile(lambda node: large.isdisjoint(node.input), others))
    if nodes[-1].op_type == "Softmax":
        nodes.pop()
    read = {name for node in nodes for name in node.input}
    for name in filter(read.__contains__, shapes):
        weight = drawn(rng, roles_by_key[name], shapes[name])
        graph.initializer.append(numpy_helper.from_array(weight, name))
    last = nodes[-1].output[0]
    graph.output[0].CopyFrom(helper.make_tensor_value_info(last, FLOAT, None))
    del graph.node[:]
    graph.node.extend(nodes)
    onnx.save(proto, target)
    return proto


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that goes with its test: the files are too large for ``tmp_path``."""
    with TemporaryDirectory() as name:
        yield Path(name)


@pytest.mark.thorough
@pytest.mark.parametrize("name", NAMES)
def test_random_weights_agree_with_onnxruntime(name: str, folder: Path) -> None:
    path = folder / "random.onnx"
    source, shape = shape_of_input(
        with_random_weights(LIGHT / f"light_{name}.onnx", path)
    )
    image = np.random.default_rng(5).standard_normal(shape, np.float32)
    (expected,) = onnxruntime_outputs(path, {source: image})
    assert np.isfinite(expected).all()
    assert np.ptp(expected) > 1e-3 * np.abs(expected).max() > 0
    module, class_name = generate(path, folder)
    (actual,) = call(getattr(import_file(module), class_name).load(), [image])
    scale = np.abs(expected).max()
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(actual, expected, rtol=1e-3, atol=1e-4 * scale)

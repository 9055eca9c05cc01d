"""Files of tf2onnx: scopes of TensorFlow's operators, and symbol names."""

from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import helper

from tests.importer.structure.scoped_net import ScopedNet, check_import


class KerasNet(ScopedNet):
    """A writer of nodes with tf2onnx's names: ``model/conv/Conv2D``."""

    def __init__(self) -> None:
        super().__init__(producer="tf2onnx")

    def run(self, op: str, scope: str, *operands: str, **attrs: Any) -> str:
        result = f"value_{self.count}"
        self.count += 1
        name = f"{scope.replace('.', '/')}/{op};other/{op}_{self.count}"
        node = helper.make_node(op, list(operands), [result], name=name, **attrs)
        self.nodes.append(node)
        return result

    def conv(self, scope: str, x: str, given: int, made: int, size: int = 1) -> str:
        """Run a Keras convolution of images with channels last."""
        x = self.run("Transpose", scope, x, perm=[0, 3, 1, 2])
        key = scope.replace(".", "/")
        weight = self.weight(f"{key}/kernel", made, given, size, size)
        window = {"kernel_shape": [size, size], "pads": [size // 2] * 4}
        x = self.run("Conv", scope, x, weight, **window)
        return self.run("Transpose", scope, x, perm=[0, 2, 3, 1])


def test_a_keras_layer_is_a_layer_and_no_class(tmp_path: Path) -> None:
    net = KerasNet()
    x = net.input("x", "unk__12", 5, 6, 3)
    x = net.conv("model.stem", x, 3, 4, 3)
    x = net.run("Relu", "model.stem", x)
    x = net.conv("model.block_bn.batchnorm", x, 4, 4)
    x = net.run("Add", "model.add", net.conv("model.a", x, 4, 4), x)
    imported = check_import(tmp_path, net.model(x), net.feeds())
    assert imported.source.count("class ") == 1
    assert "self.stem = nn.Conv2d(3, 4, kernel_size=3" in imported.source
    assert "self.block_bn = nn.Conv2d(4, 4" in imported.source
    assert "float32[batch, 5, 6, 3]" in imported.source


def test_a_keras_layer_that_is_called_again(tmp_path: Path) -> None:
    """tf2onnx stores equal kernels once: calls of one layer have different names."""
    net = KerasNet()
    x = net.input("x", "unk__1", 5, 6, 3)
    kernel = net.weight("shared", 3, 3, 1, 1)
    for scope in ("model.cq.conv1d", "model.cq.conv1d_1", "model.cq.conv1d_2"):
        x = net.run("Transpose", scope, x, perm=[0, 3, 1, 2])
        x = net.run("Conv", scope, x, kernel)
        x = net.run("Transpose", scope, x, perm=[0, 2, 3, 1])
        x = net.run("Tanh", "model.cq", x)
    x = net.run("Add", "model", x, net.conv("model.last", x, 3, 3))
    imported = check_import(tmp_path, net.model(x), net.feeds())
    assert imported.source.count("nn.Conv2d(") == 2
    assert len(imported.keys) == 2


def test_a_scope_with_a_stored_scale_stays_a_module(tmp_path: Path) -> None:
    net = KerasNet()
    x = net.input("x", 2, 5, 6, 3)
    for number in range(2):
        scope = f"model.gate_{number}"
        y = net.conv(scope, x, 3, 3)
        y = net.run("Mul", scope, y, net.weight(f"{scope}/gamma", 3))
        y = net.run("Sigmoid", scope, y)
        x = net.run("Add", "model", x, net.run("Mul", scope, x, y))
    imported = check_import(tmp_path, net.model(x), net.feeds())
    assert imported.source.count("(nn.Module)") == 2  # the model, and one for both


def test_a_scope_with_many_results_is_no_module(tmp_path: Path) -> None:
    """A layer without weights that is called five times has one scope."""
    net = KerasNet()
    x = net.input("x", 2, 5, 6, 3)
    for number in range(5):
        x = net.run("Sqrt", "model.pad", net.run("Abs", "model.pad", x))
        x = net.conv(f"model.conv_{number}", x, 3, 3)
    imported = check_import(tmp_path, net.model(x), net.feeds())
    assert "tuple[Tensor" not in imported.source
    assert "self.pad" not in imported.source


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (("s77", 3, "s0", "s1"), "batch, 3, height, width"),
        (("unk__1", "unk__2", "unk__3", 3), "batch, height, width, 3"),
        (("n", 3, "s0", "n"), "n, 3, height, n"),
        (("s1", 3, "2 * s0", "s0"), "batch, 3, 2 * width, width"),
    ],
)
def test_counted_symbols_are_named_by_their_axes(
    tmp_path: Path, shape: tuple[int | str, ...], expected: str
) -> None:
    net = ScopedNet()
    x = net.run("Relu", "", net.input("x", *shape))
    proto = onnx.shape_inference.infer_shapes(net.model(x))
    feeds = {"x": net.rng.normal(size=(2, 3, 4, 2)).astype("float32")}
    if shape[3] == 3:
        feeds = {"x": feeds["x"].transpose(0, 2, 3, 1)}
    imported = check_import(tmp_path, proto, feeds)
    assert f"float32[{expected}]" in imported.source


def test_a_name_of_the_author_keeps_its_extent(tmp_path: Path) -> None:
    """A counted symbol does not become the author's ``batch``."""
    net = ScopedNet()
    x = net.run("Relu", "", net.input("x", "s0", 3))
    y = net.run("Relu", "", net.input("y", "batch", 3))
    feeds = {
        name: net.rng.normal(size=(rows, 3)).astype("float32")
        for name, rows in (("x", 2), ("y", 5))
    }
    imported = check_import(tmp_path, net.model(x, y), feeds)
    source = imported.source.replace("'", '"')
    assert 'x="float32[batch_2, 3]"' in source
    assert 'y="float32[batch, 3]"' in source


def test_keras_3_layers_have_no_scope_of_the_model_and_no_counter(
    tmp_path: Path,
) -> None:
    """tf2onnx drops the scope of a convolution with a folded batch normalization."""
    net = KerasNet()
    x = net.input("keras_tensor", "unk__1", 5, 6, 3)
    x = net.conv("functional_1.conv2d_1", x, 3, 4)
    x = net.run("Add", "functional_1", x, net.conv("functional_1.mix_1", x, 4, 4))
    kernel = net.weight("functional_1/conv2d_1_2/merged_input:0", 4, 4, 1, 1)
    x = net.run("Transpose", "", x, perm=[0, 3, 1, 2])
    x = net.run("Conv", "", x, kernel)
    imported = check_import(tmp_path, net.model(x), net.feeds())
    assert "functional" not in imported.source
    assert "self.conv2d = nn.Conv2d(3, 4" in imported.source
    assert "self.conv2d_1 = nn.Conv2d(4, 4" in imported.source
    assert "self.mix = nn.Conv2d(4, 4" in imported.source


def test_counters_of_layers_stay_where_names_are_equal_without_them(
    tmp_path: Path,
) -> None:
    net = KerasNet()
    x = net.input("x", "unk__1", 5, 6, 3)
    x = net.conv("functional_1.conv2d_1", x, 3, 4)
    x = net.conv("functional_1.conv2d_2", x, 4, 4)
    imported = check_import(tmp_path, net.model(x), net.feeds())
    assert "self.conv2d_1 = nn.Conv2d(3, 4" in imported.source
    assert "self.conv2d_2 = nn.Conv2d(4, 4" in imported.source


def test_the_input_of_a_keras_layer_is_x_and_its_class_has_no_counter(
    tmp_path: Path,
) -> None:
    net = KerasNet()
    x = net.input("keras_tensor", "unk__1", 5, 6, 3)
    for scope in ("functional_1.gate_3_1", "functional_1.other_1"):
        y = net.conv(scope, x, 3, 3)
        y = net.run("Mul", scope, y, net.weight(f"{scope}/gamma", 3))
        x = net.run("Mul", scope, x, net.run("Sigmoid", scope, y))
        x = net.run("Tanh" if "gate" in scope else "Abs", scope, x)
    imported = check_import(tmp_path, net.model(x), net.feeds())
    assert "self.gate_3 = Gate()" in imported.source
    assert "class Gate(nn.Module)" in imported.source
    assert "def __call__(self, x: Tensor) -> Tensor:" in imported.source

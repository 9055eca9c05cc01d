"""Dropout that a file for inference records, restored by an option."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu
from burn_import import load
from burn_import.options import Options
from burn_import.pipeline import import_model
from tests.importer.exported_files import (
    call,
    meta,
    program,
    ref,
    saved as saved_program,
)
from tests.importer.onnx_files import saved
from tests.importer.script_files import example, net
from tests.importer.structure.scoped_net import ScopedNet

RATIO = 0.25
SHAPE = (40, 50)
RESTORED = Options(dropout=True, stem="net")


def onnx_file(opset: int, **attrs: Any) -> Callable[[Path], Path]:
    """Return a writer of a ReLU and a ``Dropout`` for inference."""

    def write(folder: Path) -> Path:
        model = ScopedNet(opset=opset)
        x = model.run("Relu", "", model.input("x", *SHAPE))
        operands = [] if attrs else [model.stored("p", np.float32(RATIO))]
        y = model.run("Dropout", "drop", x, *operands, **attrs)
        return saved(folder / "net.onnx", model.model(y))

    return write


def exported_program(folder: Path) -> Path:
    """Write a program of ``torch.export`` whose module ``drop`` is called twice."""
    modules = "L__self__,,Net;L__self__drop,drop,torch.nn.modules.dropout.Dropout"
    args = {"p": {"as_float": RATIO}, "train": {"as_bool": False}}
    nodes = [
        call("aten.relu.default", "relu", self=ref("x")),
        call("aten.dropout.default", "d", modules, input=ref("relu"), **args),
        call("aten.neg.default", "neg", self=ref("d")),
        call("aten.dropout.default", "e", modules, input=ref("neg"), **args),
        call("aten.neg.default", "y", self=ref("e")),
    ]
    kind = meta("float32", SHAPE)
    values = dict.fromkeys(("relu", "d", "neg", "e", "y"), kind)
    return saved_program(folder, program({"x": kind}, {}, nodes, values, ["y"]), {})


def script(folder: Path) -> Path:
    """Write a trace of TorchScript."""
    code = f"return torch.dropout(torch.relu(x), {RATIO}, False)"
    return net(code, example("Float", *SHAPE)).saved(folder)


FILES: dict[str, tuple[Callable[[Path], Path], int]] = {
    "opset 7": (onnx_file(7, ratio=RATIO), 1),
    "opset 6": (onnx_file(6, ratio=RATIO, is_test=1), 1),
    "opset 13": (onnx_file(13), 1),
    "pt2": (exported_program, 2),
    "torchscript": (script, 1),
}


@pytest.mark.parametrize("kind", FILES)
def test_dropout_is_a_layer(tmp_path: Path, kind: str) -> None:
    write, calls = FILES[kind]
    path = write(tmp_path)
    x = np.random.default_rng(0).normal(size=SHAPE).astype(np.float32)
    expected = np.maximum(x, 0)
    plain: Any = load(path)
    model: Any = load(path, RESTORED)
    assert model.state_dict().keys() == plain.state_dict().keys()
    layers = [m for _, m in model.modules() if isinstance(m, burn.nn.Dropout)]
    assert [layer.p for layer in layers] == [RATIO]
    np.testing.assert_array_equal(model(burn.tensor(x)).numpy(), expected)
    model.to(Autodiff(Cpu()))
    result = model(burn.tensor(x)).numpy()
    kept, left = result != 0, (1 - RATIO) ** calls
    shown = expected > 0
    np.testing.assert_allclose(result[kept], expected[kept] / left, rtol=1e-5)
    assert abs(kept[shown].mean() - left) < 0.05


@pytest.mark.parametrize("kind", FILES)
def test_without_the_option_there_is_none(tmp_path: Path, kind: str) -> None:
    text = import_model(FILES[kind][0](tmp_path), Options(stem="net")).text
    assert "nn.Dropout" not in text


def attention(model: ScopedNet) -> str:
    """Append attention with dropout of the weights and of the result."""
    parts = [model.input(name, 1, 2, 6, 4) for name in "qkv"]
    key = model.run("Transpose", "", parts[1], perm=(0, 1, 3, 2))
    scores = model.run("MatMul", "", parts[0], key)
    half = model.stored("onnx::Mul_1", np.float32(0.5))
    ratio = model.stored("ratio", np.float32(RATIO))
    weights = model.run("Softmax", "", model.run("Mul", "", scores, half), axis=-1)
    dropped = model.run("Dropout", "weights", weights, ratio)
    result = model.run("MatMul", "", dropped, parts[2])
    return model.run("Dropout", "result", result, ratio)


def test_weights_of_attention_are_dropped(tmp_path: Path) -> None:
    model = ScopedNet()
    path = saved(tmp_path / "net.onnx", model.model(attention(model)))
    compiled = import_model(path, RESTORED)
    assert f"nn.Attention(dropout={RATIO})" in compiled.text
    assert compiled.text.count(f"nn.Dropout({RATIO})") == 1
    assert not compiled.notes
    feeds = [np.random.default_rng(n).normal(size=(1, 2, 6, 4)) for n in range(3)]
    q, k, v = (burn.tensor(feed.astype(np.float32)) for feed in feeds)
    restored: Any = load(path, RESTORED)
    plain: Any = load(path)
    assert "ops.attention(q, k, v)" in import_model(path, Options(stem="net")).text
    np.testing.assert_array_equal(restored(q, k, v).numpy(), plain(q, k, v).numpy())
    restored.to(Autodiff(Cpu()))
    first, second = (restored(q, k, v).numpy() for _ in range(2))
    assert (first != second).any()


def test_a_file_without_dropout_is_named(tmp_path: Path) -> None:
    model = ScopedNet()
    path = tmp_path / "net.onnx"
    saved(path, model.model(model.run("Relu", "", model.input("x", 2))))
    (note,) = import_model(path, RESTORED).notes
    assert note.startswith("The file records no dropout")


def test_dropout_in_a_branch(tmp_path: Path) -> None:
    from onnx import TensorProto, helper

    model = ScopedNet()
    x, p = model.input("x", 4), model.stored("p", np.float32(RATIO))
    one = model.body(lambda: [model.run("Dropout", "", x, p)])
    other = model.body(lambda: [model.run("Neg", "", x)])
    y = model.run("If", "", "flag", then_branch=one, else_branch=other)
    proto = model.model(y)
    flag = helper.make_tensor_value_info("flag", TensorProto.BOOL, [])
    proto.graph.input.append(flag)
    text = import_model(saved(tmp_path / "net.onnx", proto), RESTORED).text
    assert text.count(f"nn.Dropout({RATIO})") == 1


def test_an_active_dropout_and_a_read_mask_are_not_changed(tmp_path: Path) -> None:
    model = ScopedNet()
    x, p = model.input("x", 4), model.stored("p", np.float32(RATIO))
    y = model.run("Dropout", "", x, p, model.stored("training", np.True_))
    proto = model.model(y, model.run("Dropout", "", x, p))
    proto.graph.node[-1].output.append("mask")
    proto.graph.output.add().name = "mask"
    path = saved(tmp_path / "net.onnx", proto)
    texts = {import_model(path, one).text for one in (RESTORED, Options(stem="net"))}
    restored, plain = sorted(texts, key=len, reverse=True)
    assert "nn.Dropout(" not in restored + plain

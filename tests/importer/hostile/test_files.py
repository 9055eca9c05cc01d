"""Invalid models give one clear error and change nothing."""

import os
import resource
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import burn
from burn_import import load
from burn_ir import InvalidModel, build
from burn_ir.raw import RawGraph, RawModel, RawNode
from burn_ir.types import Type
from tests.cli.commands import run
from tests.importer.onnx_files import graph, model, saved, stored

UNREADABLE, UNSUPPORTED, INVALID = 3, 4, 5
RNG = np.random.default_rng(5)
WEIGHT = RNG.normal(size=(2, 3)).astype(np.float32)
KERNEL = RNG.normal(size=(4, 4, 2, 2)).astype(np.float32)
EMPTY = helper.make_empty_tensor_value_info


def bytes_of(proto: onnx.ModelProto) -> bytes:
    """Return the content of a file."""
    content: bytes = proto.SerializeToString()
    return content


def node(kind: str, inputs: str, outputs: str = "y", **attrs: Any) -> onnx.NodeProto:
    """Return a node called ``here``."""
    return helper.make_node(kind, inputs.split(), outputs.split(), name="here", **attrs)


def net(*nodes: onnx.NodeProto, **arrays: Any) -> bytes:
    """Return a model of ``x`` float32[2, 3] with output ``y``."""
    weights = tuple(stored(name, array) for name, array in arrays.items())
    return bytes_of(model(graph(list(nodes), initializers=weights)))


def image(kind: str, inputs: str = "x k", **attrs: Any) -> bytes:
    """Return a model of one node on ``x`` float32[1, 4, 5, 6] and a kernel ``k``."""
    nodes, shapes = [node(kind, inputs, **attrs)], {"x": [1, 4, 5, 6]}
    return bytes_of(model(graph(nodes, shapes, initializers=(stored("k", KERNEL),))))


def claims(*dims: int, **fields: Any) -> bytes:
    """Return a model whose weight claims these dims."""
    tensor = TensorProto(name="w", dims=dims, data_type=1, **fields)
    return bytes_of(model(graph([node("Add", "x w")], initializers=(tensor,))))


def external(location: str) -> bytes:
    """Return a model whose weight is in another file."""
    entry = onnx.StringStringEntryProto(key="location", value=location)
    index = TensorProto.EXTERNAL
    return claims(2, 3, data_location=index, external_data=[entry])


def field(number: int, content: bytes) -> bytes:
    """Return a field of a message in protobuf's encoding."""
    size, length = len(content), b""
    while size > 127:
        length += bytes([size & 127 | 128])
        size >>= 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + content


def nested(depth: int) -> bytes:
    """Return a model of nested ``If`` nodes, deeper than protobuf itself writes."""
    head = helper.make_node("If", ["c"], ["y"]).SerializeToString()
    end = helper.make_graph([], "body", [], [EMPTY("y")]).SerializeToString()
    result = helper.make_node("Neg", ["x"], ["y"]).SerializeToString()
    for _ in range(depth):
        kind = b"\xa0\x01\x05"  # an attribute that is a graph
        inside = field(6, field(1, result) + end) + kind
        result = head + field(5, field(1, b"then_branch") + inside)
    outer = graph([], {"x": [2, 3], "c": []}).SerializeToString() + field(1, result)
    opset = helper.make_opsetid("", 17).SerializeToString()
    return b"\x08\x08" + field(7, outer) + field(8, opset)


GOOD = net(node("Add", "x w"), w=WEIGHT)
OMITTED = helper.make_node("Add", ["x", ""], ["y"], name="here")
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n"
UNREADABLE_FILES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "empty file"),
    "cut off": (GOOD[: len(GOOD) // 2], "cut off"),
    "cut off at the end": (GOOD[:-40], "cut off"),
    "pointer": (POINTER, "Git LFS"),
    "page": (b"<!DOCTYPE html>\n<html><body>Sign in</body></html>\n", "HTML"),
    "noise": (bytes(range(255, 0, -1)), "damaged"),
    "deep": (nested(100), "nested"),
    "no external file": (external("gone.bin"), "no such file"),
    "outside": (external("../outside.bin"), "directory of the model"),
    "absolute": (external("/etc/hostname"), "relative"),
}
INVALID_MODELS: dict[str, tuple[bytes, str]] = {
    "missing input": (net(node("Add", "x nowhere")), "'nowhere'"),
    "too few": (net(node("MatMul", "x")), "expected 2 inputs, got 1"),
    "too many": (net(node("Neg", "x x")), "expected 1 inputs, got 2"),
    "of several": (net(node("Conv", "x")), "expected 2 to 3 inputs, got 1"),
    "omitted": (net(OMITTED), "expected input 1, got none"),
    "none at all": (net(node("Concat", "", axis=0)), "expected 1 or more inputs"),
    "too many outputs": (net(node("Neg", "x", "y z")), "at most 1 output"),
    "shapes": (net(node("Add", "x w"), w=WEIGHT.T), "broadcast"),
    "reshape": (net(node("Reshape", "x w"), w=np.array([4, 2])), "elements"),
    "kind of attribute": (net(node("Softmax", "x", axis="1")), "axis an integer"),
    "unknown attribute": (net(node("Softmax", "x", axes=[1])), "axes"),
    "axis": (net(node("Softmax", "x", axis=2**40)), "axis"),
    "permutation": (net(node("Transpose", "x", perm=[0, 7])), "expected"),
    "stride": (image("Conv", strides=[0, 1]), "strides"),
    "dilation": (image("Conv", dilations=[1, -1]), "dilations"),
    "pads": (image("Conv", pads=[2**60] * 4), "pads"),
    "negative pads": (image("Conv", pads=[-9] * 4), "pads"),
    "group 0": (image("Conv", group=0), "group"),
    "group -1": (image("Conv", group=-1), "group"),
    "groups": (image("Conv", group=3), "channels"),
    "transposed group": (image("ConvTranspose", group=3), "channels"),
    "transposed stride": (image("ConvTranspose", strides=[-1, 1]), "strides"),
    "kernel": (image("MaxPool", "x", kernel_shape=[0, 2]), "kernel_shape"),
    "no kernel": (image("LpPool", "x", kernel_shape=[-2, 2]), "kernel_shape"),
    "pool stride": (
        image("AveragePool", "x", kernel_shape=[2, 2], strides=[1, 0]),
        "strides",
    ),
    "block": (image("DepthToSpace", "x", blocksize=0), "block"),
    "cycle": (net(node("Add", "x y")), "cycles"),
    "producers": (net(node("Neg", "x"), node("Relu", "x")), "one producer"),
    "dims": (claims(-1, 4, raw_data=bytes(16)), "dims"),
    "beyond memory": (claims(2**31, 2**31), "too large for memory"),
    "billions": (claims(40_000, 50_000, raw_data=bytes(16)), "bytes"),
    "no outputs": (bytes_of(model(graph([node("Neg", "x")], outputs=()))), "outputs"),
    "no producer": (net(node("Neg", "x", "z")), "compute its output 'y'"),
}


@pytest.fixture
def refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Return the message for a file that must be refused, with and without outputs."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (tmp_path / "outside.bin").write_bytes(bytes(24))
    path = folder / "net.onnx"

    def ask(content: bytes, code: int) -> str:
        path.write_bytes(content)
        assert run(path, "-o", "kept.py").exit_code == code
        assert [p.name for p in folder.iterdir()] == ["net.onnx"]
        path.write_bytes(GOOD)
        assert run(path, "-o", "kept.py").exit_code == 0
        kept = {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in folder.glob("kept*")}
        path.write_bytes(content)
        result = run(path, "-o", "kept.py", "--force")
        assert result.exit_code == code
        assert len(kept) == 2 and len(list(folder.iterdir())) == 3
        for file, (data, changed) in kept.items():
            assert (file.read_bytes(), file.stat().st_mtime_ns) == (data, changed)
        assert "Traceback" not in result.output and "\n\n" not in result.output
        return result.output

    return ask


@pytest.mark.parametrize("name", UNREADABLE_FILES)
def test_what_is_no_model_is_said_to_be_none(
    name: str, refusal: Callable[..., str]
) -> None:
    content, message = UNREADABLE_FILES[name]
    output = refusal(content, UNREADABLE)
    assert message in output and output.startswith("error[unreadable]: net.onnx")


@pytest.mark.parametrize("name", INVALID_MODELS)
def test_a_model_that_contradicts_itself_is_refused(
    name: str, refusal: Callable[..., str]
) -> None:
    content, message = INVALID_MODELS[name]
    output = refusal(content, INVALID)
    assert message in output and output.startswith("error[invalid]: ")
    assert len(output.splitlines()) <= 8  # two problems: message, location, hint


def test_a_checkpoint_by_the_wrong_name_is_known(refusal: Callable[..., str]) -> None:
    content = BytesIO()
    with ZipFile(content, "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02}q\x00.")
    assert "PyTorch" in refusal(content.getvalue(), UNSUPPORTED)


def test_every_unknown_operator_is_listed(refusal: Callable[..., str]) -> None:
    nodes = [
        helper.make_node("Sofmax", ["x"], ["a"], name="first"),
        helper.make_node("Frobnicate", ["a"], ["b"], name="second"),
        helper.make_node("Relu", ["b"], ["c"], name="third"),
        helper.make_node("Relu", ["c"], ["y"], name="fourth", domain="my.domain"),
    ]
    output = refusal(net(*nodes), UNSUPPORTED)
    for message in ("'first'", "'second'", "'fourth'", "did you mean 'Softmax'?"):
        assert message in output
    assert "'third'" not in output and "3 problems" in output


def test_all_that_is_wrong_is_said_at_once(refusal: Callable[..., str]) -> None:
    nodes = [
        helper.make_node("Add", ["x", "gone"], ["a"], name="first"),
        helper.make_node("MatMul", ["x"], ["b"], name="second"),
        helper.make_node("Add", ["a", "b"], ["y"], name="third"),
    ]
    output = refusal(net(*nodes), INVALID)
    assert "'first'" in output and "'second'" in output and "'third'" not in output


BOMBS: dict[str, tuple[str, dict[str, Any]]] = {
    "Range": ("zero scalar unit", {}),
    "ConstantOfShape": ("big", {"value": stored("v", np.array([1]))}),
    "Expand": ("one big", {}),
    "Tile": ("one big", {}),
    "OneHot": ("one scalar pair", {}),
    "Pad": ("one pads", {}),
}


@pytest.mark.parametrize("size", [2**20, 2**34, 2**50])
@pytest.mark.parametrize("kind", BOMBS)
def test_nothing_huge_is_computed_on_the_way(
    kind: str, size: int, tmp_path: Path
) -> None:
    big, one, pair = np.array([size]), np.array([1]), np.array([0, 1])
    arrays = {"big": big, "one": one, "pair": pair, "pads": np.array([size, 0])}
    arrays |= {"scalar": big[0], "zero": pair[0], "unit": pair[1]}
    inputs, attrs = BOMBS[kind]
    last = helper.make_node("Gather", ["h", "one"], ["y"])
    path = tmp_path / "net.onnx"
    path.write_bytes(net(node(kind, inputs, "h", **attrs), last, **arrays))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = run(path, "-o", tmp_path / "net.py")
    assert result.exit_code in (0, UNSUPPORTED, INVALID), result.output
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 200 * 2**10  # KiB
    assert sum(p.stat().st_size for p in tmp_path.iterdir()) < 100 * 2**20


def test_what_an_operator_raises_names_the_node() -> None:
    x = Type(np.dtype(np.float32), (2, 3))
    result = RawNode("Transpose", "", {"perm": (2**70, 0)}, ("x",), ("y",), "here")
    raw = RawModel(RawGraph("g", {"x": x}, ("y",), (result,), {}), {"": 17})
    with pytest.raises(InvalidModel, match=r"node 'here' \(Transpose, opset 17\)"):
        build(raw)


def test_a_long_chain_takes_no_long_time(tmp_path: Path) -> None:
    names = ["x", *(f"t{number}" for number in range(3_000)), "y"]
    nodes = [
        helper.make_node("Neg" if number % 2 else "Exp", [a], [b])
        for number, (a, b) in enumerate(zip(names, names[1:], strict=False))
    ]
    path = saved(tmp_path / "net.onnx", model(graph(nodes)))
    started = os.times().user
    assert run(path, "-o", tmp_path / "net.py").exit_code == 0
    assert os.times().user - started < 30


def strings_net(path: Path, words: list[str]) -> Path:
    """Write a model that returns the words at given indices."""
    content = [word.encode() for word in words]
    labels = TensorProto(
        name="s", dims=[len(words)], data_type=TensorProto.STRING, string_data=content
    )
    nodes = [helper.make_node("Gather", ["s", "i"], ["y"])]
    proto = model(graph(nodes, {"i": ["n"]}, initializers=(labels,)))
    proto.graph.input[0].type.tensor_type.elem_type = TensorProto.INT64
    return saved(path, proto)


def test_strings_are_written_into_the_source(tmp_path: Path) -> None:
    words = ['"', "'''", "\\", "\r\n", "\0", "\u202e", "", "x" * 200, "{}%"]
    net: Any = load(strings_net(tmp_path / "net.onnx", words))
    order = np.array([8, 1, 0, 2, 3, 4, 5, 6, 7])
    assert net(burn.tensor(order)).tolist() == [words[index] for index in order]


def test_a_vocabulary_is_refused(refusal: Callable[..., str], tmp_path: Path) -> None:
    path = strings_net(tmp_path / "words.onnx", ["word"] * 5_000)
    assert "strings" in refusal(path.read_bytes(), UNSUPPORTED)

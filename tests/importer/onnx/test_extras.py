"""Operators that need an extra: a note in the module, and imports without the extra."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import burn
from burn.ops.regex import compiled
from tests.modules import generate, import_file

NOTE = "To run RegexFullMatch: pip install 'burn-runtime[text]'."


def regex_model(pattern: str) -> onnx.ModelProto:
    """Return a model that matches its input and a constant with ``pattern``."""
    word = numpy_helper.from_array(np.array(["abba"], object), "word")
    nodes = [
        helper.make_node("RegexFullMatch", ["x"], ["y"], pattern=pattern),
        helper.make_node("RegexFullMatch", ["word"], ["z"], pattern=pattern),
    ]
    graph = helper.make_graph(
        nodes,
        "main",
        [helper.make_tensor_value_info("x", TensorProto.STRING, ["n"])],
        [
            helper.make_tensor_value_info("y", TensorProto.BOOL, ["n"]),
            helper.make_tensor_value_info("z", TensorProto.BOOL, [1]),
        ],
        [word],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])


def generated(folder: Path, pattern: str) -> tuple[str, Any]:
    """Return the text of the module, and an instance of its class."""
    path = folder / "matching.onnx"
    onnx.save(regex_model(pattern), path)
    module, name = generate(path, folder)
    net = getattr(import_file(module), name).load()
    return " ".join(module.read_text().split()), net


def test_the_module_names_the_extra_that_it_needs(tmp_path: Path) -> None:
    text, net = generated(tmp_path, "[ab]+")
    assert NOTE in text
    words = burn.tensor(np.array(["ab", "abc"], object))
    assert [result.tolist() for result in net(words)] == [[True, False], [True]]


def test_a_model_is_imported_without_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)
    compiled.cache_clear()
    text, net = generated(tmp_path, "[ab]+")
    assert NOTE in text
    with pytest.raises(ImportError, match=r"google-re2.*'burn-runtime\[text\]'"):
        net(burn.tensor(np.array(["ab"], object)))

"""String attributes select from tables or are data; none becomes code."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import numpy as np
import pytest

import burn
from burn_import.codegen.gate.gate import check_body
from burn_import.compiler import compile_graph
from burn_import.options import Options
from burn_ir import InvalidOperand, ModelError, build, operators
from burn_ir.op import hints
from burn_ir.raw import RawGraph, RawModel, RawNode
from burn_ir.signature import check_attributes
from burn_ir.types import Type
from tests.importer.hostile.watched import watched
from tests.importer.payloads import PAYLOADS
from tests.modules import import_file

ML, MICROSOFT = "ai.onnx.ml", "com.microsoft"


def strings() -> Iterator[tuple[str, str, str, bool]]:
    """Yield domain, operator and attribute of every string, and if a table lists it."""
    for (domain, name), cls in operators().items():
        for attribute, hint in hints(cls).items():
            options = [str(option) for option in get_args(hint)]
            if get_origin(hint) is Literal:
                if any(not option.lstrip("-").isdigit() for option in options):
                    yield domain, name, attribute, True
            elif "str" in str(hint) and domain != "burn":
                yield domain, name, attribute, False


TABLES = [key[:3] for key in strings() if key[3]]
OTHERS = {key[:3] for key in strings() if not key[3]}


@pytest.mark.parametrize("key", TABLES, ids="/".join)
def test_what_a_table_lists_is_compared_with_it(key: tuple[str, str, str]) -> None:
    domain, name, attribute = key
    for payload in PAYLOADS:
        with pytest.raises(InvalidOperand, match=f"expected {attribute} among"):
            check_attributes(operators()[domain, name], {attribute: payload})


IMAGE, SMALL, FLAT = (1, 4, 4, 4), (4, 4, 2, 2), (4, 4)
F32 = np.float32
ONES = {name: np.ones(shape, F32) for name, shape in (("k", SMALL), ("m", FLAT))}
RNN = {"rw": np.ones((1, 3, 4), F32), "rr": np.ones((1, 3, 3), F32)}

#: For strings that the operator compares itself: operands, their shape, and other
#: requirements. Every payload is refused.
CHOICES: dict[tuple[str, str, str], tuple[str, tuple[int, ...], dict[str, Any]]] = {
    ("", "Gelu", "approximate"): ("x", FLAT, {}),
    ("", "BitShift", "direction"): ("i i", FLAT, {}),
    ("", "Cast", "round_mode"): ("x", FLAT, {"to": 1}),
    ("", "CastLike", "round_mode"): ("x x", FLAT, {}),
    ("", "Conv", "auto_pad"): ("x k", IMAGE, {}),
    ("", "ConvTranspose", "auto_pad"): ("x k", IMAGE, {}),
    ("", "Einsum", "equation"): ("x m", FLAT, {}),
    ("", "GridSample", "mode"): ("x grid", IMAGE, {}),
    ("", "GridSample", "padding_mode"): ("x grid", IMAGE, {}),
    ("", "MaxPool", "auto_pad"): ("x", IMAGE, {"kernel_shape": (2, 2)}),
    ("", "AveragePool", "auto_pad"): ("x", IMAGE, {"kernel_shape": (2, 2)}),
    ("", "LpPool", "auto_pad"): ("x", IMAGE, {"kernel_shape": (2, 2)}),
    ("", "RoiAlign", "coordinate_transformation_mode"): ("x boxes places", IMAGE, {}),
    ("", "Resize", "mode"): ("x   sizes", IMAGE, {}),
    ("", "Resize", "nearest_mode"): ("x   sizes", IMAGE, {}),
    ("", "Resize", "keep_aspect_ratio_policy"): ("x   sizes", IMAGE, {}),
    ("", "Resize", "coordinate_transformation_mode"): ("x   sizes", IMAGE, {}),
    (MICROSOFT, "FusedGemm", "activation"): ("x m", FLAT, {}),
    (MICROSOFT, "GridSample", "padding_mode"): ("x grid", IMAGE, {}),
    (MICROSOFT, "FusedConv", "activation"): ("x k", IMAGE, {}),
    (MICROSOFT, "FusedConv", "auto_pad"): ("x k", IMAGE, {}),
    (MICROSOFT, "NhwcMaxPool", "auto_pad"): ("pixels", IMAGE, {"kernel_shape": (2, 2)}),
    ("", "ImageDecoder", "pixel_format"): ("bytes", FLAT, {}),
    **{
        ("", kind, "activations"): ("x rw rr", (5, 2, 4), {"hidden_size": 3})
        for kind in ("RNN", "GRU", "LSTM")
    },
}
STORED: dict[str, Any] = {
    **ONES,
    **RNN,
    "i": np.ones(FLAT, np.uint8),
    "pixels": np.ones(IMAGE, np.uint8),
    "grid": np.zeros((1, 2, 2, 2), F32),
    "boxes": np.zeros((1, 4), F32),
    "places": np.zeros(1, np.int64),
    "sizes": np.array([1, 4, 8, 8]),
    "bytes": np.zeros(4, np.uint8),
}

#: Strings that are looked up, matched or returned: any value is valid. Tested by
#: ``test_any_text_is_data``, the conformance suite, and the laws over operators.
DATA = {
    (ML, "CategoryMapper", "cats_strings"),
    (ML, "CategoryMapper", "default_string"),
    (ML, "DictVectorizer", "string_vocabulary"),
    (ML, "LabelEncoder", "default_string"),
    (ML, "LabelEncoder", "keys_strings"),
    (ML, "LabelEncoder", "values_strings"),
    (ML, "LinearClassifier", "classlabels_strings"),
    (ML, "OneHotEncoder", "cats_strings"),
    (ML, "SVMClassifier", "classlabels_strings"),
    (ML, "TreeEnsembleClassifier", "classlabels_strings"),
    (ML, "ZipMap", "classlabels_strings"),
    (MICROSOFT, "Tokenizer", "pad_value"),
    (MICROSOFT, "Tokenizer", "separators"),
    (MICROSOFT, "Tokenizer", "tokenexp"),
    ("", "RegexFullMatch", "pattern"),
    ("", "StringNormalizer", "locale"),
    ("", "StringNormalizer", "stopwords"),
    ("", "StringSplit", "delimiter"),
    ("", "TfIdfVectorizer", "pool_strings"),
}
#: With the code of an operator above, or names of values.
ALIKE = {
    ("", "ConvInteger", "auto_pad"),
    ("", "QLinearConv", "auto_pad"),
    (MICROSOFT, "DynamicQuantizeLSTM", "activations"),
    (MICROSOFT, "QLinearAveragePool", "auto_pad"),
    (MICROSOFT, "QLinearConv", "auto_pad"),
    (ML, "TreeEnsembleClassifier", "nodes_modes"),
    (ML, "TreeEnsembleRegressor", "nodes_modes"),
    *(("ai.onnx.preview.training", "Gradient", name) for name in ("xs", "y", "zs")),
}


def test_every_string_is_accounted_for() -> None:
    assert set(CHOICES) | DATA | ALIKE == OTHERS


def model(
    node: RawNode, shape: tuple[int, ...], stored: dict[str, Any], dtype: Any
) -> RawModel:
    """Return a model of one node on ``x``."""
    inputs = {"x": Type(dtype, shape)}
    return RawModel(
        RawGraph("g", inputs, ("y",), (node,), stored), {"": 20, ML: 3, MICROSOFT: 1}
    )


@pytest.mark.parametrize("key", CHOICES, ids="/".join)
def test_what_an_operator_compares_is_refused(key: tuple[str, str, str]) -> None:
    domain, kind, attribute = key
    names, shape, others = CHOICES[key]
    inputs = tuple(name or None for name in names.split(" "))
    stored = {name: STORED[name] for name in inputs if name in STORED}
    for payload in PAYLOADS:
        value: Any = (payload,) if attribute == "activations" else payload
        attrs = {**others, attribute: value}
        node = RawNode(kind, domain, attrs, inputs, ("y",), "n")
        with pytest.raises(ModelError, match=r"node 'n'") as caught:
            build(model(node, shape, stored, burn.float32))
        assert "expected" in str(caught.value)


def encoder(keys: list[str], values: list[str], **others: str) -> RawNode:
    """Return a node that maps keys to values."""
    lists = {"keys_strings": tuple(keys), "values_strings": tuple(values)}
    return RawNode("LabelEncoder", ML, {**lists, **others}, ("x",), ("y",))


def looked_up(words: list[str]) -> dict[str, tuple[RawNode, list[str], list[str]]]:
    """Return nodes with attributes ``words``, with inputs and expected outputs."""
    keys = [f"key of {word}" for word in words]
    stop = {"stopwords": tuple(words), "is_case_sensitive": 1}
    without = RawNode("StringNormalizer", "", stop, ("x",), ("y",))
    default = encoder(["a"], ["b"], default_string=words[0])
    return {
        "values": (encoder(keys, words), keys, words),
        "keys": (encoder(words, keys), words, keys),
        "default": (default, ["a", "c"], ["b", words[0]]),
        "stopwords": (without, [words[0], "kept"], ["kept"]),
    }


@pytest.mark.parametrize("kind", ["values", "keys", "default", "stopwords"])
def test_any_text_is_data(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # nothing may be written
    words = list(PAYLOADS)
    for turn in range(3):
        node, given, expected = looked_up(words[turn:] + words[:turn])[kind]
        raw = model(node, (len(given),), {}, burn.string)
        source = compile_graph(build(raw), Options("Net"), "m.safetensors")
        check_body(source.text.encode("ascii"))
        path = tmp_path / f"text_{turn}.py"
        path.write_text(source.text)
        with watched(tmp_path):
            net = import_file(path).Net()
            net.load_state_dict(dict(source.weights))
            y = net(burn.tensor(np.array(given, object))).tolist()
        assert y == expected

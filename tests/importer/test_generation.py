"""Imported decoders generate what onnxruntime gives with a cache that grows."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import burn
from burn.generation import Decoder
from burn_import import load
from tests.runtime.onednn import assert_close
from tests.zoo.recorded import zoo_cases

WORDS, HEADS, GROUPS, SIZE, CAPACITY = 11, 4, 2, 16, 12
WIDTH = HEADS * SIZE
#: Zoo models with a cache: decoders of text alone.
NAMES = ("arch/gpt2_kv", "arch/llama_gqa_kv", "arch/qwen2_kv")
#: Of so many exported decoders a plain run checks one.
STEP = 3


def constants() -> list[onnx.TensorProto]:
    """The weights of a decoder."""
    rng = np.random.default_rng(0)
    whole = (HEADS + 2 * GROUPS) * SIZE
    shapes = {"table": (WORDS, WIDTH), "qkv": (WIDTH, whole), "out": (WIDTH, WIDTH)}
    arrays = {
        name: rng.standard_normal(shape).astype(np.float32) / 4
        for name, shape in {**shapes, "head": (WIDTH, WORDS)}.items()
    }
    angles = np.outer(np.arange(64), 100.0 ** (-np.arange(SIZE // 2) / 8))
    arrays["cos"] = np.cos(angles).astype(np.float32)
    arrays["sin"] = np.sin(angles).astype(np.float32)
    arrays |= {"one": np.array([1]), "axis": np.array(1)}
    return [numpy_helper.from_array(array, name) for name, array in arrays.items()]


def nodes() -> list[onnx.NodeProto]:
    """The nodes of a decoder as onnxruntime-genai builds them."""
    node, int32 = helper.make_node, TensorProto.INT32
    attention = node(
        "GroupQueryAttention",
        [
            "queries",
            "",
            "",
            "past.0.key",
            "past.0.value",
            "ends",
            "total",
            "cos",
            "sin",
        ],
        ["attended", "present.0.key", "present.0.value"],
        domain="com.microsoft",
        num_heads=HEADS,
        kv_num_heads=GROUPS,
        do_rotary=1,
    )
    return [
        node("ReduceSum", ["attention_mask", "one"], ["sum"], keepdims=1),
        node("Sub", ["sum", "one"], ["last"]),
        node("Cast", ["last"], ["ends"], to=int32),
        node("Shape", ["attention_mask"], ["extents"]),
        node("Gather", ["extents", "axis"], ["extent"]),
        node("Cast", ["extent"], ["total"], to=int32),
        node("Gather", ["table", "input_ids"], ["x"]),
        node("MatMul", ["x", "qkv"], ["queries"]),
        attention,
        node("MatMul", ["attended", "out"], ["y"]),
        node("Add", ["x", "y"], ["z"]),
        node("MatMul", ["z", "head"], ["logits"]),
    ]


def grouped_query(path: Path) -> Path:
    """A decoder as onnxruntime-genai builds them, whose cache has room."""
    info, int64 = helper.make_tensor_value_info, TensorProto.INT64

    def floats(name: str, *shape: Any) -> onnx.ValueInfoProto:
        return info(name, TensorProto.FLOAT, list(shape))

    inputs = [
        info("input_ids", int64, ["batch", "seq"]),
        info("attention_mask", int64, ["batch", "total"]),
    ]
    outputs = [floats("logits", "batch", "seq", WORDS)]
    for kind in ("key", "value"):
        inputs.append(floats(f"past.0.{kind}", "batch", GROUPS, "past", SIZE))
        outputs.append(floats(f"present.0.{kind}", "batch", GROUPS, "total", SIZE))
    graph = helper.make_graph(nodes(), "decoder", inputs, outputs, constants())
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)
    return path


def grown(path: Path, tokens: Any, chunks: tuple[int, ...]) -> list[Any]:
    """The logits of chunks of ``tokens`` by onnxruntime, with a past that grows."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    pasts = [i for i in session.get_inputs() if len(i.shape) == 4]
    names = {i.name for i in session.get_inputs()}
    batch, at, logits = len(tokens), 0, []
    past = {
        i.name: np.zeros((batch, i.shape[1], 0, i.shape[3]), np.float32) for i in pasts
    }
    for count in chunks:
        given = {
            "input_ids": tokens[:, at : at + count],
            "attention_mask": np.ones((batch, at + count), np.int64),
            "position_ids": np.tile(np.arange(at, at + count), (batch, 1)),
        }
        feeds = {name: x for name, x in given.items() if name in names} | past
        results = session.run(None, feeds)
        past = {i.name: x for i, x in zip(pasts, results[1:], strict=True)}
        logits.append(results[0])
        at += count
    return logits


def check(path: Path, words: int, batch: int, chunks: tuple[int, ...]) -> None:
    """Compare each step of a decoder with onnxruntime's, and a second use of it."""
    model: Any = load(path)
    decoder = Decoder(model, batch=batch, capacity=CAPACITY)
    for seed in range(2):
        tokens = np.random.default_rng(seed).integers(0, words, (batch, CAPACITY))
        at = 0
        for count, expected in zip(chunks, grown(path, tokens, chunks), strict=True):
            actual = decoder(burn.tensor(tokens[:, at : at + count])).numpy()
            assert_close(actual, expected, 1e-4)
            at += count
        decoder.reset()
    assert decoder.notes == []
    assert len(decoder.executables) == 1


@pytest.mark.parametrize("batch", (1, 8))
def test_decoders_of_onnxruntime_genai(tmp_path: Path, batch: int) -> None:
    path = grouped_query(tmp_path / "decoder.onnx")
    # onnxruntime takes several tokens behind others in a batch of one alone.
    check(path, WORDS, batch, (4, 1, 1, 2, 1, 1) if batch == 1 else (4, 1, 1, 1, 1))
    decoder = Decoder(load(path), capacity=CAPACITY)
    prompt = burn.tensor(np.array([[1, 2, 3]]))
    with pytest.raises(ValueError, match="counts keys by its mask"):
        decoder(prompt, np.array([[0, 1, 1]]))


def test_exported_decoders(request: pytest.FixtureRequest) -> None:
    zoo: Path = request.config.getoption("--zoo")
    if not (zoo / "manifest.json").is_file():
        pytest.skip("the zoo is not here")
    cases = [case for case in zoo_cases(zoo) if case.name.startswith(NAMES)]
    assert cases
    step = 1 if request.config.getoption("--all-cases") else STEP
    for case in cases[::step]:
        check(case.path, 99, 2, (4, 1, 1, 2, 1, 1, 1, 1))

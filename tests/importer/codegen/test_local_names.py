"""Locals and attributes without a name in the file are named after their use."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import burn
from burn import ops
from burn_import.codegen.printing.consumer_words import MAX_READERS, Uses, uses
from burn_import.tracing.trace import Block, Tracer
from burn_ir.types import Type
from tests.importer.looped import check, normal, onnxruntime_results, parsed
from tests.modules import generate, import_file

FACTORS = np.array([0.91234, 0.85678, 1.01357], np.float32)


def test_pieces_are_named_by_their_readers(tmp_path: Path) -> None:
    text = """agraph (float[n, 12] e, float[n, 4] a) => (float[n, 4] b) {
    val_0, val_1, val_2 = Split <axis = 1, num_outputs = 3> (e)
    val_3 = Constant <value_float = 1.0> ()
    val_4 = Add (val_3, val_1)
    val_5 = Mul (a, val_4)
    val_6 = Add (val_5, val_0)
    val_7 = Tanh (val_6)
    val_8 = Mul (val_2, val_7)
    b = Add (a, val_8)
}"""
    feeds = {"e": normal(2, 12, seed=1), "a": normal(2, 4, seed=2)}
    source = check(tmp_path, text, feeds)
    assert "shift, scale, gate = ops." in source


def test_stored_operands_are_not_called_constant(tmp_path: Path) -> None:
    text = """agraph (float[n, 2, 5] a) => (float[n, 3, 5] b) {
    b = Conv (a, val_1)
}"""
    weights = {"val_1": normal(3, 2, 1, seed=3)}
    source = check(tmp_path, text, {"a": normal(2, 2, 5, seed=1)}, weights=weights)
    assert "constant" not in source


def test_several_floats_of_many_digits_are_stored(tmp_path: Path) -> None:
    numbers = ", ".join(map(str, FACTORS.tolist()))
    text = f"""agraph (float[n, 3] a) => (float[n, 3] b) {{
    f = Constant <value_floats = [{numbers}]> ()
    g = Constant <value_floats = [0.5, 0.25, 2.0]> ()
    c = Mul (a, f)
    b = Mul (c, g)
}}"""
    source = check(tmp_path, text, {"a": normal(2, 3, seed=1)})
    assert "0.91234" not in source
    assert "0.25" in source


def test_shapes_have_no_lines_of_their_own(tmp_path: Path) -> None:
    shaped = "Reshape (a, shape)"
    text = f"""agraph (float[n, 240] a_long_name_of_an_input) => (float[m, 4, 60] b) {{
    shape = Constant <value_ints = [-1, 4, 60]> ()
    c = {shaped.replace("a,", "a_long_name_of_an_input,")}
    d = Sigmoid (c)
    e = Softmax (c)
    f = Mul (d, e)
    b = Mul (f, c)
}}"""
    feed = {"a_long_name_of_an_input": normal(2, 240, seed=1)}
    source = check(tmp_path, text, feed)
    assert not [x for x in source.splitlines() if x.startswith("        #")]


def test_pools_without_padding_do_not_say_what_padding_counts(tmp_path: Path) -> None:
    pool = "AveragePool <kernel_shape = [2, 2], count_include_pad = 1"
    given, results = "float[n, 1, 4, 4] a", "float[n, 1, h, w] b, float[n, 1, 5, 5] c"
    text = f"""agraph ({given}) => ({results}) {{
    b = {pool}, strides = [2, 2]> (a)
    c = {pool}, pads = [1, 1, 1, 1]> (a)
}}"""
    source = check(tmp_path, text, {"a": normal(2, 1, 4, 4, seed=1)})
    assert source.count("count_include_pad=True") == 1


def test_a_long_chain_of_sums_is_named_by_few_readers_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    length = 4000
    run = Tracer()
    run.blocks.append(Block())
    number = run.symbol(Type.of(np.array(2.5, np.float32)))
    chain = [run.symbol(None)]
    for _ in range(length):
        chain.append(ops.add(chain[-1], number))
    chain.append(ops.sigmoid(chain[-1]))
    lookups = 0
    role = Uses.role

    def counted(*args: Any) -> str:
        nonlocal lookups
        lookups += 1
        return role(*args)

    monkeypatch.setattr(Uses, "role", counted)
    readers = uses(run.blocks[-1])
    words = [readers.word(value.data) for value in chain]
    assert words[-2] == "gate"
    assert set(words[:-2]) == {""}
    assert lookups <= len(chain) * (MAX_READERS + 1)


def test_a_long_chain_with_a_living_source_is_written(tmp_path: Path) -> None:
    length = 1000
    sums = "\n".join(f"v{i + 1} = Add (v{i}, c{i})" for i in range(length))
    text = f"""agraph (float[n, 4] a) => (float[n, 4] b) {{
    v0 = Tanh (a)
    {sums}
    w = Sigmoid (v{length})
    b = Mul (w, v0)
}}"""
    weights = {f"c{i}": np.array(i % 7 - 3 + i / 8, np.float32) for i in range(length)}
    check(tmp_path, text, {"a": normal(2, 4, seed=1)}, weights=weights)


def test_members_of_a_list_called_by_a_letter_are_layers(tmp_path: Path) -> None:
    lines = ["val_0 = Identity (a)"]
    for number in range(3):
        lines.append(f"one_{number} = MatMul (val_{number}, h__{number}__fc__weight)")
        lines.append(f"val_{number + 1} = Add (one_{number}, c)")
    body = "\n".join([*lines, "b = Neg (val_3)"])
    given = "float[n, 4] a, float[n, 4] c"
    text = f"agraph ({given}) => (float[n, 4] b) {{\n{body}\n}}"
    weights = {f"h.{n}.fc.weight": normal(4, 4, seed=n) for n in range(3)}
    feeds = {"a": normal(2, 4), "c": normal(2, 4, seed=5)}
    source = check(tmp_path, text, feeds, weights=weights)
    assert "for layer in self.h:" in source


ROTARY = """agraph (float[s, 4] a) => (float[1, s, 2] b) {
    axis = Constant <value = int64[1] {0}> ()
    last = Constant <value = int64[1] {2}> ()
    zero = Constant <value = int64 {0}> ()
    one = Constant <value = int64 {1}> ()
    val_0 = Shape <start = 0, end = 1> (a)
    val_1 = Squeeze (val_0, axis)
    val_2 = Range (zero, val_1, one)
    val_3 = Unsqueeze (val_2, axis)
    val_4 = Unsqueeze (val_3, last)
    val_5 = Cast <to = 1> (val_4)
    val_6 = Mul (val_5, rotary__inv_freq)
    val_7 = Cos (val_6)
    b = Tanh (val_7)
}"""


def test_angles_are_computed_from_positions(tmp_path: Path) -> None:
    model = parsed(ROTARY, {"rotary.inv_freq": normal(2)})
    model.producer_name = "pytorch"
    for number, node in enumerate(model.graph.node):
        inside = node.output[0] in ("val_4", "val_5", "val_6", "val_7")
        node.name = f"{'/rotary' if inside else ''}/{node.op_type}_{number}"
    onnx.save(model, tmp_path / "model.onnx")
    path, name = generate(tmp_path / "model.onnx", tmp_path)
    assert "def __call__(self, positions: Tensor)" in path.read_text("utf-8")
    a = normal(3, 4)
    (expected,) = onnxruntime_results(model, {"a": a})
    net = getattr(import_file(path), name).load()
    np.testing.assert_allclose(net(burn.tensor(a)).numpy(), expected, rtol=1e-5)

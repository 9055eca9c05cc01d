"""Locals and attributes without a name in the file are named after their use."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from burn import ops
from burn_import.codegen.printing.consumer_words import MAX_READERS, Uses, uses
from burn_import.tracing.trace import Block, Tracer
from burn_ir.types import Type
from tests.importer.looped import check, normal

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

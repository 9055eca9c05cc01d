"""Statements that are too long for a line get names for their operands."""

import ast
from pathlib import Path
from random import Random

import numpy as np
import onnx
import pytest

import burn
from burn_import.codegen.printing.long_lines import nesting
from tests.importer.looped import check, normal, onnxruntime_results, parsed
from tests.modules import generate, import_file

INPUTS = ("first_hidden_states", "second_hidden_states", "third_hidden_states")


def statements(source: str) -> list[ast.stmt]:
    """Return the statements of ``__call__``."""
    methods = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef)]
    (call,) = (method for method in methods if method.name == "__call__")
    return call.body


def long_statements(source: str) -> list[str]:
    """Return the statements of ``__call__`` that take several lines."""
    return [
        ast.unparse(one)
        for one in statements(source)
        if one.end_lineno is not None and one.end_lineno > one.lineno
    ]


def random_text(seed: int) -> str:
    """Return a model of elementwise operators that read each result once or twice."""
    random = Random(seed)
    values, lines = [*INPUTS], []
    for number in range(random.randrange(4, 12)):
        name = f"value_{number}"
        kind = random.choice(["Add", "Sub", "Mul", "Max", "Min", "Tanh", "Sigmoid"])
        count = 1 if kind in ("Tanh", "Sigmoid") else 2
        operands = random.choices(values[-4:], k=count)
        lines.append(f"{name} = {kind} ({', '.join(operands)})")
        values.append(name)
    lines.append(f"result = Where (condition, {values[-1]}, {values[-2]})")
    given = ", ".join(f"float[n, 4] {name}" for name in INPUTS)
    body = "\n".join(lines)
    return (
        f"agraph (bool[n, 4] condition, {given}) => (float[n, 4] result) {{\n{body}\n}}"
    )


@pytest.mark.parametrize("seed", range(24))
def test_each_statement_fits_on_a_line(seed: int, tmp_path: Path) -> None:
    feeds = {name: normal(2, 4, seed=at) for at, name in enumerate(INPUTS)}
    condition = normal(2, 4, seed=9) > 0
    source = check(tmp_path, random_text(seed), {"condition": condition, **feeds})
    assert long_statements(source) == []


def test_operands_of_one_operator_are_named_together(tmp_path: Path) -> None:
    text = """agraph (
        float[n, 4] query_states, float[n, 4] key_states, bool[n, 4] chosen)
        => (float[n, 4] result) {
    half = Constant <value = float {0.5}> ()
    a = Add (query_states, half)
    b = Tanh (a)
    c = Add (key_states, half)
    d = Tanh (c)
    result = Where (chosen, b, d)
}"""
    feeds = {"query_states": normal(2, 4), "key_states": normal(2, 4, seed=1)}
    source = check(tmp_path, text, {**feeds, "chosen": normal(2, 4, seed=2) > 0})
    counts = [ast.unparse(one).count("ops.tanh") for one in statements(source)]
    assert counts == [1, 1, 0]


PYRAMID = """agraph (float[n, 2, 8, 8] image) => (float[n, 2, 2, 2] y) {
    val_0 = Conv (image, backbone__one__weight)
    val_1 = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (val_0)
    val_2 = Conv (val_1, backbone__two__weight)
    val_3 = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (val_2)
    val_4 = Conv (val_3, backbone__three__weight)
    val_5 = MaxPool <kernel_shape = [4, 4], strides = [4, 4]> (val_0)
    val_6 = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (val_2)
    val_7 = Add (val_4, val_5)
    y = Mul (val_6, val_7)
}"""


def test_maps_of_several_sizes_are_numbered(tmp_path: Path) -> None:
    names = ("one", "two", "three")
    weights = {f"backbone.{name}.weight": normal(2, 2, 1, 1) for name in names}
    model = parsed(PYRAMID, weights)
    model.producer_name = "pytorch"
    for number, node in enumerate(model.graph.node):
        scope = "/backbone" if number < 5 else ""
        node.name = f"{scope}/{node.op_type}_{number}"
    onnx.save(model, tmp_path / "model.onnx")
    path, name = generate(tmp_path / "model.onnx", tmp_path)
    source = path.read_text("utf-8")
    assert "features_0, features_1, features_2 = self.backbone(image)" in source
    image = normal(2, 2, 8, 8)
    net = getattr(import_file(path), name).load()
    (expected,) = onnxruntime_results(model, {"image": image})
    np.testing.assert_allclose(net(burn.tensor(image)).numpy(), expected, rtol=1e-5)


def test_a_call_that_fits_after_its_operand_got_a_name_is_inlined(
    tmp_path: Path,
) -> None:
    text = """agraph (
        bool[n, 4] condition, float[n, 4] first_hidden_states,
        float[n, 4] second_hidden_states, float[n, 4] third_hidden_states)
        => (float[n, 4] result) {
    a = Tanh (first_hidden_states)
    chosen_hidden_states = Where (condition, a, second_hidden_states)
    result = Add (third_hidden_states, chosen_hidden_states)
}"""
    feeds = {name: normal(2, 4, seed=at) for at, name in enumerate(INPUTS)}
    source = check(tmp_path, text, {"condition": normal(2, 4, seed=9) > 0, **feeds})
    assert [ast.unparse(one) for one in statements(source)] == [
        "x = ops.tanh(first_hidden_states)",
        "return third_hidden_states + ops.where(condition, x, second_hidden_states)",
    ]


def test_at_most_two_operations_are_inside_of_each_other(tmp_path: Path) -> None:
    operators = ["Tanh", "Sigmoid", "Softplus", "Erf", "Softsign", "Cos", "Sin", "Atan"]
    lines = [f"v{n + 1} = {name} (v{n})" for n, name in enumerate(operators)]
    text = "\n".join(["agraph (float[n] v0) => (float[n] y) {", *lines, "y = Neg (v8)"])
    source = check(tmp_path, text + "\n}", {"v0": normal(5, seed=0)})
    calls = [ast.unparse(one).count("(") for one in statements(source)]
    assert calls == [2, 2, 2, 2]


def test_parentheses_inside_of_strings_do_not_count_as_calls() -> None:
    assert nesting("""f(g('a)'), "b'(")""") == nesting("f(g(x))") == (2, 0)
    assert nesting(r"f('\'(', x)") == (1, 0)
    assert nesting("self.f(ops.gelu(self.g(ops.exp(x))), (ops.abs(y)))") == (4, 2)

"""Steps over lists of modules: their results and their source.

A function runs in the module of its operand, so that a block ends with all functions
that follow it.
"""

from pathlib import Path

import pytest

from tests.importer.looped import check, normal
from tests.modules import Array

#: A block of two nodes, so that it is a module: x -> relu(x @ weight + bias).
BLOCK = "h{i} = Gemm ({x}, blocks__{i}__fc__weight, blocks__{i}__fc__bias)\n"
BLOCK += "{y} = Relu (h{i})\n"


def weights(count: int, name: str = "blocks.{}.fc", size: int = 4) -> dict[str, Array]:
    """Return weights of ``count`` blocks."""
    results: dict[str, Array] = {}
    for i in range(count):
        results[f"{name.format(i)}.weight"] = normal(size, size, seed=2 * i)
        results[f"{name.format(i)}.bias"] = normal(size, seed=2 * i + 1)
    return results


def graph(lines: str, inputs: str, outputs: str) -> str:
    """Return the text of a graph."""
    return f"agraph ({inputs}) => ({outputs}) {{\n{lines}\n}}"


def feeds(*names: str) -> list[dict[str, Array]]:
    """Return inputs of [n, 4] at two sizes."""
    return [
        {name: normal(n, 4, seed=k) for k, name in enumerate(names)} for n in (1, 3)
    ]


def body(source: str) -> str:
    """Return the ``__call__`` of the first class, without the spaces before lines."""
    call = source.partition("def __call__")[2].partition("\n\n\n")[0]
    lines = [line.strip() for line in call.splitlines()[1:]]
    return "\n".join(line for line in lines if not line.startswith("#"))


def run(folder: Path, lines: str, inputs: list[str], outputs: str, count: int) -> str:
    """Return the printed body of a model with that many blocks."""
    shown = ", ".join(f"float[n, 4] {name}" for name in inputs)
    given = feeds(*inputs)
    text = graph(lines, shown, outputs)
    return body(check(folder, text, *given, weights=weights(count)))


def test_functions_between_the_calls_are_in_the_loop(tmp_path: Path) -> None:
    lines, result = "x0 = Identity (x)\n", weights(3, "fc.{}")
    for i in range(3):
        lines += f"h{i} = Gemm (x{i}, fc__{i}__weight, fc__{i}__bias)\n"
        lines += f"s{i} = Sigmoid (h{i})\nx{i + 1} = Add (s{i}, x{i})\n"
    text = graph(lines + "y = Tanh (x3)", "float[n, 4] x", "float[n, 4] y")
    printed = body(check(tmp_path, text, *feeds("x"), weights=result))
    assert "for fc in self.fc:\nx = ops.sigmoid(fc(x)) + x\n" in printed


def test_functions_between_but_not_after_the_calls(tmp_path: Path) -> None:
    lines, result = "x0 = Identity (x)\n", weights(4, "fc.{}")
    for i in range(4):
        lines += f"h{i} = Gemm (x{i}, fc__{i}__weight, fc__{i}__bias)\n"
        lines += f"s{i} = Sigmoid (h{i})\nx{i + 1} = Add (s{i}, x{i})\n" * (i < 3)
    text = graph(lines + "y = Neg (h3)", "float[n, 4] x", "float[n, 4] y")
    printed = body(check(tmp_path, text, *feeds("x"), weights=result))
    loop = "for fc in self.fc[:3]:\nx = ops.sigmoid(fc(x)) + x\n"
    assert f"{loop}return -self.fc[3](x)" in printed


CACHED = """h{i} = Gemm (x{i}, blocks__{i}__fc__weight, blocks__{i}__fc__bias)
k{i} = Mul (h{i}, past_key_{i})
new_key_{i} = Add (k{i}, mask)
x{j} = Relu (new_key_{i})
"""


@pytest.mark.parametrize("count", [2, 3])
def test_one_argument_and_one_result_for_each_step(tmp_path: Path, count: int) -> None:
    lines = "x0 = Identity (x)\n"
    for i in range(count):
        lines += CACHED.format(i=i, j=i + 1)
    keys = [f"new_key_{i}" for i in range(count)]
    outputs = ", ".join(f"float[n, 4] {name}" for name in ("y", *keys))
    inputs = ["x", "mask", *(f"past_key_{i}" for i in range(count))]
    printed = run(tmp_path, lines + f"y = Tanh (x{count})", inputs, outputs, count)
    assert "for block, past_key in zip(" in printed
    assert f"({', '.join(inputs[2:])})" in printed
    assert "new_keys: list[Tensor] = []" in printed
    assert "x, new_key = block(x, mask, past_key)\nnew_keys.append(new_key)" in printed
    assert "new_keys[0]" in printed and f"new_keys[{count - 1}]" in printed


PAIRED = """h{i} = Gemm (x{i}, blocks__{i}__fc__weight, blocks__{i}__fc__bias)
offset_{j} = Add (h{i}, offset_{i})
x{j} = Relu (offset_{j})
"""


def test_two_values_go_from_step_to_step(tmp_path: Path) -> None:
    lines = "x0 = Identity (x)\noffset_0 = Neg (offset)\n"
    for i in range(3):
        lines += PAIRED.format(i=i, j=i + 1)
    lines += "y = Add (x3, offset_3)"
    printed = run(tmp_path, lines, ["x", "offset"], "float[n, 4] y", 3)
    loop = "for block in self.blocks:\noffset = block(x) + offset\n"
    assert f"{loop}x = ops.relu(offset)\nreturn x + offset" in printed


def test_values_of_all_steps_are_collected(tmp_path: Path) -> None:
    lines = "x0 = Identity (x)\n"
    for i in range(4):
        lines += BLOCK.format(i=i, x=f"x{i}", y=f"x{i + 1}")
    lines += "y = Concat <axis = 1> (x1, x2, x3, x4)"
    printed = run(tmp_path, lines, ["x"], "float[n, 16] y", 4)
    assert "hidden_states.append(x)" in printed
    assert "ops.concat(hidden_states, axis=1)" in printed


def test_a_stream_read_once_on_its_way_is_two_loops(tmp_path: Path) -> None:
    lines = "x0 = Identity (x)\n"
    for i in range(6):
        lines += BLOCK.format(i=i, x=f"x{i}", y=f"x{i + 1}")
    printed = run(tmp_path, lines + "y = Sub (x3, x6)", ["x"], "float[n, 4] y", 6)
    assert "for block in self.blocks[:3]:\nx = block(x)" in printed
    assert "for block in self.blocks[3:]:\ny = block(y)" in printed
    assert "append" not in printed


def test_a_last_step_that_differs(tmp_path: Path) -> None:
    lines = "x0 = Identity (x)\n"
    for i in range(3):
        lines += BLOCK.format(i=i, x=f"x{i}", y=f"x{i + 1}")
    lines += "h3 = Gemm (x3, blocks__3__fc__weight, blocks__3__fc__bias)\n"
    lines += "g3 = Tanh (h3)\ny = Mul (g3, x)"
    printed = run(tmp_path, lines, ["x"], "float[n, 4] y", 4)
    assert "for block in self.blocks[:3]:\n" in printed
    assert "self.blocks[3](" in printed


def test_a_chain_of_several_classes_is_called_as_one(tmp_path: Path) -> None:
    lines = "x0 = Identity (x)\n"
    for i in range(3):
        lines += BLOCK.format(i=i, x=f"x{i}", y=f"r{i}")
        lines += f"x{i + 1} = {('Tanh', 'Neg', 'Tanh')[i]} (r{i})\n"
    printed = run(tmp_path, lines + "y = Neg (x3)", ["x"], "float[n, 4] y", 3)
    assert printed == "return self.blocks(x)"


def test_a_first_step_with_a_result_for_the_others(tmp_path: Path) -> None:
    lines = "h0 = Gemm (x, blocks__0__fc__weight, blocks__0__fc__bias)\n"
    lines += "bias = Tanh (h0)\nx1 = Mul (bias, h0)\n"
    for i in range(1, 4):
        lines += f"h{i} = Gemm (x{i}, blocks__{i}__fc__weight, blocks__{i}__fc__bias)\n"
        lines += f"a{i} = Add (h{i}, bias)\nx{i + 1} = Relu (a{i})\n"
    printed = run(tmp_path, lines + "y = Neg (x4)", ["x"], "float[n, 4] y", 4)
    assert "for block in self.blocks[1:]:\n" in printed
    assert "ops.relu(block(x) + bias)" in printed


@pytest.mark.parametrize(("count", "shown"), [(4, "(a, b) * 2"), (3, "(a, b, a)")])
def test_values_that_steps_take_in_turns(
    tmp_path: Path, count: int, shown: str
) -> None:
    lines = "x0 = Identity (x)\n"
    for i in range(count):
        lines += BLOCK.format(i=i, x=f"x{i}", y=f"r{i}")
        lines += f"x{i + 1} = Mul (r{i}, {'ab'[i % 2]})\n"
    lines += f"y = Tanh (x{count})"
    printed = run(tmp_path, lines, ["x", "a", "b"], "float[n, 4] y", count)
    assert f"in zip(self.blocks, {shown}, strict=True):" in printed


def test_steps_through_two_lists(tmp_path: Path) -> None:
    lines = "x0 = Identity (x)\n"
    result = weights(3, "up.{}") | weights(3, "down.{}")
    for i in range(3):
        lines += f"h{i} = Gemm (x{i}, up__{i}__weight, up__{i}__bias)\n"
        lines += f"r{i} = Softplus (h{i})\n"
        lines += f"g{i} = Gemm (r{i}, down__{i}__weight, down__{i}__bias)\n"
        lines += f"x{i + 1} = Add (g{i}, x{i})\n"
    text = graph(lines + "y = Neg (x3)", "float[n, 4] x", "float[n, 4] y")
    printed = body(check(tmp_path, text, *feeds("x"), weights=result))
    assert "for up, down in zip(self.up, self.down, strict=True):" in printed
    assert "x = down(ops.softplus(up(x))) + x" in printed


def test_a_step_that_reads_the_one_before_the_last_stays(tmp_path: Path) -> None:
    lines, result = "x0 = Identity (x)\n", weights(4, "fc.{}")
    for i in range(4):
        lines += f"h{i} = Gemm (x{i}, fc__{i}__weight, fc__{i}__bias)\n"
        lines += f"x{i + 1} = Add (h{i}, x{max(i - 1, 0)})\n"
    text = graph(lines + "y = Neg (x4)", "float[n, 4] x", "float[n, 4] y")
    printed = body(check(tmp_path, text, *feeds("x"), weights=result))
    assert "for fc" not in printed


@pytest.mark.parametrize("changed", ["value", "function", "order", "nothing"])
def test_steps_that_are_not_equal_stay(tmp_path: Path, changed: str) -> None:
    lines, result = "x0 = Identity (x)\n", weights(4, "fc.{}")
    order = [0, 2, 1, 3] if changed == "order" else [0, 1, 2, 3]
    for at, i in enumerate(order):
        factor = 3.0 if changed == "value" and at % 2 else 2.0
        name = "Tanh" if changed == "function" and at % 2 else "Sigmoid"
        lines += f"h{at} = Gemm (x{at}, fc__{i}__weight, fc__{i}__bias)\n"
        lines += f"c{at} = Constant <value_float = {factor}> ()\n"
        lines += f"s{at} = {name} (h{at})\nm{at} = Mul (s{at}, c{at})\n"
        lines += f"x{at + 1} = Add (m{at}, x{at})\n"
    text = graph(lines + "y = Neg (x4)", "float[n, 4] x", "float[n, 4] y")
    printed = body(check(tmp_path, text, *feeds("x"), weights=result))
    assert ("for fc in self.fc:" in printed) == (changed == "nothing")


def test_one_step_is_no_loop(tmp_path: Path) -> None:
    lines = BLOCK.format(i=0, x="x", y="r") + "y = Neg (r)"
    printed = run(tmp_path, lines, ["x"], "float[n, 4] y", 1)
    assert "self.blocks[0](x)" in printed


def test_extents_that_change_from_step_to_step(tmp_path: Path) -> None:
    lines, result = "x0 = Identity (x)\n", dict[str, Array]()
    for i in range(3):
        lines += f"h{i} = Gemm (x{i}, fc__{i}__weight, fc__{i}__bias)\n"
        lines += f"x{i + 1} = Concat <axis = 1> (h{i}, x{i})\n"
        size = 4 * 2**i
        result[f"fc.{i}.weight"] = normal(size, size, seed=i)
        result[f"fc.{i}.bias"] = normal(size, seed=i + 9)
    text = graph(lines + "y = Tanh (x3)", "float[n, 4] x", "float[n, 32] y")
    printed = body(check(tmp_path, text, *feeds("x"), weights=result))
    assert "for fc in self.fc:\nx = ops.concat([fc(x), x], axis=1)\n" in printed


@pytest.mark.parametrize("fixed", [True, False])
def test_extents_that_steps_read(tmp_path: Path, fixed: bool) -> None:
    lines, output = "x0 = Identity (x)\n", weights(3, "fc.{}")
    for i in range(3):
        grown = f"x{i}" if fixed else f"w{i}"
        lines += f"w{i} = Concat <axis = 0> (x{i}, x{i})\n"
        lines += f"h{i} = Gemm (x{i}, fc__{i}__weight, fc__{i}__bias)\n"
        lines += f"n{i} = Shape <start = 0, end = 1> ({grown})\n"
        lines += f"f{i} = Cast <to = 1> (n{i})\nd{i} = Div (h{i}, f{i})\n"
        result = f"d{i}, x{i}" if fixed else f"d{i}, d{i}"
        lines += f"x{i + 1} = {'Add' if fixed else 'Concat <axis = 0>'} ({result})\n"
    text = graph(lines + "y = Tanh (x3)", "float[n, 4] x", "float[m, 4] y")
    printed = body(check(tmp_path, text, *feeds("x"), weights=output))
    assert ("for fc in self.fc:" in printed) == fixed

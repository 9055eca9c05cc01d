"""Statements that an exporter printed once per round become a loop."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from burn import ops
from burn.dtypes import float32
from burn_import.codegen.containers.containers import Containers, Holders
from burn_import.codegen.loops.reroll import reroll_loops
from burn_import.codegen.trace.function import FunctionTrace
from burn_import.tracing.identifiers import Namespace
from burn_import.tracing.trace import Apply, Block, Repetition, Symbol, Tracer
from burn_ir.types import Type
from tests.importer.looped import check, normal
from tests.pace import counted_calls

WEIGHTS = {"w": normal(4, 4) / 2, "u": normal(4, 4, seed=3) / 2}
FEEDS = [{"x": normal(n, 6, 4), "h": normal(n, 4)} for n in (1, 3)]
BASES = ("zeros", "y0", "y1", "y2", "y3", "y4")
ONE = "one = Constant <value = int64[1] {1}> ()"


def scan(count: int, changed: dict[int, str] | None = None) -> list[str]:
    """The nodes of ``h = tanh(x[:, t] @ w + h @ u)``; some additions are replaced."""
    lines = [ONE]
    for t in range(count):
        before = f"h{t - 1}" if t else "h"
        operator = (changed or {}).get(t, "Add")
        lines += [
            f"i{t} = Constant <value = int64 {{{t}}}> ()",
            f"x{t} = Gather <axis = 1> (x, i{t})",
            f"a{t} = MatMul (x{t}, w)",
            f"b{t} = MatMul ({before}, u)",
            f"c{t} = {operator} (a{t}, b{t})",
            f"h{t} = Tanh (c{t})",
            f"e{t} = Unsqueeze (h{t}, one)",
        ]
    return lines


def source(folder: Path, lines: list[str], result: str) -> str:
    """The body of the generated module, which agrees with onnxruntime."""
    inputs, outputs = "float[n, 6, 4] x, float[n, 4] h", f"float[n, m, 4] {result}"
    text = "\n".join(lines)
    graph = f"agraph ({inputs}) => ({outputs}) {{\n{text}\n}}"
    return check(folder, graph, *FEEDS, weights=WEIGHTS)


def stacked(order: list[int]) -> str:
    return f"ys = Concat <axis = 1> ({', '.join(f'e{t}' for t in order)})"


def test_states_are_collected(tmp_path: Path) -> None:
    text = source(tmp_path, [*scan(6), stacked([*range(6)])], "ys")
    assert "for i in range(6):" in text
    assert "h = ops.tanh(self.linear(x[:, i]) + self.linear_2(h))" in text
    assert "hidden_states.append(h)" in text
    assert "ops.stack(hidden_states, axis=1)" in text


def test_states_are_collected_along_the_first_axis(tmp_path: Path) -> None:
    axes = "first = Constant <value = int64[1] {0}> ()"
    rows = [f"r{t} = Unsqueeze (h{t}, first)" for t in range(6)]
    joined = f"rows = Concat <axis = 0> ({', '.join(f'r{t}' for t in range(6))})"
    turned = "ys = Transpose <perm = [1, 0, 2]> (rows)"
    text = source(tmp_path, [*scan(6), axes, *rows, joined, turned], "ys")
    assert "ops.stack(hidden_states)" in text


@pytest.mark.parametrize("order", [range(6), (1, 0, 2, 3, 4, 5)])
def test_states_are_written_into_a_tensor(tmp_path: Path, order: list[int]) -> None:
    places = [
        f"p{t} = Constant <value = int64[1, 1, 4] {{{', '.join([str(t)] * 4)}}}> ()"
        for t in range(6)
    ]
    writes = [
        f"y{at} = ScatterElements <axis = 1> ({base}, q{t}, e{t})"
        for at, (t, base) in enumerate(zip(order, BASES, strict=True))
    ]
    shapes = ["size = Shape (e0)", "n = Shape <start = 0, end = 1> (x)"]
    shapes.append("rest = Constant <value = int64[2] {6, 4}> ()")
    shapes.append("full = Concat <axis = 0> (n, rest)")
    shapes.append("zeros = ConstantOfShape (full)")
    wide = [f"q{t} = Expand (p{t}, size)" for t in range(6)]
    lines = [*scan(6), *places, *shapes, *wide, *writes, "y = Identity (y5)"]
    text = source(tmp_path, lines, "y")
    assert "for i in range(6):" in text
    assert "ops.scatter" not in text
    assert "ops.stack(" in text


def test_slices_before_all_rounds_are_read_in_each(tmp_path: Path) -> None:
    lines = scan(6)
    slices = [one for one in lines if one[0] in "ix"]
    rest = [one for one in lines if one not in slices]
    text = source(tmp_path, [*slices, *rest, stacked([*range(6)])], "ys")
    assert "for i in range(6):" in text
    assert "self.linear(x[:, i])" in text


def test_other_first_round_stays_before_the_loop(tmp_path: Path) -> None:
    text = source(tmp_path, [*scan(6, {0: "Mul"}), stacked([*range(6)])], "ys")
    assert "for i in range(5):" in text
    assert "x[:, i + 1]" in text
    assert "*" in text.partition("for i in range")[0]


def test_other_last_round_stays_after_the_loop(tmp_path: Path) -> None:
    text = source(tmp_path, [*scan(6, {5: "Mul"}), stacked([*range(6)])], "ys")
    assert "for i in range(5):" in text
    assert "x[:, 5]" in text.partition("for i in range")[2]


def test_other_order_of_collected_values(tmp_path: Path) -> None:
    text = source(tmp_path, [*scan(6), stacked([1, 0, 2, 3, 4, 5])], "ys")
    assert "[hidden_states[1], hidden_states[0], hidden_states[2]" in flat(text)


def flat(text: str) -> str:
    """The text in one line."""
    return " ".join(text.split()).replace("[ ", "[")


@pytest.mark.parametrize("value", ["older", "twice"])
def test_rounds_that_read_another_state(tmp_path: Path, value: str) -> None:
    lines = scan(6)
    for t in range(2, 6):
        before = t - 2 if value == "older" else t % 2
        at = lines.index(f"b{t} = MatMul (h{t - 1}, u)")
        lines[at] = f"b{t} = MatMul (h{before}, u)"
    source(tmp_path, [*lines, stacked([*range(6)])], "ys")


def test_numbers_of_rounds(tmp_path: Path) -> None:
    lines = [ONE]
    for t in range(6):
        lines += [
            f"t{t} = Constant <value = float {{{2 * t + 1}.0}}> ()",
            f"a{t} = Add ({f'h{t - 1}' if t else 'h'}, t{t})",
            f"b{t} = Sin (a{t})",
            f"c{t} = Softsign (b{t})",
            f"h{t} = Tanh (c{t})",
        ]
    text = source(tmp_path, [*lines, "y = Unsqueeze (h5, one)"], "y")
    assert "for i in range(" in text
    assert "i * 2 + " in text


PYRAMID = """
agraph (float[n, 2, 128] x) => (float[n, c, 2] y) {
ROUNDS
y = Identity (ALL)
}
"""


def pyramid(strides: list[int], swapped: Sequence[int] = ()) -> str:
    """Rounds that halve a signal and join two convolutions of it to the earlier ones.

    The round that is ``swapped`` lists these in the other order.
    """
    lines, signal, joined = [], "x", ""
    for number, stride in enumerate(strides):
        attributes = f"<strides = [{stride}], pads = [1, 1]>"
        both = [
            f"p{number} = Conv {attributes} (r{number}, v)",
            f"q{number} = Conv {attributes} (r{number}, u)",
        ]
        lines += [
            f"t{number} = Conv <strides = [2], pads = [1, 1]> ({signal}, w)",
            f"s{number} = Tanh (t{number})",
            f"r{number} = Sin (s{number})",
            *(both[::-1] if number in swapped else both),
            f"c{number} = Concat <axis = 1> (p{number}, q{number})",
        ]
        signal = f"s{number}"
    for number in range(len(strides)):
        if joined:
            lines.append(f"j{number} = Concat <axis = 1> (c{number}, {joined})")
        joined = f"j{number}" if joined else f"c{number}"
    return PYRAMID.replace("ROUNDS", "\n".join(lines)).replace("ALL", joined)


@pytest.mark.parametrize("swapped", [(), (1,)])
def test_strides_of_rounds(tmp_path: Path, swapped: tuple[int, ...]) -> None:
    weights = {name: normal(2, 2, 3, seed=i) / 4 for i, name in enumerate("wvu")}
    feeds = [{"x": normal(n, 2, 128)} for n in (1, 3)]
    text = pyramid([32, 16, 8, 4, 2], swapped)
    source = check(tmp_path, text, *feeds, weights=weights)
    assert "for stride in (16, 8, 4, 2):" in source
    assert "stride=stride, padding=1)" in flat(source)


def test_slices_of_rounds(tmp_path: Path) -> None:
    lines = []
    for number, first in enumerate((0, 3, 4, 9, 11, 12)):
        lines += [
            f"i{number} = Constant <value = int64[1] {{{first}}}> ()",
            f"e{number} = Constant <value = int64[1] {{{first + 2}}}> ()",
            f"a{number} = Constant <value = int64[1] {{1}}> ()",
            f"x{number} = Slice (x, i{number}, e{number}, a{number})",
            f"m{number} = Mul ({f'h{number - 1}' if number else 'h'}, x{number})",
            f"d{number} = Sin (m{number})",
            f"h{number} = Tanh (d{number})",
        ]
    text = "\n".join([*lines, "y = Identity (h5)"])
    graph = f"agraph (float[n, 14] x, float[n, 2] h) => (float[n, 2] y) {{\n{text}\n}}"
    feeds = [{"x": normal(n, 14), "h": normal(n, 2)} for n in (1, 3)]
    source = check(tmp_path, graph, *feeds)
    assert "for number in (0, 3, 4, 9, 11, 12):" in source
    assert "x[:, number : number + 2]" in source


@pytest.mark.parametrize("is_result", [False, True])
def test_parts_of_rounds(tmp_path: Path, is_result: bool) -> None:
    parts = [f"x{number}" for number in range(6)]
    lines = [f"{', '.join(parts)} = Split <axis = 1, num_outputs = 6> (x)"]
    for number, part in enumerate(parts):
        lines += [
            f"m{number} = Mul ({f'h{number - 1}' if number else 'h'}, {part})",
            f"d{number} = Sin (m{number})",
            f"a{number} = Add (d{number}, {part})",
            f"h{number} = Tanh (a{number})",
        ]
    last = "x5" if is_result else "h5"
    text = "\n".join([*lines, "y = Identity (h5)", f"z = Identity ({last})"])
    outputs = "float[n, 2] y, float[n, 2] z"
    graph = f"agraph (float[n, 12] x, float[n, 2] h) => ({outputs}) {{\n{text}\n}}"
    feeds = [{"x": normal(n, 12), "h": normal(n, 2)} for n in (1, 3)]
    source = check(tmp_path, graph, *feeds)
    assert ("xs = ops.chunk(x, count=6, axis=1)" in source) == (not is_result)
    assert ("= xs[i]" in source) == (not is_result)


def test_the_work_grows_in_proportion_to_the_rounds() -> None:
    rounds(10)  # what is imported and looked up once
    few, more, many = map(rounds, (100, 200, 400))
    assert many - more <= 2.1 * (more - few)


def rounds(count: int) -> int:
    """Return the number of function calls that make a loop of ``count`` rounds."""
    trace = recurrence(count)
    holders = Holders(Namespace())
    calls = counted_calls(lambda: reroll_loops(trace, Containers({}, holders), {}))
    (loop,) = trace.body.statements
    assert isinstance(loop, Repetition)
    assert loop.trips == count
    return calls


def recurrence(count: int) -> FunctionTrace:
    """A function of four statements in each of ``count`` rounds."""
    tracer, kind = Tracer(), Type(float32, (count, 4))
    x, h = tracer.symbol(kind, "x"), tracer.symbol(Type(float32, (4,)), "h")
    block = Block()
    tracer.blocks.append(block)
    state = h
    for number in range(count):
        item = call(tracer, ops.getitem, x, (number,))
        total = call(tracer, ops.add, state, item)
        scaled = call(tracer, ops.mul, total, item)
        state = call(tracer, ops.tanh, scaled)
    block.results = [state]
    return FunctionTrace([x.data, h.data], block)


def call(tracer: Tracer, primitive: Any, *args: Any) -> Any:
    """Record a call whose result has four elements."""
    result = tracer.symbol(Type(float32, (4,)), "")
    symbol: Symbol = result.data
    tracer.append(Apply(primitive, args, {}, [symbol]))
    return result

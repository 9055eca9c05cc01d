"""What the score counts, and its table."""

import ast
from pathlib import Path

import pytest

from tests.written.measures import LISTED, Measures, measure
from tests.written.score import main

SOURCE = '''
"""A model."""


class Net(nn.Module):
    """A class."""

    def __init__(self) -> None:
        super().__init__()
        self.constant = nn.buffer(4)
        self.mlp = MLP2()

    def __call__(self, x: Tensor) -> Tensor:
        batch, length = x.shape
        x = x.reshape(batch, length, 2, 4)
        # [batch, 18, 4, 8]
        y = x.reshape(batch, 18, 4, 8) * 0.3535534
        y2, _ = ops.clip(y, min=-3.4028235e38), 0.5
        return y2


class MLP(nn.Module):
    pass


class MLP2(nn.Module):
    pass


class Block1(nn.Module):
    pass
'''


def test_counts_are_those_of_a_reader() -> None:
    assert measure(SOURCE) == Measures(
        lines=17,
        classes=4,
        twins=1,
        locals=4,
        letters=2,
        constants=1,
        floats=1,
        comments=1,
        long=0,
        nested=0,
        sizes=1,
        passing=0,
        holders=3,
    )


@pytest.mark.parametrize(
    ("line", "nested"),
    [
        ("x = f(g(h(x)))", 0),
        ("x = f(g(h(i(x))))", 1),
        ("return f(x, key=g(h(self.i[0](x))))", 1),
        ("x = x.f(1).g(2).h(3).i(4)", 0),
        ("x = ops.exp(f(ops.abs(x)))", 0),
        ("x = ops.exp(ops.log(ops.abs(x)))", 1),
        ("self.a = nn.Sequential(nn.Sequential(nn.Sequential(nn.Tanh())))", 0),
    ],
)
def test_calls_in_arguments_are_nested(line: str, nested: int) -> None:
    assert measure(f"def f(x):\n    {line}").nested == nested


PASSING = """
class Net(nn.Module):
    @nn.check_inputs(x="float32[n]")
    def __call__(self, x):
        return self.m(x)

class Down(nn.Module):
    def __init__(self):
        self.conv = nn.Conv2d(3, 8)

    def __call__(self, x, y):
        \"\"\"Return something.\"\"\"
        return self.conv[0](x, y)

class Swapped(nn.Module):
    def __call__(self, x, y):
        return self.conv(y, x)

class Stage(nn.Module):
    def __init__(self, depth):
        self.layers = nn.Sequential(*(Down() for _ in range(depth)))

    def __call__(self, x):
        return self.layers(x)

class Result(NamedTuple):
    x: Tensor
"""


def test_passing_classes_only_call_a_member() -> None:
    assert LISTED["passing"](ast.parse(PASSING)) == ["Down"]
    assert LISTED["holders"](ast.parse(SOURCE)) == ["MLP", "MLP2", "Block1"]


def test_functions_are_long_from_61_lines_on() -> None:
    lines = ["    x = ops.relu(x)"] * 59
    source = "\n".join(["def f(x):", *lines])
    assert measure(source).long == 0
    assert measure(source + "\n    return x").long == 1


def test_table_has_a_line_for_each_model_and_keeps_sources(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--models", "golden/lstm", "--sources", str(tmp_path)]
    main(arguments)
    first = capsys.readouterr().out.splitlines()
    assert first[0].split()[:3] == ["model", "lines", "classes"]
    assert first[1].split()[0] == "golden/lstm"
    assert first[2].split()[:2] == ["1", "models"]
    (kept,) = tmp_path.iterdir()
    kept.write_text("x = 1\n", "utf-8")
    main(arguments)
    assert capsys.readouterr().out.splitlines()[1].split()[1] == "1"

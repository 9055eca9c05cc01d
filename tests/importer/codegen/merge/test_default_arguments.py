"""Defaults of constructor parameters that most calls give one value."""

import pytest

from burn_import.codegen.class_text import ClassText
from burn_import.codegen.module.default_arguments import with_default_arguments

BLOCK = ", channels: int, stride: int, residual: bool"


def classes(*fields: str, constructor: str = BLOCK, steps: str = "") -> list[ClassText]:
    """Return a root with ``fields``, and the class that they make."""
    root = ClassText("Net", "", list(fields), root=True, steps=steps)
    own = ["self.residual = residual", "self.fc = nn.Linear(channels, channels)"]
    return [root, ClassText("Block", "", own, constructor=constructor)]


def test_what_most_calls_pass_is_the_default() -> None:
    root, block = with_default_arguments(
        classes(
            "self.a = Block(8, stride=2, residual=False)",
            "self.b = nn.ModuleList(Block(8, stride=1, residual=True) for _ in "
            "range(3))",
            "self.c: Block | nn.Identity = (Block(8, stride=1, residual=True))",
            "self.d = Block(9, residual=True, stride=1)",
        )
    )
    expected = ", channels: int, stride: int = 1, residual: bool = True"
    assert block.constructor == expected
    assert root.fields == [
        "self.a = Block(8, stride=2, residual=False)",
        "self.b = nn.ModuleList(Block(8) for _ in " "range(3))",
        "self.c: Block | nn.Identity = Block(8)",
        "self.d = Block(9)",
    ]


def test_defaults_come_last_and_other_numbers_stay() -> None:
    constructor = ", stride: int, channels: int"
    lines = [
        "self.a = Block(stride=1, channels=8)",
        "self.b = Block(channels=8, stride=1)",
        "self.c = Block(channels=8, stride=1)",
    ]
    root, block = with_default_arguments(classes(*lines, constructor=constructor))
    assert block.constructor == ", channels: int, stride: int = 1"
    assert root.fields == [f"self.{name} = Block(channels=8)" for name in "abc"]


@pytest.mark.parametrize(
    "lines",
    [
        ["self.a = Block(8, stride=3, residual=True)"],
        [f"self.{name} = Block(8, 1, True)" for name in "abc"],
        [
            "self.a = Block(8, stride=2, residual=True)",
            "self.b = Block(8, stride=2, residual=False)",
        ],
        [
            "self.a = Block(8, stride=stride, residual=flag)",
            "self.b = Block(8, stride=2 * stride, residual=flag)",
        ],
    ],
)
def test_calls_without_a_usual_value_stay(lines: list[str]) -> None:
    texts = classes(*lines)
    assert with_default_arguments(texts) == texts


def test_a_class_that_a_sequence_makes_stays() -> None:
    lines = ["self.a = Block(8, stride=1, residual=True)"] * 3
    texts = classes(*lines, steps="Block(8, stride=1, residual=True)")
    assert with_default_arguments(texts) == texts
    given = classes(*lines, constructor=f"{BLOCK} = False")
    assert with_default_arguments(given) == given

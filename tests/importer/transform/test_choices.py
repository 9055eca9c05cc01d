"""Options that change the form of a module, not its results."""

import ast
from pathlib import Path
from typing import Any

import pytest

from burn_import import Options
from burn_import.passes import PASSES, pass_names
from burn_import.pipeline import import_model
from tests.cli.commands import run
from tests.importer.transform.blocks import (
    X,
    blocks,
    close,
    computed,
    head,
    wrong,
)

CHOICES: list[dict[str, Any]] = [
    {},
    {"flat": True},
    {"passes": ()},
    {"passes": ("linear", "dead_code")},
    {"passes": ("all",)},
    {"flat": True, "passes": ()},
    {"shapes": {"x": (2, 4, 6)}},
    {"shapes": {"x": ("n", "length", 6)}},
    {"dtype": "float32"},
]


@pytest.mark.parametrize("options", CHOICES, ids=str)
def test_the_values_stay(net: Path, options: dict[str, Any]) -> None:
    close(computed(net, X, **options), head(blocks(X)))


def test_flat_is_one_class(net: Path) -> None:
    flat = import_model(net, Options(flat=True))
    classes = [n for n in ast.walk(ast.parse(flat.text)) if isinstance(n, ast.ClassDef)]
    assert len(classes) == 1
    assert [key for key, _ in flat.weights] == [
        f"enc_{n}_lin.{part}" for n in (0, 1) for part in ("weight", "bias")
    ]
    assert "self.enc_1_lin = nn.Linear(6, 6)" in flat.text


def test_passes_are_chosen(net: Path) -> None:
    texts = {p: import_model(net, Options(passes=p)).text for p in (None, (), ("all",))}
    assert "nn.Linear" in texts[None] and "nn.Linear" not in texts[()]
    assert texts[("all",)] == texts[None]
    assert wrong(net, passes=("liner", "gelu")) == [
        "expected the name of a pass, got 'liner'; did you mean 'linear'?"
    ]
    (message,) = wrong(net, passes=("?",))
    assert all(name in message for name in pass_names())


def test_the_command_lists_the_passes() -> None:
    lines = run("passes").stdout.splitlines()
    assert [line.split()[0] for line in lines[: len(PASSES)]] == [
        apply.__name__ for apply in PASSES
    ]
    assert all(len(line.split()) > 3 for line in lines)

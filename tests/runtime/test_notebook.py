"""The HTML of tensors and modules: content, limits, escapes, and a late import."""

import xml.etree.ElementTree as ElementTree
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import burn
from burn import nn, ops
from tests.runtime.test_lazy_imports import modules_after


def parsed(value: Any) -> ElementTree.Element:
    """Return the tree of an HTML text, which is XML where attributes have values."""
    text = value._repr_html_().replace("<details open>", '<details open="">')
    return ElementTree.fromstring(f"<body>{text}</body>")


def cells(value: Any) -> list[list[str]]:
    """Return the cells of the only table."""
    (table,) = parsed(value).iter("table")
    return [[str(cell.text) for cell in row] for row in table]


def test_a_matrix_is_a_table() -> None:
    x = burn.tensor(np.array([[1, 0.123456], [np.nan, -np.inf]], np.float32))
    html = x._repr_html_()
    assert html.startswith(
        "<div><b>Tensor</b> <code>float32[2, 2] Cpu()</code></div><table>"
    )
    assert cells(x) == [["1", "0.1235"], ["nan", "-inf"]]


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.array(3, np.int64), ["3"]),
        (np.array([True, False]), ["True", "False"]),
        (np.array([1.5, 2], ml_dtypes.bfloat16), ["1.5", "2"]),
        (np.array([1e-30, 12345678], np.float64), ["1e-30", "1.235e+07"]),
        (np.array(["<b>&", "x" * 99], object), ["<b>&", "x" * 29 + "..."]),
    ],
)
def test_scalars_and_vectors_are_one_row(array: Any, expected: list[str]) -> None:
    assert cells(burn.tensor(array)) == [expected]


def test_long_axes_have_a_gap() -> None:
    rows = cells(burn.tensor(np.arange(10_000).reshape(100, 100)))
    assert len(rows) == 9 and rows[4] == ["\u22ee"]
    assert rows[0] == ["0", "1", "2", "3", "\u2026", "96", "97", "98", "99"]
    assert rows[-1][-1] == "9999"


def test_more_axes_and_no_elements_have_no_table() -> None:
    for shape in ((2, 3, 4), (0, 3)):
        x = burn.tensor(np.zeros(shape, np.float32))
        (div,) = parsed(x)
        assert "".join(div.itertext()) == f"Tensor float32{list(shape)} Cpu()"


def test_a_tensor_on_a_tape_is_shown() -> None:
    x = burn.tensor([1.0], burn.Autodiff(burn.Cpu())).require_grad()
    assert "Autodiff(Cpu())" in x._repr_html_() and cells(x * 2) == [["2"]]


class Block(nn.Module):
    """A module with an inner module, a function and a parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 4), ops.relu, nn.Linear(4, 1))
        self.norm = nn.LayerNorm((1,))

    def describe(self) -> str:
        """Return a text with characters of HTML."""
        return "mode='<fast>'"


def test_a_module_is_a_tree_with_numbers_of_parameters() -> None:
    root = parsed(Block())
    top, inner = root.iter("details")
    assert "open" in top.attrib and "open" not in inner.attrib
    summaries = ["".join(one.itertext()) for one in root.iter("summary")]
    assert summaries[0] == "Block(mode='<fast>') 23 parameters"
    assert summaries[1].startswith("layers: Sequential(")
    texts = ["".join(one.itertext()) for one in inner.iter("div")][1:]
    assert texts == [
        f"0: {nn.Linear(3, 4)} 16 parameters",
        f"2: {nn.Linear(4, 1)} 5 parameters",
    ]
    leaf = nn.Linear(1, 1, bias=False)._repr_html_()
    assert leaf.endswith("</code> 1 parameter</div></div>")
    assert leaf.startswith("<div><div><code>Linear(1, 1")


def test_a_compiled_module_shows_its_plans_and_tree() -> None:
    compiled = burn.compile(nn.Linear(2, 2))
    assert "float32, 0 plans" in compiled._repr_html_()
    compiled(burn.tensor([[1.0, 2.0]]))
    lines = ["".join(div.itertext()) for div in parsed(compiled)]
    assert lines[0] == "compiled Linear float32, 1 plan"
    assert lines[1].endswith("6 parameters")
    shown = "compile(Linear(2, 2, bias=True), precision='float32', plans=1)"
    assert repr(compiled) == shown


def test_a_compiled_function_that_is_not_compiled_says_why() -> None:
    def read(x: burn.Tensor) -> burn.Tensor:
        return x * float(x.numpy().mean())

    compiled = burn.compile(read)
    compiled(burn.tensor(np.ones((512, 512), np.float32)))
    (note,) = compiled.notes
    assert note in "".join(parsed(compiled).itertext())
    assert repr(compiled).startswith("compile(test_a_compiled_function")


def test_long_lists_are_cut() -> None:
    html = nn.ModuleList(nn.Linear(1, 1) for _ in range(130))._repr_html_()
    assert html.count("<code>Linear") == 100 and "and 30 more" in html


def test_the_file_is_imported_when_a_notebook_asks() -> None:
    code = (
        "import burn; from burn import nn; x, net = burn.tensor([1]), nn.Linear(2, 2)"
    )
    assert "burn.notebook" not in modules_after(f"{code}; repr(x), repr(net)")
    modules = modules_after(f"{code}; x._repr_html_(), net._repr_html_()")
    assert "burn.notebook" in modules and "numpy.random" not in modules

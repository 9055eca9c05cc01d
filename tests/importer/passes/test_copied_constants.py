"""Arrays that PyTorch's exporter stores once for each use in a module."""

from typing import Any

import numpy as np
import pytest

from burn_import.passes import simplify
from burn_ir import RawGraph, RawModel, RawNode, build
from burn_ir.dim import symbol
from burn_ir.types import Array, Type

FLOAT = np.dtype(np.float32)
MASK = np.triu(np.full((8, 8), -100.0, FLOAT), 1)
COMPUTED = ("unsqueeze_11", "unsqueeze_13")


def read(
    names: tuple[str, str] = COMPUTED,
    scopes: tuple[str, str] = ("a", "a"),
    array: Array = MASK,
    producer: str = "pytorch",
) -> int:
    """Return how many of two equal arrays a graph reads after the pass."""
    nodes = (
        RawNode("Add", "", {}, ("x", names[0]), ("p",), scope=(scopes[0],)),
        RawNode("Exp", "", {}, ("p",), ("q",), scope=(scopes[0],)),
        RawNode("Add", "", {}, ("q", names[1]), ("y",), scope=(scopes[1],)),
    )
    weights = {name: array.copy() for name in names}
    x = Type(FLOAT, (symbol("batch"), 8, 8))
    graph = RawGraph("graph", {"x": x}, ("y",), nodes, weights)
    result = simplify(build(RawModel(graph, {"": 17}, producer)), ["cse"])
    return len({name for node in result.nodes for name in node.inputs} & set(names))


def test_equal_masks_of_a_module_are_one() -> None:
    assert read() == 1


@pytest.mark.parametrize(
    "options",
    [
        {"names": ("a.first", "a.second")},
        {"scopes": ("a", "b")},
        {"array": np.ones((8, 8), FLOAT)},
        {"producer": "someone"},
    ],
    ids=["keys", "modules", "one element", "producer"],
)
def test_arrays_that_may_be_parameters_are_two(options: dict[str, Any]) -> None:
    assert read(**options) == 2

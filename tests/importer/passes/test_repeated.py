"""Broadcast constants become nodes with the same values."""

import pytest

from burn_import.passes import simplify
from burn_import.passes.cleanup.repeated_constants import repeated
from tests.importer.passes.cases import graph_of, listing, same_values

MODEL = """
case (float[N, 3] x) => (float[N, 4, 3] y) <float[1, 3] w> {
  many = Constant<value = int64[2] {4, 3}>()
  one = Constant<value = int64[1] {1}>()
  rows = Expand(w, many)
  twos = ConstantOfShape<value = float[1] {2}>(many)
  wide = Unsqueeze(x, one)
  z = Mul(wide, rows)
  y = Add(z, twos)
}
"""


def test_they_are_computed_when_the_model_runs() -> None:
    graph = simplify(graph_of(MODEL), ["fold_constants"])
    result = repeated(graph, most=0)
    assert [node.op.onnx for node in result.nodes] == [
        *("Expand", "ConstantOfShape", "Unsqueeze", "Mul", "Add")
    ]
    same_values(graph, result, 0.0)


@pytest.mark.parametrize("most", [48, 2**20])
def test_small_ones_are_stored(most: int) -> None:
    graph = simplify(graph_of(MODEL), ["fold_constants"])
    assert repeated(graph, most) is graph
    assert "Expand" not in listing(graph)

"""Equal sizes of a split stay where the extent is not known.

Only an extent of their sum has these parts: the files of cases draw other ones.
"""

import pytest

from burn_import.passes import simplify
from burn_ir.ops.split import Split
from tests.importer.passes.cases import graph_of

MODEL = """g (float[n, {extent}] x, int64[2] given) => (float[n, a] y, float[n, b] z) {{
    stored = Constant <value = int64[2] {{2, 2}}> ()
    y, z = Split <axis = 1> (x, {sizes})
}}"""


@pytest.mark.parametrize(
    ("extent", "sizes", "is_replaced"),
    [("4", "stored", True), ("k", "stored", False), ("4", "given", False)],
)
def test_the_extent_and_the_sizes_are_known(
    extent: str, sizes: str, is_replaced: bool
) -> None:
    graph = simplify(graph_of(MODEL.format(extent=extent, sizes=sizes)))
    (node,) = graph.nodes
    assert isinstance(node.op, Split)
    assert (node.op.num_outputs == 2) is is_replaced
    assert len(node.inputs) == (1 if is_replaced else 2)

"""A mask with inserted axes, gathered as pairs or flat: no gather remains."""

from hypothesis import given, settings, strategies as st

from burn_import.passes import simplify
from tests.importer.passes.cases import graph_of, listing, same_values
from tests.sampling import example_count

PAIRS = """
i2 = Expand(i, whole)
j2 = Expand(j, whole)
i3 = Unsqueeze(i2, last)
j3 = Unsqueeze(j2, last)
pairs = Concat<axis = -1>(i3, j3)
y = GatherND(mask, pairs)
"""
PLACES = """
starts = Mul(i, width)
places = Add(starts, j)
flat = Flatten<axis = 2>(mask)
found = Gather(flat, places)
y = Reshape(found, whole)
"""


def integers(name: str, values: list[int]) -> str:
    shown = ", ".join(map(str, values))
    return f"{name} = Constant<value = int64[{len(values)}] {{ {shown} }}>()"


@st.composite
def models(draw: st.DrawFn) -> str:
    """Return a model that gathers all of a mask; its result may be transposed."""
    rank = draw(st.integers(2, 5))
    row = draw(st.integers(0, rank - 2))
    column = draw(st.integers(row + 1, rank - 1))
    extents = ["one"] * rank
    extents[row], extents[column] = "height", "width"
    shape = ["1"] * rank
    shape[row], shape[column] = "B", "N"
    start = draw(st.sampled_from(["zero", "offset"]))
    lines = [
        "zero = Constant<value = int64 {0}>()",
        "by = Constant<value = int64 {1}>()",
        "offset = Constant<value = int64 {3}>()",
        "none = Constant<value = int64[0] {}>()",
        integers("one", [1]),
        integers("last", [-1]),
        integers("others", [axis for axis in range(rank) if axis != row]),
        integers("others2", [axis for axis in range(rank) if axis != column]),
        "height = Shape<start = 0, end = 1>(mask)",
        "width = Shape<start = 1, end = 2>(mask)",
        "rows = Reshape(height, none)",
        "columns = Reshape(width, none)",
        f"whole = Concat<axis = 0>({', '.join(extents)})",
        f"until = Add(rows, {start})",
        f"numbers = Range({start}, until, by)",
        f"minus = Neg({start})",
        "i1 = Add(numbers, minus)",
        "j1 = Range(zero, columns, by)",
        "i = Unsqueeze(i1, others)",
        "j = Unsqueeze(j1, others2)",
        draw(st.sampled_from([PAIRS, PLACES])),
    ]
    dtype = draw(st.sampled_from(["bool", "double", "int64"]))
    body = "\n".join(lines)
    outputs = f"{dtype}[{', '.join(shape)}] y"
    return f"g ({dtype}[B, N] mask) => ({outputs}) {{\n{body}\n}}"


@settings(deadline=None, max_examples=example_count(60))
@given(models())
def test_lookups_are_removed_and_values_kept(model: str) -> None:
    graph = graph_of(model)
    simple = simplify(graph)
    kinds = {node.op.onnx for node in simple.nodes}
    assert kinds <= {"Unsqueeze", "Identity"}, listing(simple)
    same_values(graph, simple, 0.0)


def test_lookups_by_many_stored_indices_are_kept() -> None:
    """Values have more elements than a shape may have."""
    rows = integers("places", list(range(4999, -1, -1)))
    body = f"""
{rows}
{integers("column", [5000, 1])}
{integers("whole", [50, 100])}
flat = Reshape(table, column)
gathered = Gather(flat, places)
y = Reshape(gathered, whole)
"""
    graph = graph_of(f"g (float[50, 100] table) => (float[50, 100] y) {{{body}}}")
    same_values(graph, simplify(graph), 0.0)

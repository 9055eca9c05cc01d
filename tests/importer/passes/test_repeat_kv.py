"""Keys and values repeated for groups of heads, in several forms."""

from hypothesis import given, settings, strategies as st

from burn_import.passes import simplify
from tests.importer.passes.cases import graph_of, listing, same_values
from tests.sampling import example_count

#: ``x`` ``[B, groups, T, {size}]`` repeated for ``count`` heads each, as ``x_many``.
REPEATED = """
{x}_apart = {apart}
{x}_copies = {copies}({x}_apart, copies)
{x}_size = Constant<value = int64[1] {{ {size} }}>()
{x}_shape = Concat<axis = 0>(batch, heads, length, {x}_size)
{x}_many = Reshape({x}_copies, {x}_shape)
"""


@st.composite
def models(draw: st.DrawFn) -> str:
    """Return a model that repeats heads and applies attention, in float64."""
    groups, count = draw(st.integers(1, 3)), draw(st.integers(2, 4))
    sizes = {"k": draw(st.integers(1, 5)), "v": draw(st.integers(1, 5))}
    lines = [
        "batch = Shape<start = 0, end = 1>(k)",
        "length = Shape<start = 2, end = 3>(k)",
        f"heads = Constant<value = int64[1] {{ {groups * count} }}>()",
        f"copies = Constant<value = int64[5] {{1, 1, {count}, 1, 1}}>()",
        "two = Constant<value = int64[1] {2}>()",
    ]
    for x, size in sizes.items():
        apart = f"Unsqueeze({x}, two)"
        if draw(st.booleans()):
            shape = f"int64[5] {{0, {groups}, 1, -1, {size}}}"
            lines.append(f"{x}_five = Constant<value = {shape}>()")
            apart = f"Reshape({x}, {x}_five)"
        copies = draw(st.sampled_from(["Expand", "Tile"]))
        lines.append(REPEATED.format(x=x, size=size, apart=apart, copies=copies))
    lines += [
        "t = Transpose<perm = [0, 1, 3, 2]>(k_many)",
        "s = MatMul(q, t)",
        "w = Softmax(s)",
        "y = MatMul(w, v_many)",
    ]
    inputs = (
        f"double[B, {groups * count}, S, {sizes['k']}] q, "
        f"double[B, {groups}, T, {sizes['k']}] k, "
        f"double[B, {groups}, T, {sizes['v']}] v"
    )
    outputs = f"double[B, {groups * count}, S, {sizes['v']}] y"
    body = "\n".join(lines)
    return f"g ({inputs}) => ({outputs}) {{\n{body}\n}}"


@settings(deadline=None, max_examples=example_count(40))
@given(models())
def test_copies_are_removed_and_values_kept(model: str) -> None:
    graph = graph_of(model)
    simple = simplify(graph)
    assert [n.op.onnx for n in simple.nodes] == ["Attention"], listing(simple)
    assert simple.nodes[0].inputs == ("q", "k", "v")
    same_values(graph, simple, 1e-10)

"""Rotary embedding in several forms becomes one node with the same values."""

from hypothesis import given, settings, strategies as st

from burn_import.passes import simplify
from tests.importer.passes.cases import graph_of, listing, same_values
from tests.sampling import example_count

SLICED = """
first = Slice(turning, zero, middle, axis)
second = Slice(turning, middle, end, axis)
"""
SPLIT = "first, second = Split<axis = 3, num_outputs = 2>(turning)"


@st.composite
def models(draw: st.DrawFn) -> str:
    """Return a model that embeds all or the first features of ``x``, in float64."""
    heads, pairs = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    rest = draw(st.integers(0, 3))
    width = 2 * pairs
    batch = draw(st.sampled_from(["B", "1"]))

    def both(op: str, a: str, b: str) -> str:
        return f"{op}({a}, {b})" if draw(st.booleans()) else f"{op}({b}, {a})"

    lines = [
        "zero = Constant<value = int64[1] {0}>()",
        "one = Constant<value = int64[1] {1}>()",
        f"middle = Constant<value = int64[1] {{ {pairs} }}>()",
        f"width = Constant<value = int64[1] {{ {width} }}>()",
        "end = Constant<value = int64[1] {9223372036854775807}>()",
        "axis = Constant<value = int64[1] {-1}>()",
        "factor = Constant<value = double {0.75}>()",
        "twice = Concat<axis = 2>(angles, angles)",
        "cos = Cos(twice)",
        "sin = Sin(twice)",
        "cos3 = " + (both("Mul", "cos", "factor") if draw(st.booleans()) else "cos"),
        "sin3 = " + ("Div(sin, factor)" if draw(st.booleans()) else "sin"),
        "cos4 = Unsqueeze(cos3, one)",
        "sin4 = Unsqueeze(sin3, one)",
        "turning = Slice(x, zero, width, axis)" if rest else "turning = Identity(x)",
        draw(st.sampled_from([SLICED, SPLIT])),
        "minus = Neg(second)",
        "turned = Concat<axis = -1>(minus, first)",
        f"a = {both('Mul', 'turning', 'cos4')}",
        f"b = {both('Mul', 'turned', 'sin4')}",
        f"z = {both('Add', 'a', 'b')}",
        "stays = Slice(x, width, end, axis)" if rest else "",
        "y = Concat<axis = -1>(z, stays)" if rest else "y = Identity(z)",
    ]
    body = "\n".join(lines).replace("= cos\n", "= Identity(cos)\n")
    body = body.replace("= sin\n", "= Identity(sin)\n")
    shape = f"double[B, {heads}, S, {width + rest}]"
    inputs = f"{shape} x, double[{batch}, S, {pairs}] angles"
    return f"g ({inputs}) => ({shape} y) {{\n{body}\n}}"


@settings(deadline=None, max_examples=example_count(60))
@given(models())
def test_rotary_embedding_is_recovered_and_keeps_values(model: str) -> None:
    graph = graph_of(model)
    simple = simplify(graph)
    kinds = [node.op.onnx for node in simple.nodes]
    assert kinds.count("RotaryEmbedding") == 1, listing(simple)
    assert not {"Concat", "Neg", "Slice", "Split", "Add"} & set(kinds), listing(simple)
    same_values(graph, simple, 1e-10)

"""Rotations of halves and of pairs become one node with the same values."""

from hypothesis import given, settings, strategies as st

from burn_import.passes import simplify
from tests.importer.passes.cases import graph_of, listing, same_values
from tests.sampling import example_count

JOINED = {
    False: "z = Concat<axis = -1>(f, g)",
    True: """shape = Shape(turning)
        fu = Unsqueeze(f, minus)
        gu = Unsqueeze(g, minus)
        pairs = Concat<axis = -1>(fu, gu)
        z = Reshape(pairs, shape)""",
}
PARTS = {
    False: """a = Slice(turning, zero, middle, minus)
        b = Slice(turning, middle, end, minus)""",
    True: """a = Slice(turning, zero, end, minus, two)
        b = Slice(turning, one, end, minus, two)""",
}


@st.composite
def models(draw: st.DrawFn) -> str:
    """Return a rotation of the first features of a few heads, in float64."""

    def both(op: str, a: str, b: str) -> str:
        return f"{op}({a}, {b})" if draw(st.booleans()) else f"{op}({b}, {a})"

    count, rest = draw(st.integers(1, 3)), draw(st.integers(0, 2))
    heads, paired = draw(st.integers(2, 3)), draw(st.booleans())
    batch = draw(st.sampled_from(["B", "1"]))
    numbers = {"zero": 0, "one": 1, "two": 2, "minus": -1, "end": 2**63 - 1}
    numbers |= {"middle": count, "width": 2 * count}
    lines = [
        *(f"{k} = Constant<value = int64[1] {{ {n} }}>()" for k, n in numbers.items()),
        "c = Cos(angles)",
        "s = Sin(angles)",
        "cos = Unsqueeze(c, one)",
        "sin = Unsqueeze(s, one)",
        "turning = Slice(x, zero, width, minus)" if rest else "turning = Identity(x)",
        PARTS[paired],
        f"p = {both('Mul', 'a', 'cos')}",
        f"q = {both('Mul', 'b', 'sin')}",
        "f = Sub(p, q)",
        f"r = {both('Mul', 'b', 'cos')}",
        f"t = {both('Mul', 'a', 'sin')}",
        f"g = {both('Add', 'r', 't')}",
        JOINED[paired],
        "stays = Slice(x, width, end, minus)" if rest else "",
        "y = Concat<axis = -1>(z, stays)" if rest else "y = Identity(z)",
    ]
    shape = f"double[B, {heads}, S, {2 * count + rest}]"
    inputs = f"{shape} x, double[{batch}, S, {count}] angles"
    return f"g ({inputs}) => ({shape} y) {{\n" + "\n".join(lines) + "\n}"


@settings(deadline=None, max_examples=example_count(40))
@given(models())
def test_rotations_are_recovered_and_keep_values(model: str) -> None:
    graph = graph_of(model)
    simple = simplify(graph)
    kinds = [node.op.onnx for node in simple.nodes]
    assert kinds.count("RotaryEmbedding") == 1, listing(simple)
    assert not {"Concat", "Slice", "Sub", "Add"} & set(kinds), listing(simple)
    same_values(graph, simple, 1e-10)

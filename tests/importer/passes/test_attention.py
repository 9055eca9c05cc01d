"""Attention in all its decompositions becomes one node with the same values."""

from hypothesis import given, settings, strategies as st

from burn_import.passes import simplify
from tests.importer.passes.cases import graph_of, listing, same_values
from tests.importer.passes.gradients.derivatives import compare
from tests.sampling import example_count

#: Transposes of the key, with {h} heads of size {d}.
KEYS = {
    "transposed": ("[B, {h}, T, {d}]", "t = Transpose<perm = [0, 1, 3, 2]>(k)"),
    "permuted": ("[B, T, {h}, {d}]", "t = Transpose<perm = [0, 2, 3, 1]>(k)"),
    "stacked": (
        "[B, {h}, T, {d}]",
        """batch = Shape<start = 0, end = 1>(k)
        length = Shape<start = 2, end = 3>(k)
        heads = Constant<value = int64[1] {{ {h} }}>()
        size = Constant<value = int64[1] {{ {d} }}>()
        rest = Constant<value = int64[1] {{-1}}>()
        stack = Concat<axis = 0>(rest, length, size)
        whole = Concat<axis = 0>(batch, heads, size, length)
        k3 = Reshape(k, stack)
        t3 = Transpose<perm = [0, 2, 1]>(k3)
        t = Reshape(t3, whole)""",
    ),
}
#: The first product, with heads as an axis or merged into the batch.
PRODUCTS = (
    "s = MatMul(q2, t2)",
    """first = Constant<value = int64[1] {-1}>()
        ql = Shape<start = 2>(q2)
        tl = Shape<start = 2>(t2)
        q3s = Concat<axis = 0>(first, ql)
        tss = Concat<axis = 0>(first, tl)
        q3 = Reshape(q2, q3s)
        tst = Reshape(t2, tss)
        s3 = MatMul(q3, tst)
        qb = Shape<start = 0, end = 3>(q2)
        tt = Shape<start = 3>(t2)
        ss = Concat<axis = 0>(qb, tt)
        s = Reshape(s3, ss)""",
)
SCALES = {
    "none": ("", "", ""),
    "query": ("c", "", ""),
    "both": ("c", "c", ""),
    "product": ("", "", "s2 = Mul(c, s)"),
    "quotient": ("", "", "s2 = Div(s, c)"),
    "key": ("", "c", ""),
    "heads": ("", "", "s2 = Mul(per, s)"),
    "samples": ("c", "", "e = Exp(one) f = Mul(s, per) s2 = Div(f, e)"),
}
MASKS = {
    "none": "w = Softmax(s4)",
    "added": "m = Where(seen, zero, low) a = Add(m, s4) w = Softmax(a)",
    "two": """m = Where(seen, zero, low) a = Add(s4, few) b = Add(a, m)
        w = Softmax<axis = 3>(b)""",
    "guarded": """m = Where(seen, zero, least) a = Add(s4, m) w0 = Softmax(a)
        n = IsNaN(w0) w = Where(n, zero, w0)""",
    "chosen, guarded": """a = Where(seen, s4, least) w0 = Softmax(a)
        n = IsNaN(w0) w = Where(n, zero, w0)""",
}


@st.composite
def models(draw: st.DrawFn) -> str:
    """Return a model that ends with attention, in float64."""
    heads, size = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    shape, turned = draw(st.sampled_from(list(KEYS.values())))
    query, key, after = draw(st.sampled_from(list(SCALES.values())))
    capped = draw(st.booleans())
    scale = draw(st.floats(0.05, 3.0))
    lines = [
        f"c = Constant<value = double {{ {scale:.6f} }}>()",
        "zero = Constant<value = double {0}>()",
        "low = Constant<value = double {-1e38}>()",
        "least = Constant<value = double {-inf}>()",
        "cap = Constant<value = double {1.5}>()",
        turned.format(h=heads, d=size),
        "q2 = Mul(q, c)" if query else "q2 = Identity(q)",
        "t2 = Mul(c, t)" if key else "t2 = Identity(t)",
        draw(st.sampled_from(PRODUCTS)),
        after or "s2 = Identity(s)",
        (
            "d = Div(s2, cap) h = Tanh(d) s4 = Mul(h, cap)"
            if capped
            else "s4 = Identity(s2)"
        ),
        draw(st.sampled_from(list(MASKS.values()))),
        "y = MatMul(w, v)",
    ]
    inputs = (
        f"double[B, {heads}, S, {size}] q, double{shape.format(h=heads, d=size)} k, "
        f"double[B, {heads}, T, 6] v, bool[B, 1, S, T] seen, double[B, 1, 1, 1] one"
    )
    body = "\n".join(lines)
    return (
        f"g ({inputs}) => (double[B, {heads}, S, 6] y) <double[{heads}, 1, 1] few, "
        f"double[{heads}, 1, 1] per> {{\n{body}\n}}"
    )


@settings(deadline=None, max_examples=example_count(40))
@given(models())
def test_attention_is_recovered_and_keeps_values(model: str) -> None:
    graph = graph_of(model)
    simple = simplify(graph)
    kinds = [node.op.onnx for node in simple.nodes]
    assert kinds.count("Attention") == 1, listing(simple)
    assert not {"Softmax", "MatMul", "IsNaN"} & set(kinds)
    same_values(graph, simple, 1e-10)
    compare(graph, simple, 1e-6, weights=False)

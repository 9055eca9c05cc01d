"""Examples of matrix products."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.strategies.registry import Draw, Example, case, extents, floats


@case("MatMul")
def matmul(draw: Draw, version: int) -> Example:
    n, k, m = extents(draw, 3, 3)
    batch = extents(draw, 0, 2)
    left = tuple(b if draw(st.booleans()) else 1 for b in batch)
    right = batch[draw(st.integers(0, len(batch))) :]
    x, y = (*left, n, k), (*right, k, m)
    if draw(st.booleans()):
        x = x[-1:] if draw(st.booleans()) else x
        y = y[-2:-1] if len(x) > 1 else y
    return Example({}, [floats(draw, x), floats(draw, y)])


@case("Gemm")
def gemm(draw: Draw, version: int) -> Example:
    n, k, m = extents(draw, 3, 3, least=2)
    turned = {name: draw(st.sampled_from([0, 1])) for name in ("transA", "transB")}
    attrs: dict[str, Any] = dict(turned)
    factors = {"alpha": 0.7, "beta": 1.3}
    attrs |= {f: v for f, v in factors.items() if draw(st.booleans())}
    x = floats(draw, (k, n) if turned["transA"] else (n, k))
    y = floats(draw, (m, k) if turned["transB"] else (k, m))
    term = draw(st.sampled_from([(n, m), (m,), (1, m), (n, 1), (1,), ()]))
    if version < 7:
        attrs["broadcast"] = 0 if term == (n, m) else 1
    z = floats(draw, term)
    operands = [x, y] if version >= 11 and draw(st.booleans()) else [x, y, z]
    expected = None
    if version < 7:
        product = (x.T if turned["transA"] else x) @ (y.T if turned["transB"] else y)
        total = attrs.get("alpha", 1.0) * product + attrs.get("beta", 1.0) * z
        expected = [np.asarray(total, np.float32)]
    return Example(attrs, operands, expected=expected)


EQUATIONS = {
    "bij,bjk->bik": ("bij", "bjk"),
    "bhid, bhjd -> bhij": ("bhid", "bhjd"),
    "...ij,...jk": ("bij", "bjk"),
    "bii->bi": ("bii",),
    "bij->jb": ("bij",),
    "i,bj,bjk->kib": ("i", "bj", "bjk"),
    "bijk->": ("bijk",),
}


@case("Einsum")
def einsum(draw: Draw, version: int) -> Example:
    equation = draw(st.sampled_from(sorted(EQUATIONS)))
    terms = EQUATIONS[equation]
    labels = sorted(set("".join(terms)))
    sizes = dict(zip(labels, range(2, 2 + len(labels)), strict=True))
    operands = [floats(draw, [sizes[c] for c in term]) for term in terms]
    symbols = {i: tuple(f"axis_{c}" for c in t) for i, t in enumerate(terms)}
    return Example({"equation": equation}, operands, symbols=symbols, rtol=1e-4)

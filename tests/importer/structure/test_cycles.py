"""Modules that cannot run as one call, and modules after them."""

from pathlib import Path

from tests.importer.looped import check, normal
from tests.modules import Array


def test_modules_after_a_cycle_keep_their_class(tmp_path: Path) -> None:
    """``first`` needs a sum outside of it that needs a product of ``first``."""
    weights: dict[str, Array] = {
        f"{name}.weight": normal(4, 4, seed=seed) / 2
        for seed, name in enumerate(
            ("first.a", "first.b", "block.a", "block.b", "block.c")
        )
    }
    lines = """
["/first/a/MatMul"] p = MatMul (x, first__a__weight)
["/Add"] s = Add (p, x)
["/first/b/MatMul"] q = MatMul (s, first__b__weight)
["/block/a/MatMul"] a = MatMul (q, block__a__weight)
["/block/Relu"] r = Relu (a)
["/block/b/MatMul"] b = MatMul (r, block__b__weight)
["/block/Tanh"] t = Tanh (b)
["/block/c/MatMul"] c = MatMul (t, block__c__weight)
["/Neg"] y = Neg (c)
"""
    text = f"agraph (float[n, 4] x) => (float[n, 4] y) {{{lines}}}"
    source = check(tmp_path, text, {"x": normal(3, 4)}, weights=weights)
    assert "self.block = Block()" in source and "self.block(" in source

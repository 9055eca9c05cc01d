"""Modules that are called again or not as a whole, and layers with submodules."""

from pathlib import Path

import numpy as np
import pytest

from burn.record import open_record
from tests.importer.looped import check, normal
from tests.importer.structure.scoped_net import ScopedNet, check_import
from tests.modules import Array


def head(net: ScopedNet, x: str, copy: str) -> str:
    """Run an MLP; the first matrix is stored transposed under the name ``copy``."""
    turned = net.weight(copy, 4, 4)
    x = net.run("MatMul", "decoder.head.up", x, turned)
    x = net.run("Add", "decoder.head.up", x, net.weight("decoder.head.up.bias", 4))
    return net.linear("decoder.head.down", net.run("Relu", "decoder.head", x), 4, 4)


@pytest.mark.parametrize("copies", [("val_1", "val_1"), ("val_1", "val_2")])
def test_a_module_that_is_called_for_queries_and_for_inputs(
    tmp_path: Path, copies: tuple[str, str]
) -> None:
    """The queries depend on no input, so the decoder runs these layers.

    torch.onnx.export(dynamo=True) stores one copy of a transposed matrix for each
    call.
    """
    net = ScopedNet()
    first, second = copies
    x = net.input("x", 2, 4)
    net.stored(second, net.rng.normal(size=(4, 4)).astype(np.float32))
    net.stored(first, net.weights[second].copy())
    queries = net.run("Tanh", "decoder", net.weight("decoder.queries", 2, 4))
    queries = head(net, queries, first)
    y = head(net, net.run("Add", "decoder", x, queries), second)
    actual = check_import(tmp_path, net.model(y), net.feeds())
    layers = {
        f"decoder.head.{n}.{leaf}"
        for n in ("up", "down")
        for leaf in ("weight", "bias")
    }
    assert actual.keys == {"decoder.queries", *layers}
    assert set(open_record(tmp_path / "tree" / "net.safetensors")) == actual.keys


def test_copies_of_one_repeated_element_are_not_one_weight(tmp_path: Path) -> None:
    """Exporters give equal names to equal scopes, and new weights may be all zeros."""
    net = ScopedNet()
    x = net.input("x", 2, 4)
    for name in ("onnx::MatMul_1", "onnx::MatMul_2"):
        net.stored(name, np.full((4, 4), 0.5, np.float32))
        x = net.run("Tanh", "mix", net.run("MatMul", "mix", x, name))
    actual = check_import(tmp_path, net.model(x), net.feeds())
    assert len(actual.keys) == 2


def test_a_layer_of_an_author_with_a_module_inside(tmp_path: Path) -> None:
    """A router with its own matrix, and a submodule that corrects the scores."""
    net = ScopedNet()
    x = net.input("x", 2, 4)
    weight = net.weight("mlp.gate.weight", 3, 4)
    scores = net.run("Gemm", "mlp.gate", x, weight, transB=1)
    scores = net.run("Softmax", "mlp.gate", scores, axis=-1)
    bias = net.weight("mlp.gate.statics.bias", 1, 3)
    y = net.run("Add", "mlp.gate.statics", scores, bias)
    y = net.linear("mlp.out", y, 3, 4)
    actual = check_import(tmp_path, net.model(y), net.feeds())
    assert actual.keys == set(net.weights)


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


@pytest.mark.parametrize("calls", [1, 2, 3])
def test_calls_of_a_module_inside_of_one_that_is_not_called(
    calls: int, tmp_path: Path
) -> None:
    """The scopes lack ``matcher``, of which only the submodule is called."""
    net = ScopedNet()
    y = net.input("x", "batch", 3, 4)
    for call in range(calls):
        again = f"_{call}" if call else ""
        for layer in range(2):
            at = f"head.layers.{layer}"
            matrix = net.weight(f"onnx::MatMul_{layer}", 4, 4)
            y = net.run("MatMul", f"{at}.proj{again}", y, matrix)
            keys = [f"matcher.{at}.norm.{name}" for name in ("weight", "bias")]
            scales = [net.weight(key, 4) for key in keys]
            normal = net.run("LayerNormalization", f"{at}.norm{again}", y, *scales)
            y = net.run("Add", at, y, normal)
    actual = check_import(tmp_path, net.model(y), net.feeds())
    assert actual.keys == {
        f"matcher.head.layers.{layer}.{leaf}"
        for layer in range(2)
        for leaf in ("norm.weight", "norm.bias", "proj.weight")
    }


def test_a_matrix_without_elements_is_no_weight(tmp_path: Path) -> None:
    net = ScopedNet()
    x = net.linear("head", net.input("x", 2, 4), 4, 4)
    empty = net.stored("onnx::Concat_1", np.zeros((0, 4), np.float32))
    y = net.run("Concat", "pool", x, empty, axis=0)
    check_import(tmp_path, net.model(net.run("Tanh", "pool", y)), net.feeds())

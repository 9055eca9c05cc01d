"""A layer that is called repeatedly, with a copy of its matrix for each call."""

from pathlib import Path

from tests.importer.structure.scoped_net import ScopedNet, check_import

STEPS = 4


def test_transposed_copies_are_one_layer(tmp_path: Path) -> None:
    """``torch.onnx.export(dynamo=True)`` transposes a matrix once for each call."""
    net = ScopedNet()
    memory, state = net.input("memory", 2, 3, 4), net.input("state", 2, 3, 4)
    key = net.weight("val_1", 4, 4)
    query = net.weight("decoder.attention.query.weight", 4, 4)
    for step in range(STEPS):
        copy = net.stored(f"val_{step + 1}", net.weights[key].copy())
        keys = net.run("MatMul", "decoder.attention.key", memory, copy)
        turned = net.run("MatMul", "decoder.attention.query", state, query)
        total = net.run("Add", "decoder.attention", keys, turned)
        state = net.run("Tanh", "decoder.attention", total)
        state = net.run("Mul", "decoder", state, net.run("Sigmoid", "decoder", state))
    result = check_import(tmp_path, net.model(state), net.feeds(), flat=False)
    assert result.keys == {f"decoder.attention.{x}.weight" for x in ("key", "query")}
    assert f"in range({STEPS}):" in result.source

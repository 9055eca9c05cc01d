"""Arrays that only some instances of a module have, as the mask of an attention."""

from pathlib import Path

import numpy as np

from tests.importer.structure.scoped_net import ScopedNet, check_import


def layer(net: ScopedNet, path: str, x: str, *mask: str) -> str:
    """Run an attention over a projection of ``x``, with a mask if it is given."""
    heads = net.stored("heads", np.array([2, 3, 2, 2]))
    rows = net.stored("rows", np.array([2, 3, 4]))
    scope = f"{path}.attention"
    y = net.run("MatMul", f"{scope}.qkv", x, net.weight(f"{scope}.qkv.weight", 4, 4))
    y = net.run("Reshape", scope, y, heads)
    y = net.run("Transpose", scope, y, perm=[0, 2, 1, 3])
    y = net.run("Attention", scope, y, y, y, *mask)
    y = net.run("Transpose", scope, y, perm=[0, 2, 1, 3])
    y = net.run("Reshape", scope, y, rows)
    return net.run("Add", path, x, y)


def test_a_mask_that_one_of_several_layers_has(tmp_path: Path) -> None:
    net = ScopedNet(opset=23)
    x = net.input("x", 2, 3, 4)
    hidden = net.rng.normal(size=(3, 3)).astype(np.float32)
    for number in range(3):
        masks = [net.stored(f"onnx::Attention_{number}", hidden)] if number == 1 else []
        x = layer(net, f"layers.{number}", x, *masks)
    actual = check_import(tmp_path, net.model(x), net.feeds(), flat=False)
    assert actual.source.count("class ") == 3
    assert (
        "nn.Buffer | None = nn.buffer(3, 3) if folded_bias else None" in actual.source
    )
    assert actual.source.count("ops.attention(") == 1

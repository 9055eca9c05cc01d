"""The embedding: its lookup, its gradient, its key."""

import numpy as np

import burn
from burn import nn, ops


def test_lookup_and_gradient() -> None:
    layer = nn.Embedding(7, 4)
    assert [path for path, _ in layer.boxes()] == ["weight"]
    table = layer.weight.numpy()
    indices = np.array([[[1, 6], [0, 1]], [[1, 3], [3, 6]], [[0, 0], [6, 1]]])
    found = layer(burn.tensor(indices))
    np.testing.assert_array_equal(found.numpy(), table[indices])
    layer.to(burn.Autodiff(burn.Cpu()))
    weight = np.random.default_rng(2).standard_normal((3, 2, 2, 4)).astype(np.float32)
    grads = ops.sum(layer(burn.tensor(indices)) * weight).backward()
    expected = np.zeros((7, 4), np.float32)
    np.add.at(expected, indices, weight)
    np.testing.assert_allclose(grads[layer.weight].numpy(), expected, rtol=1e-5)
    assert repr(layer) == "Embedding(7, 4)"

"""The embedding: its lookup, its gradient, its key."""

from typing import Any

import numpy as np
import pytest

import burn
from burn import nn, ops
from tests.modules import Array
from tests.runtime.gradcheck import check_gradient


def test_lookup_and_gradient() -> None:
    layer = nn.Embedding(7, 4)
    assert [path for path, _ in layer.boxes()] == ["weight"]
    table = layer.weight.numpy()
    indices = np.array([[[1, 6], [0, 1]], [[1, 3], [3, 6]], [[0, 0], [6, 1]]])
    actual = layer(burn.tensor(indices))
    np.testing.assert_array_equal(actual.numpy(), table[indices])
    layer.to(burn.Autodiff(burn.Cpu()))
    weight = np.random.default_rng(2).standard_normal((3, 2, 2, 4)).astype(np.float32)
    grads = ops.sum(layer(burn.tensor(indices)) * weight).backward()
    expected = np.zeros((7, 4), np.float32)
    np.add.at(expected, indices, weight)
    np.testing.assert_allclose(grads[layer.weight].numpy(), expected, rtol=1e-5)
    assert repr(layer) == "Embedding(7, 4)"


INDICES = np.array([[2, 0, 2], [5, 2, 0]])


def embedding_gradient(compiled: bool, **options: Any) -> Array:
    """Return the gradient of a weighted sum of rows, by the table."""
    layer = nn.Embedding(6, 4, **options)
    weight = np.random.default_rng(3).standard_normal((2, 3, 4)).astype(np.float32)
    layer.to(burn.Autodiff(burn.Cpu()))

    def gradient(indices: burn.Tensor) -> burn.Tensor:
        return ops.sum(layer(indices) * weight).backward()[layer.weight]

    call = burn.compile(gradient) if compiled else gradient
    return call(burn.tensor(INDICES)).numpy()


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("padding", [0, 2, -1])
def test_the_row_of_padding_gets_no_gradient(padding: int, compiled: bool) -> None:
    plain = embedding_gradient(compiled)
    assert plain[padding].any()
    expected = plain.copy()
    expected[padding] = 0
    np.testing.assert_array_equal(
        embedding_gradient(compiled, padding_idx=padding), expected
    )


@pytest.mark.parametrize("compiled", [False, True])
def test_a_gradient_is_divided_by_the_number_of_lookups(compiled: bool) -> None:
    counts = np.maximum(np.bincount(INDICES.ravel(), minlength=6), 1)
    expected = embedding_gradient(compiled) / counts[:, None].astype(np.float32)
    got = embedding_gradient(compiled, scale_grad_by_freq=True)
    np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_gradients_of_other_rows_are_derivatives() -> None:
    """Rows that are not padding; the operation is linear, so order 2 is as well."""
    table = np.random.default_rng(4).standard_normal((6, 4))
    outside = np.where(INDICES == 2, 3, INDICES)
    check_gradient(
        lambda weight: ops.embedding(weight, burn.tensor(outside), padding_idx=2),
        table,
    )


def test_padding_is_drawn_as_zeros_and_described() -> None:
    layer = nn.Embedding(6, 4, padding_idx=-2)
    assert not layer.weight.numpy()[4].any() and layer.weight.numpy()[3].any()
    assert repr(layer) == "Embedding(6, 4, padding_idx=4)"
    with pytest.raises(ValueError, match="expected padding_idx below 6, got 6"):
        nn.Embedding(6, 4, padding_idx=6)
    with pytest.raises(TypeError, match="expected integers as indices, got float32"):
        layer(burn.tensor(np.zeros(2, np.float32)))

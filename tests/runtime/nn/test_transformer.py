"""Attention and transformer layers, without PyTorch beside them."""

from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, Tensor, nn, optim, train
from burn.nn.modes import inference

RNG = np.random.default_rng(0)


def normal(*shape: int) -> Tensor:
    return burn.tensor(RNG.normal(size=shape).astype(np.float32))


def reference(layer: Any, x: Any, hidden: Any = None) -> Any:
    """Return the output and the mean weights for [batch, length, embed], by NumPy."""
    size = layer.embed_dim // layer.num_heads
    weight, bias = layer.in_proj_weight.numpy(), layer.in_proj_bias.numpy()
    q, k, v = np.split(x @ weight.T + bias, 3, -1)
    q, k, v = (
        t.reshape(*t.shape[:2], -1, size).transpose(0, 2, 1, 3) for t in (q, k, v)
    )
    scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(size)
    if hidden is not None:
        scores = np.where(hidden, -np.inf, scores)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    joined = (weights @ v).transpose(0, 2, 1, 3).reshape(x.shape)
    out = joined @ layer.out_proj.weight.numpy().T + layer.out_proj.bias.numpy()
    return out, weights.mean(1)


@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("masked", ["", "causal", "mask", "padding", "both"])
def test_attention_is_its_definition(masked: str, need_weights: bool) -> None:
    layer: Any = nn.MultiheadAttention(8, 2, batch_first=True)
    layer.in_proj_bias.set(normal(24))
    options: dict[str, Any] = {}
    x, hidden = normal(3, 5, 8), np.zeros((3, 1, 5, 5), bool)
    above = np.triu(np.ones((5, 5), bool), 1)
    padding = np.arange(5) >= np.array([[5], [3], [1]])
    if masked == "causal":
        options["is_causal"], hidden = True, hidden | above
    if masked in ("mask", "both"):
        options["attn_mask"], hidden = burn.tensor(above), hidden | above
    if masked in ("padding", "both"):
        options["key_padding_mask"] = burn.tensor(padding)
        hidden = hidden | padding[:, None, None]
    expected = reference(layer, x.numpy(), hidden)
    out, weights = layer(x, x, x, need_weights=need_weights, **options)
    np.testing.assert_allclose(out.numpy(), expected[0], rtol=1e-4, atol=1e-5)
    assert (weights is not None) is need_weights
    if weights is not None:
        np.testing.assert_allclose(weights.numpy(), expected[1], rtol=1e-4, atol=1e-5)
    turned = x.transpose(0, 1)
    layer.batch_first = False
    other, _ = layer(turned, turned, turned, need_weights=need_weights, **options)
    np.testing.assert_allclose(other.transpose(0, 1).numpy(), out.numpy(), atol=1e-6)


def test_a_row_without_visible_keys_is_nan_only_with_weights() -> None:
    layer: Any = nn.MultiheadAttention(8, 2, batch_first=True)
    x, hidden = normal(2, 3, 8), burn.tensor(np.array([[False] * 3, [True] * 3]))
    out, weights = layer(x, x, x, key_padding_mask=hidden)
    assert np.isnan(out.numpy()[1]).all() and np.isnan(weights.numpy()[1]).all()
    other, _ = layer(x, x, x, key_padding_mask=hidden, need_weights=False)
    np.testing.assert_allclose(other.numpy()[0], out.numpy()[0], rtol=1e-4, atol=1e-5)
    expected = np.broadcast_to(layer.out_proj.bias.numpy(), (3, 8))
    np.testing.assert_array_equal(other.numpy()[1], expected)


def test_a_sequence_without_a_batch() -> None:
    layer: Any = nn.MultiheadAttention(8, 2)
    x = normal(5, 8)
    out, weights = layer(x, x, x)
    expected = reference(layer, x.numpy()[None])
    np.testing.assert_allclose(out.numpy(), expected[0][0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(weights.numpy(), expected[1][0], rtol=1e-4, atol=1e-5)


def test_wrong_masks_and_heads_are_errors() -> None:
    with pytest.raises(ValueError, match="multiple of 3 heads"):
        nn.MultiheadAttention(8, 3)
    layer, x = nn.MultiheadAttention(8, 2, batch_first=True), normal(3, 5, 8)
    with pytest.raises(
        ValueError, match=r"attn_mask: expected \[5, 5\] or \[6, 5, 5\]"
    ):
        layer(x, x, x, attn_mask=burn.tensor(np.zeros((3, 5, 5), bool)))


def test_dropout_draws_in_training_alone_and_layers_differ() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.5, batch_first=True)
    model, x = nn.TransformerEncoder(layer, 2).to(Autodiff(Cpu())), normal(2, 5, 8)
    keys = [
        m.random_state.numpy() for _, m in model.modules() if isinstance(m, nn.Dropout)
    ]
    assert len({int(key[0]) for key in keys}) == len(keys) == 8
    first, second = model(x).numpy(), model(x).numpy()
    assert not np.array_equal(first, second)
    with inference():
        np.testing.assert_array_equal(model(x).numpy(), model(x).numpy())


@pytest.mark.parametrize("compiled", [False, True])
def test_a_transformer_learns_to_repeat(compiled: bool) -> None:
    nn.init.seed(0)
    model = nn.Transformer(16, 2, 1, 1, 32, dropout=0.0, batch_first=True)
    model.to(Autodiff(Cpu()))
    opt = optim.AdamW(model, lr=3e-3)
    src, start = normal(8, 6, 16), burn.tensor(np.zeros((8, 6, 16), np.float32))
    positions = nn.PositionalEncoding(16, batch_first=True)

    @train.step(model, opt, compiled=compiled)
    def step(x: Tensor) -> Tensor:
        y = model(positions(x), positions(start), tgt_is_causal=True)
        return ((y - x) ** 2).mean()

    losses = [float(step(src).numpy()) for _ in range(60)]
    assert losses[-1] < 0.4 * losses[0]


def test_positions_add_sines_and_cosines() -> None:
    layer = nn.PositionalEncoding(6, max_len=10)
    assert not layer.state_dict()
    x = burn.tensor(np.zeros((4, 1, 6), np.float32))
    angles = (np.arange(3, 7)[:, None]) / 10000 ** (np.arange(0, 6, 2) / 6)
    y = layer(x, offset=3).numpy()[:, 0]
    np.testing.assert_allclose(y[:, 0::2], np.sin(angles), atol=1e-6)
    np.testing.assert_allclose(y[:, 1::2], np.cos(angles), atol=1e-6)
    with pytest.raises(ValueError, match="positions below 10, got 11"):
        layer(x, offset=8)


@pytest.mark.parametrize("interleaved", [False, True])
def test_rotary_products_depend_on_distances(interleaved: bool) -> None:
    layer = nn.RotaryEmbedding(8, max_len=32, interleaved=interleaved)
    row = normal(1, 1, 1, 8)
    x = burn.ops.concat([row] * 6, 2)
    turned = layer(x, offset=4).numpy()[0, 0]
    products = turned @ turned.T
    np.testing.assert_allclose(np.diag(products, 2), products[0, 2], rtol=1e-4)
    assert abs(products[0, 1] - products[0, 3]) > 1e-3
    np.testing.assert_allclose(turned[1:], layer(x, offset=5).numpy()[0, 0, :-1])

"""Networks of text from their weights alone, against layers of PyTorch.

These have no recorded outputs; their keys are those of Hugging Face.
"""

from collections.abc import Callable
from json import dumps
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn_import import load
from tests.importer.recipes.test_torch import TorchNet
from tests.importer.recipes.text_references import tokens

pytestmark = pytest.mark.torch

HIDDEN, WIDE, WORDS, SIZE, HEADS = 12, 20, 30, 6, 2


class TextNet(TorchNet):
    """Layers by key below a prefix, as in networks of text."""

    def __init__(self, torch: Any) -> None:
        super().__init__(torch)
        self.nn = torch.nn
        self.functional = torch.nn.functional

    def embedding(self, key: str, ids: Any, rows: int = WORDS) -> Any:
        return self.layer(key, lambda: self.nn.Embedding(rows, HIDDEN))(ids)

    def projection(self, key: str, x: Any, out: int, bias: bool = True) -> Any:
        size = x.shape[-1]
        return self.layer(key, lambda: self.nn.Linear(size, out, bias=bias))(x)

    def normed(self, key: str, x: Any, eps: float) -> Any:
        return self.layer(key, lambda: self.drawn(self.nn.LayerNorm(HIDDEN, eps)))(x)

    def drawn(self, module: Any) -> Any:
        for values in module.parameters():
            self.nn.init.uniform_(values, 0.5, 1.2)
        return module

    def heads(self, x: Any) -> Any:
        return x.unflatten(-1, (-1, SIZE)).transpose(1, 2)

    def attend(self, parts: list[Any], mask: Any, **options: Any) -> Any:
        query, key, value = map(self.heads, parts)
        attend = self.functional.scaled_dot_product_attention
        return attend(query, key, value, mask, **options).transpose(1, 2).flatten(2)


def gemma(net: TextNet, ids: Any, mask: Any) -> Any:
    """Return the next-token scores of the first Gemma."""
    places = net.torch.arange(ids.shape[1])
    seen = (mask != 0)[:, None, None] & (places <= places[:, None])
    turns = places[:, None] * 10000.0 ** -(net.torch.arange(0, SIZE, 2) / SIZE)
    x = net.embedding("model.embed_tokens", ids) * HIDDEN**0.5
    for number in range(2):
        at = f"model.layers.{number}"
        y = plus_one(net, f"{at}.input_layernorm", x)
        q, k, v = (
            net.projection(f"{at}.self_attn.{name}_proj", y, heads * SIZE, False)
            for name, heads in (("q", HEADS), ("k", 1), ("v", 1))
        )
        parts = [turned(net, q, turns), turned(net, k, turns), v]
        y = net.attend(parts, seen, enable_gqa=True)
        x = x + net.projection(f"{at}.self_attn.o_proj", y, HIDDEN, False)
        y = plus_one(net, f"{at}.post_attention_layernorm", x)
        gate = net.projection(f"{at}.mlp.gate_proj", y, WIDE, False)
        y = net.projection(f"{at}.mlp.up_proj", y, WIDE, False)
        y = net.functional.gelu(gate, approximate="tanh") * y
        x = x + net.projection(f"{at}.mlp.down_proj", y, HIDDEN, False)
    table = net.root.model.embed_tokens.weight
    net.projection("lm_head", x, WORDS, False)
    net.root.lm_head.weight = table
    return plus_one(net, "model.norm", x) @ table.T


def plus_one(net: TextNet, key: str, x: Any) -> Any:
    """Return RMS norm that scales by ``1 + weight``."""
    scale = net.tensor(f"{key}.weight", HIDDEN) + 1
    return net.functional.rms_norm(x, (HIDDEN,), scale, 1e-6)


def turned(net: TextNet, x: Any, turns: Any) -> Any:
    """Return features of heads rotated by their positions."""
    first, second = x.unflatten(-1, (-1, SIZE)).chunk(2, -1)
    cos, sin = turns.cos()[:, None], turns.sin()[:, None]
    halves = [first * cos - second * sin, second * cos + first * sin]
    return net.torch.cat(halves, -1).flatten(2)


def bert(net: TextNet, ids: Any, mask: Any) -> Any:
    """Return BERT's masked-token scores."""
    eps, at = 1e-12, "bert.embeddings"
    places = net.torch.arange(ids.shape[1])
    x = net.embedding(f"{at}.word_embeddings", ids)
    x = x + net.embedding(f"{at}.token_type_embeddings", ids * 0, 2)
    x = x + net.embedding(f"{at}.position_embeddings", places, 16)
    x = net.normed(f"{at}.LayerNorm", x, eps)
    for number in range(2):
        at = f"bert.encoder.layer.{number}"
        parts = [
            net.projection(f"{at}.attention.self.{name}", x, HIDDEN)
            for name in ("query", "key", "value")
        ]
        y = net.attend(parts, (mask != 0)[:, None, None])
        y = net.projection(f"{at}.attention.output.dense", y, HIDDEN)
        x = net.normed(f"{at}.attention.output.LayerNorm", x + y, eps)
        y = net.projection(f"{at}.intermediate.dense", x, WIDE)
        y = net.projection(f"{at}.output.dense", net.functional.gelu(y), HIDDEN)
        x = net.normed(f"{at}.output.LayerNorm", x + y, eps)
    at = "cls.predictions"
    x = net.functional.gelu(net.projection(f"{at}.transform.dense", x, HIDDEN))
    x = net.normed(f"{at}.transform.LayerNorm", x, eps)
    return net.projection(f"{at}.decoder", x, WORDS)


NETS: dict[str, tuple[Callable[[TextNet, Any, Any], Any], dict[str, Any]]] = {
    "gemma": (gemma, {"model_type": "gemma", "head_dim": SIZE}),
    "bert": (bert, {"model_type": "bert", "num_attention_heads": HEADS}),
}


@pytest.mark.parametrize("name", NETS)
def test_outputs_are_those_of_torch(name: str, tmp_path: Path) -> None:
    torch: Any = pytest.importorskip("torch")
    reference, config = NETS[name]
    net = TextNet(torch)
    (tmp_path / "config.json").write_text(dumps(config))
    model: Any = None
    for batch, length in ((2, 5), (3, 9)):
        ids, mask = tokens(batch, length, 0)
        with torch.no_grad():
            expected = reference(
                net, torch.from_numpy(ids), torch.from_numpy(mask)
            ).numpy()
        if model is None:
            path = tmp_path / "net.pth"
            torch.save(net.root.state_dict(), path)
            model = load(path)
            assert set(model.state_dict()) >= set(net.root.state_dict())
        actual = model(burn.tensor(ids), burn.tensor(mask)).numpy()
        assert np.abs(expected).max() > 0.01
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)

"""Records and PyTorch's ``state_dict`` are one: keys, shapes, values, results."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn import Tensor, nn, ops
from burn.record import open_record

pytestmark = pytest.mark.torch

#: Arguments of each layer, here as there, and the shape that it is called with.
LAYERS: Mapping[str, tuple[tuple[int, ...], dict[str, int], tuple[int, ...]]] = {
    "Linear": ((4, 3), {}, (2, 5, 4)),
    "Conv1d": ((4, 6, 3), {"padding": 1, "groups": 2}, (2, 4, 7)),
    "Conv2d": ((4, 6, 3), {"stride": 2}, (2, 4, 7, 9)),
    "Conv3d": ((2, 3, 2), {}, (2, 2, 4, 5, 3)),
    "ConvTranspose1d": ((4, 6, 3), {}, (2, 4, 7)),
    "ConvTranspose2d": ((4, 6, 3), {"stride": 2, "groups": 2}, (2, 4, 5, 6)),
    "BatchNorm1d": ((4,), {}, (3, 4, 5)),
    "BatchNorm2d": ((4,), {}, (3, 4, 5, 2)),
    "BatchNorm3d": ((4,), {}, (3, 4, 2, 2, 3)),
    "LayerNorm": ((6,), {}, (2, 3, 6)),
    "RMSNorm": ((6,), {}, (2, 3, 6)),
    "GroupNorm": ((2, 6), {}, (2, 6, 5)),
    "PReLU": ((4,), {}, (2, 4, 5)),
    "Embedding": ((9, 4), {}, (2, 5)),
    "LSTM": ((4, 3, 2), {"bidirectional": True}, (5, 2, 4)),
    "GRU": ((4, 3), {}, (5, 2, 4)),
    "RNN": ((4, 3), {}, (5, 2, 4)),
}
RNG = np.random.default_rng(0)


def randomised(module: nn.Module) -> nn.Module:
    """``module`` with weights of which no two are equal; variances are positive."""
    for path, box in module.boxes():
        drawn = RNG.normal(size=box.shape)
        drawn = np.abs(drawn) + 0.5 if path.endswith("running_var") else drawn
        box.set(burn.tensor(drawn.astype(np.float32)))
    return module


def torch_state(module: nn.Module, path: Path) -> dict[str, Any]:
    """The record of ``module`` as PyTorch reads it."""
    torch = pytest.importorskip("torch")
    module.save_weights(path)
    return {key: torch.tensor(array) for key, array in open_record(path).items()}


def both(ours: nn.Module, theirs: Any, x: Any) -> None:
    """Return if ``theirs``, with the weights of ``ours``, gives the same for ``x``."""
    torch = pytest.importorskip("torch")
    assert callable(ours)
    found = ours(burn.tensor(x))
    with torch.no_grad():
        expected = theirs.eval()(torch.tensor(x))
    found = found[0] if isinstance(found, tuple) else found
    expected = expected[0] if isinstance(expected, tuple) else expected
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_is_the_one_of_its_name(name: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    args, options, shape = LAYERS[name]
    ours = randomised(getattr(nn, name)(*args, **options))
    theirs = getattr(torch.nn, name)(*args, **options)
    state = torch_state(ours, tmp_path / "layer.safetensors")
    theirs.load_state_dict(state, strict=True)
    is_table = name == "Embedding"
    x = RNG.integers(0, 9, shape) if is_table else RNG.normal(size=shape)
    both(ours, theirs, x if is_table else x.astype(np.float32))

    back = {key: value.numpy() for key, value in theirs.state_dict().items()}
    again = getattr(nn, name)(*args, **options).load_state_dict(back)
    for key, tensor in ours.state_dict().items():
        np.testing.assert_array_equal(again.state_dict()[key].numpy(), tensor.numpy())


class SelfAttention(nn.Module):
    """``torch.nn.MultiheadAttention`` of itself, as its keys have it."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.in_proj_weight = nn.parameter(3 * width, width)
        self.in_proj_bias = nn.parameter(3 * width)
        self.out_proj = nn.Linear(width, width)

    def __call__(self, x: Tensor) -> Tensor:
        batch, seq, width = x.shape
        mixed = ops.linear(x, self.in_proj_weight, self.in_proj_bias)
        parts = mixed.reshape(batch, seq, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = ops.attention(parts[0], parts[1], parts[2])
        return self.out_proj(y.transpose(1, 2).reshape(batch, seq, width))


def test_attention_has_its_weights_in_one(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    ours = randomised(SelfAttention(8, 2))
    theirs = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    state = torch_state(ours, tmp_path / "attention.safetensors")
    theirs.load_state_dict(state, strict=True)
    x = RNG.normal(size=(2, 5, 8)).astype(np.float32)
    assert callable(ours)
    with torch.no_grad():
        given = torch.tensor(x)
        expected = theirs.eval()(given, given, given)[0].numpy()
    np.testing.assert_allclose(
        ours(burn.tensor(x)).numpy(), expected, rtol=2e-4, atol=2e-5
    )


def test_a_tied_model_reads_what_pytorch_lists_twice() -> None:
    torch = pytest.importorskip("torch")
    theirs = torch.nn.ModuleDict(
        {"wte": torch.nn.Embedding(9, 4), "lm_head": torch.nn.Linear(4, 9, bias=False)}
    )
    theirs["lm_head"].weight = theirs["wte"].weight
    ours = nn.Module()
    table, head = nn.Embedding(9, 4), nn.Linear(4, 9, bias=False)
    head.weight = table.weight
    ours.__dict__.update(wte=table, lm_head=head)
    state = {key: value.numpy() for key, value in theirs.state_dict().items()}
    assert list(state) == list(ours.state_dict())
    ours.load_state_dict(state)
    np.testing.assert_array_equal(head.weight.numpy(), state["wte.weight"])

"""Attention and transformer layers beside those of PyTorch: values and gradients."""

from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, nn

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

RNG = np.random.default_rng(0)
MASK = np.triu(np.ones((5, 5), bool), 1)
PADDING = np.arange(5) >= np.array([[5], [3], [4]])


def normal(*shape: int) -> Any:
    return RNG.normal(size=shape).astype(np.float32)


def same(name: str, args: Any, options: Any, inputs: Any, masks: Any) -> None:
    """Compare a layer here and there, in training, with the same weights."""
    theirs = getattr(torch.nn, name)(*args, **options).train()
    ours = getattr(nn, name)(*args, **options)
    state = {key: value.numpy() for key, value in theirs.state_dict().items()}
    drawn = {key: normal(*v.shape) * 0.3 for key, v in state.items()}
    ours.load_state_dict(drawn)
    theirs.load_state_dict({k: torch.tensor(v) for k, v in drawn.items()}, strict=True)
    ours.to(Autodiff(Cpu()))
    expected = theirs(*map(torch.tensor, inputs), **_all(torch.tensor, masks))
    actual = ours(*map(burn.tensor, inputs), **_all(burn.tensor, masks))
    if isinstance(expected, tuple):
        np.testing.assert_allclose(
            actual[1].numpy(), expected[1].detach().numpy(), rtol=1e-4, atol=1e-5
        )
        expected, actual = expected[0], actual[0]
    np.testing.assert_allclose(
        actual.numpy(), expected.detach().numpy(), rtol=1e-4, atol=1e-4
    )
    (expected**2).sum().backward()
    gradients = (actual**2).sum().backward().by_name(ours)
    for path, parameter in theirs.named_parameters():
        want = parameter.grad.numpy()
        scale = np.abs(want).max() + 1e-3
        np.testing.assert_allclose(
            gradients[path].numpy() / scale, want / scale, atol=1e-4, err_msg=path
        )


def _all(convert: Any, masks: Any) -> Any:
    return {k: convert(v) if isinstance(v, np.ndarray) else v for k, v in masks.items()}


@pytest.mark.parametrize("is_first", [False, True])
@pytest.mark.parametrize("masks", [{}, {"attn_mask": MASK}, {"both": True}])
@pytest.mark.parametrize("widths", [{}, {"kdim": 6, "vdim": 10}, {"bias": False}])
def test_attention(is_first: bool, masks: Any, widths: Any) -> None:
    if "both" in masks:
        added = np.where(MASK, np.float32(-1.5), np.float32(0.25))
        hidden = np.where(PADDING, np.float32(-np.inf), np.float32(0))
        masks = {"attn_mask": added, "key_padding_mask": hidden}
    shape = (3, 5) if is_first else (5, 3)
    sizes = (8, widths.get("kdim", 8), widths.get("vdim", 8))
    inputs = [normal(*shape, size) for size in sizes]
    options = {"batch_first": is_first, **widths}
    same("MultiheadAttention", (8, 2), options, inputs, masks)


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_layers(norm_first: bool, activation: str) -> None:
    options = {"dropout": 0.0, "activation": activation, "norm_first": norm_first}
    masks = {"src_mask": MASK, "src_key_padding_mask": PADDING}
    same("TransformerEncoderLayer", (8, 2, 12), options, [normal(5, 3, 8)], masks)
    masks = {"tgt_mask": MASK, "tgt_key_padding_mask": PADDING}
    inputs = [normal(5, 3, 8), normal(7, 3, 8)]
    same("TransformerDecoderLayer", (8, 2, 12), options, inputs, masks)


def test_both_stacks() -> None:
    options = {"dropout": 0.0, "batch_first": True}
    masks = {"tgt_mask": MASK, "src_key_padding_mask": np.zeros((3, 7), bool)}
    inputs = [normal(3, 7, 8), normal(3, 5, 8)]
    same("Transformer", (8, 2, 2, 2, 12), options, inputs, masks)

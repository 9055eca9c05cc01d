"""Models with complex numbers, and a training step, against PyTorch."""

import warnings
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn_import import load

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(find_spec("torch") is None, reason="needs PyTorch"),
]


def made(forward: Callable[..., Any], **state: Any) -> Any:
    """Return a module with parameters and buffers, and this ``forward``."""
    import torch

    module: Any = type("Net", (torch.nn.Module,), {"forward": forward})()
    for name, value in state.items():
        setattr(module, name, value)
    return module


def rotary() -> tuple[Any, Sequence[Any]]:
    """Return attention with the complex rotary embedding of Llama's first code."""
    import torch

    steps = torch.outer(torch.arange(32.0), 10000.0 ** -(torch.arange(0, 8, 2) / 8))

    def turned(x: Any, angles: Any) -> Any:
        pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * angles).flatten(3).type_as(x)

    def forward(s: Any, x: Any) -> Any:
        batch, length, _ = x.shape
        angles = s.freqs_cis[:length].view(1, length, 1, 4)
        q, k = (w(x).view(batch, length, 2, 8) for w in (s.query, s.key))
        q, k = (turned(y, angles).transpose(1, 2) for y in (q, k))
        return torch.nn.functional.scaled_dot_product_attention(q, k, k)

    angles = torch.nn.Buffer(torch.polar(torch.ones_like(steps), steps))
    query, key = torch.nn.Linear(16, 16), torch.nn.Linear(16, 16)
    net = made(forward, query=query, key=key, freqs_cis=angles)
    return net, [torch.randn(2, 7, 16), torch.randn(3, 5, 16)]


def spectral() -> tuple[Any, Sequence[Any]]:
    """Return the spectral layer of a Fourier neural operator."""
    import torch

    def forward(s: Any, x: Any) -> Any:
        given = torch.fft.rfft2(x)
        out = torch.zeros(x.shape[0], 5, 12, 6, dtype=torch.cfloat)
        for rows in (slice(None, 4), slice(-4, None)):
            part = given[:, :, rows, :4]
            out[:, :, rows, :4] = torch.einsum("bixy,ioxy->boxy", part, s.weight)
        return torch.fft.irfft2(out, s=(12, 10))

    weight = torch.nn.Parameter(torch.randn(3, 5, 4, 4, dtype=torch.cfloat))
    net = made(forward, weight=weight)
    return net, [torch.randn(2, 3, 12, 10), torch.randn(5, 3, 12, 10)]


def state_space() -> tuple[Any, Sequence[Any]]:
    """Return a diagonal state space model, as a long convolution."""
    import torch

    def forward(s: Any, x: Any) -> Any:
        length, step = x.shape[-1], torch.exp(s.step)
        decay = -torch.exp(s.decay) + 1j * s.turn
        scaled = decay * step.unsqueeze(-1)
        powers = torch.exp(scaled.unsqueeze(-1) * torch.arange(length))
        weight = torch.view_as_complex(s.out) * (torch.exp(scaled) - 1.0) / decay
        kernel = 2 * torch.einsum("hn,hnl->hl", weight, powers).real
        product = torch.fft.rfft(x, n=2 * length) * torch.fft.rfft(kernel, n=2 * length)
        return torch.fft.irfft(product, n=2 * length)[..., :length]

    def parameter(*shape: int) -> Any:
        return torch.nn.Parameter(torch.randn(*shape))

    state = {"step": parameter(3), "decay": parameter(3, 4), "turn": parameter(3, 4)}
    net = made(forward, **state, out=parameter(3, 4, 2))
    return net, [torch.randn(2, 3, 10), torch.randn(5, 3, 10)]


def denoised() -> tuple[Any, Sequence[Any]]:
    """Return a mask over the spectrogram of a sound, and the sound of that."""
    import torch

    def forward(s: Any, x: Any) -> Any:
        options: Any = {"n_fft": 16, "hop_length": 4, "window": s.window}
        spectrum = torch.stft(x, **options, return_complex=True)
        mask = torch.sigmoid(s.head(spectrum.abs().mT)).mT
        return torch.istft(spectrum * mask, **options, length=x.shape[-1])

    window = torch.nn.Buffer(torch.hann_window(16) + 0.1)
    net = made(forward, window=window, head=torch.nn.Linear(9, 9))
    return net, [torch.randn(2, 100), torch.randn(3, 100)]


def mixed() -> tuple[Any, Sequence[Any]]:
    """Return the token mixing of FNet."""
    import torch

    net = made(lambda s, x: torch.fft.fft(torch.fft.fft(x, dim=-1), dim=-2).real)
    return net, [torch.randn(2, 6, 10), torch.randn(4, 6, 10)]


MODELS = (rotary, spectral, state_space, denoised, mixed)


@pytest.mark.parametrize("decomposed", [False, True], ids=["", "decomposed"])
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_complex_numbers_are_computed_with(
    model: Callable[[], Any], decomposed: bool, tmp_path: Path
) -> None:
    import torch

    torch.manual_seed(0)
    net, samples = model()
    auto = torch.export.Dim.AUTO
    shapes = ({0: auto, 1: auto} if model is rotary else {0: auto},)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        program = torch.export.export(
            net.eval(), (samples[0],), dynamic_shapes=shapes, strict=False
        )
        program = program.run_decompositions() if decomposed else program
        torch.export.save(program, tmp_path / "net.pt2")
        expected = [net(x) for x in samples]
    imported: Any = load(tmp_path / "net.pt2")
    for x, y in zip(samples, expected, strict=True):
        actual = imported(burn.tensor(x.numpy())).numpy()
        np.testing.assert_allclose(actual, y.numpy(), rtol=1e-4, atol=1e-4)


def loss_of(s: Any, x: Any, i: Any) -> Any:
    """Return a number that depends on layers of many kinds."""
    import torch

    pooled = torch.nn.functional.max_pool2d(s.group(s.conv(x)), 3, 1, 1)
    mixed = s.norm(pooled + s.table(i)[:, None, None])
    active = torch.nn.functional.gelu(mixed).relu()
    means = torch.nn.functional.avg_pool2d(active, (3, 1))
    return (s.head(means).log_softmax(-1).square().mean(),)


def test_a_training_step_gives_the_gradients(tmp_path: Path) -> None:
    import torch
    from torch.export.experimental import _export_forward_backward

    torch.manual_seed(0)
    layers = {
        "conv": torch.nn.Conv2d(2, 3, 3, padding=1),
        "group": torch.nn.GroupNorm(3, 3),
        "norm": torch.nn.LayerNorm(7),
        "table": torch.nn.Embedding(5, 7),
        "head": torch.nn.Linear(7, 4),
    }
    net = made(loss_of, **layers)
    given = (torch.randn(4, 2, 6, 7), torch.tensor([1, 0, 4, 1]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.export.export(net, given, strict=False)
        torch.export.save(_export_forward_backward(program), tmp_path / "net.pt2")
    imported: Any = load(tmp_path / "net.pt2")
    module = imported(*(burn.tensor(x.numpy()) for x in given))
    loss = net(*given)[0]
    loss.backward()
    names = [name.replace(".", "_") for name, _ in net.named_parameters()]
    assert list(module._fields[1:]) == [f"{name}_grad" for name in names]
    expected = [loss.detach(), *(p.grad for p in net.parameters())]
    for a, b in zip(module, expected, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-5)

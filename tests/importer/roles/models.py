"""PyTorch modules whose tensors have one role each: parameters, buffers, constants.

Only the opt-in tests (``-m torch``) import this file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from tests.importer.roles import buffers
from tests.importer.roles.support import Model, made, parameter, x


def decay_on_top() -> Model:
    """Return a model that computes with ``-exp(A)`` of its own parameter."""
    net = made(lambda s, x: (x * -s.A.exp()).sum(1), A=parameter(4, 3))
    return net, (x(2, 4, 3),)


def decay_inside() -> Model:
    """Return a model with ``-exp(A_log)`` in a module of it, as Mamba has it."""
    inner = made(lambda s, x: s.w(x) * (-s.A_log.exp()), A_log=parameter(3))
    inner.w = nn.Linear(3, 3)
    return made(lambda s, x: s.mixer(x) + x, mixer=inner), (x(2, 4, 3),)


def class_token() -> Model:
    """Return a model that puts one parameter in front of every sequence."""

    def forward(s: Any, x: Tensor) -> Tensor:
        cls = s.cls_token.expand(x.shape[0], -1, -1)
        return s.head(torch.cat([cls, x], 1) + s.pos_embed)

    state = {"cls_token": parameter(1, 1, 4), "pos_embed": parameter(1, 6, 4)}
    return made(forward, **state, head=nn.Linear(4, 4)), (x(2, 5, 4),)


def class_token_flat() -> Model:
    """Return a model that expands a vector."""

    def forward(s: Any, x: Tensor) -> Tensor:
        return torch.cat([s.cls.expand(x.shape[0], 1, 4), x], 1) * 2

    return made(forward, cls=parameter(4)), (x(2, 5, 4),)


def gathered_on_top() -> Model:
    """Return a model that sums fixed rows of a table."""

    def forward(s: Any, x: Tensor) -> Tensor:
        return x + s.table[s.idx].sum(0)

    idx = nn.Buffer(torch.tensor([0, 2, 2, 1]))
    return made(forward, table=parameter(5, 3), idx=idx), (x(2, 3),)


def relative_bias() -> Model:
    """Return attention with the bias table of Swin."""

    def forward(s: Any, x: Tensor) -> Tensor:
        bias = s.relative_position_bias_table[s.relative_position_index.view(-1)]
        bias = bias.view(4, 4, 2).permute(2, 0, 1).contiguous()
        q, k, v = s.qkv(x).reshape(-1, 4, 3, 2, 3).permute(2, 0, 3, 1, 4)
        scores = (q * 3**-0.5) @ k.transpose(-2, -1) + bias.unsqueeze(0)
        return s.proj((scores.softmax(-1) @ v).transpose(1, 2).reshape(-1, 4, 6))

    steps = torch.arange(4)
    index = steps[:, None] - steps[None] + 3
    attn = made(
        forward,
        relative_position_bias_table=parameter(7, 2),
        relative_position_index=nn.Buffer(index),
        qkv=nn.Linear(6, 18),
        proj=nn.Linear(6, 6),
    )
    return made(lambda s, x: s.attn(x), attn=attn), (x(2, 4, 6),)


class Gain(nn.Module):
    """RMSNorm with ``1 + weight``, as in Gemma."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = parameter(6)

    def forward(self, x: Tensor) -> Tensor:
        normed = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        return normed * (1.0 + self.weight)


def gain_on_top() -> Model:
    """Return Gemma's norm alone."""
    return Gain(), (x(2, 6),)


def gain_inside() -> Model:
    """Return Gemma's norm before a linear layer."""
    net = made(lambda s, x: s.head(s.norm(x)), norm=Gain(), head=nn.Linear(6, 3))
    return net, (x(2, 5, 6),)


class Root(nn.Module):
    """RMSNorm, as in Llama."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = parameter(6)

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


def root_on_top() -> Model:
    """Return Llama's norm alone."""
    return Root(), (x(2, 6),)


def logit_scale() -> Model:
    """Return the two projections of CLIP, and its scalar parameter."""

    def forward(s: Any, x: Tensor, y: Tensor) -> Tensor:
        a, b = (F.normalize(w(z), dim=-1) for w, z in ((s.a, x), (s.b, y)))
        return s.logit_scale.exp() * a @ b.T

    scale = nn.Parameter(torch.tensor(2.6592))
    state = {"a": nn.Linear(4, 3), "b": nn.Linear(5, 3)}
    return made(forward, logit_scale=scale, **state), (x(2, 4), x(3, 5))


def scaled_positions() -> Model:
    """Return SpeechT5's positions: a sinusoid times a scalar parameter."""
    angles = torch.arange(6.0)[:, None] / 100 ** (torch.arange(4) / 4)

    def forward(s: Any, x: Tensor) -> Tensor:
        return x + s.alpha * s.pe[:, : x.shape[1]]

    inner = made(
        forward, alpha=nn.Parameter(torch.tensor(1.0)), pe=nn.Buffer(angles.sin()[None])
    )
    net = made(lambda s, x: s.head(s.encode(x)), encode=inner, head=nn.Linear(4, 3))
    return net, (x(2, 6, 4),)


def scalar_gate() -> Model:
    """Return a residual gate: scalars of one element that begin at 0 and 1."""

    def forward(s: Any, x: Tensor) -> Tensor:
        return x + s.gate.tanh() * s.w(x) * s.scale

    gate, scale = nn.Parameter(torch.zeros(1)), nn.Parameter(torch.tensor(1.0))
    return made(forward, gate=gate, scale=scale, w=nn.Linear(4, 4)), (x(2, 4),)


def new_layer_scale() -> Model:
    """Return parameters that still have the values that change nothing."""
    return made(
        lambda s, x: s.w(x * s.gamma + s.beta),
        gamma=nn.Parameter(torch.ones(4)),
        beta=nn.Parameter(torch.zeros(4)),
        w=nn.Linear(4, 3),
    ), (x(2, 4),)


def shared_layers() -> Model:
    """Return one layer applied three times, as in ALBERT."""
    ffn = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 4))
    norm = nn.LayerNorm(4)

    def forward(s: Any, x: Tensor) -> Tensor:
        for _ in range(3):
            x = s.norm(x + s.ffn(x))
        return x

    return made(forward, ffn=ffn, norm=norm), (x(2, 5, 4),)


def tied_table() -> Model:
    """Return a language model whose head is its table."""

    def forward(s: Any, x: Tensor) -> Tensor:
        return s.lm_head(s.body(s.wte(x)).tanh())

    head = nn.Linear(4, 9, bias=False)
    table = nn.Embedding(9, 4)
    head.weight = table.weight
    net = made(forward, wte=table, body=nn.Linear(4, 4), lm_head=head)
    return net, (torch.tensor([[1, 4, 2], [0, 8, 3]]),)


def weight_norm() -> Model:
    """Return a convolution under weight normalization."""
    conv = torch.nn.utils.parametrizations.weight_norm(nn.Conv1d(3, 4, 3))
    net = made(lambda s, x: s.act(s.conv(x)), conv=conv, act=nn.ReLU())
    return net, (x(2, 3, 8),)


def standardized() -> Model:
    """Return a convolution whose weight is standardized at each call, as in BiT."""

    def forward(s: Any, x: Tensor) -> Tensor:
        w = s.weight
        mean = w.mean((1, 2, 3), keepdim=True)
        std = w.std((1, 2, 3), keepdim=True, unbiased=False)
        return F.conv2d(x, (w - mean) / (std + 1e-5), s.bias)

    inner = made(forward, weight=parameter(4, 3, 3, 3), bias=parameter(4))
    return made(lambda s, x: s.conv(x).relu(), conv=inner), (x(2, 3, 6, 6),)


def concatenated_bias() -> Model:
    """Return BEiT's projection: a bias of two parameters and zeros between them."""

    def forward(s: Any, x: Tensor) -> Tensor:
        bias = torch.cat((s.q_bias, torch.zeros_like(s.v_bias), s.v_bias))
        return F.linear(x, s.qkv.weight, bias)

    qkv = nn.Linear(4, 9, bias=False)
    inner = made(forward, q_bias=parameter(3), v_bias=parameter(3), qkv=qkv)
    return made(lambda s, x: s.attn(x) * 2, attn=inner), (x(2, 5, 4),)


def transposed() -> Model:
    """Return products with parameters as they are, transposed, reshaped and cut."""

    def forward(s: Any, x: Tensor) -> Tensor:
        y = F.linear(x @ s.a, s.b) + s.c.view(1, -1)
        return (y * s.d[:4] + s.d[4:]) @ s.e.reshape(4, 2)

    state = {"a": parameter(4, 4), "b": parameter(4, 4), "c": parameter(2, 2)}
    return made(forward, **state, d=parameter(8), e=parameter(8)), (x(3, 4),)


def listed() -> Model:
    """Return parameters in a list and a dict."""
    scales = nn.ParameterList([parameter(4), parameter(4)])
    shifts = nn.ParameterDict({"a": parameter(4), "b": parameter(4)})

    def forward(s: Any, x: Tensor) -> Tensor:
        for scale, shift in zip(s.scales, s.shifts.values(), strict=True):
            x = (x * scale + shift).tanh()
        return x

    return made(forward, scales=scales, shifts=shifts), (x(2, 4),)


def learned_mask_value() -> Model:
    """Return a model that puts a parameter in place of what is masked."""

    def forward(s: Any, x: Tensor, mask: Tensor) -> Tensor:
        return s.w(torch.where(mask[..., None], s.mask_token, x))

    net = made(forward, mask_token=parameter(1, 1, 4), w=nn.Linear(4, 4))
    return net, (x(2, 5, 4), torch.rand(2, 5) > 0.5)


def normalized_batch() -> Model:
    """Return convolutions with batch normalization."""
    steps = nn.Sequential(nn.Conv2d(3, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU())
    for tensor in (steps[1].running_mean, steps[1].weight, steps[1].bias):
        nn.init.normal_(tensor)
    nn.init.uniform_(steps[1].running_var, 0.5, 2)
    net = made(lambda s, x: s.head(s.body(x).mean((2, 3))), body=steps)
    net.head = nn.Linear(4, 2)
    return net, (x(2, 3, 6, 6),)


def normalized_rows() -> Model:
    """Return a linear layer with batch normalization behind it."""
    net = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 2))
    nn.init.normal_(net[1].running_mean)
    nn.init.uniform_(net[1].running_var, 0.5, 2)
    return net, (x(3, 4),)


def temperature() -> Model:
    """Return Swin V2's scale: a clamped parameter, exponentiated."""

    def forward(s: Any, x: Tensor) -> Tensor:
        q, k = s.qk(x).view(-1, 5, 2, 2, 3).permute(2, 0, 3, 1, 4).unbind(0)
        scores = F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-2, -1)
        return (scores * s.logit_scale.clamp(max=4.6052).exp()).softmax(-1)

    inner = made(forward, logit_scale=parameter(2, 1, 1), qk=nn.Linear(6, 12))
    return made(lambda s, x: s.attn(x) + 0, attn=inner), (x(2, 5, 6),)


def queries() -> Model:
    """Return learned queries that are read by attention, expanded over the batch."""

    def forward(s: Any, x: Tensor) -> Tensor:
        q = s.q_proj(s.queries.weight.unsqueeze(0).expand(x.shape[0], -1, -1))
        return (q @ x.transpose(1, 2)).softmax(-1) @ s.v_proj(x)

    state = {"q_proj": nn.Linear(4, 4), "v_proj": nn.Linear(4, 4)}
    return made(forward, queries=nn.Embedding(3, 4), **state), (x(2, 5, 4),)


def spectral_filter() -> Model:
    """Return low-rank updates beside a weight: products of two parameters."""

    def forward(s: Any, x: Tensor) -> Tensor:
        return F.linear(x, s.base.weight + 0.5 * (s.lora_b @ s.lora_a), s.base.bias)

    state = {"lora_a": parameter(2, 4), "lora_b": parameter(5, 2)}
    return made(forward, base=nn.Linear(4, 5), **state), (x(2, 4),)


MODELS: tuple[Callable[[], Model], ...] = (
    *(decay_on_top, decay_inside, class_token, class_token_flat, gathered_on_top),
    *(relative_bias, gain_on_top, gain_inside, root_on_top, logit_scale),
    *(scaled_positions, scalar_gate, new_layer_scale, shared_layers, tied_table),
    *(
        weight_norm,
        standardized,
        concatenated_bias,
        transposed,
        learned_mask_value,
        listed,
    ),
    *(
        normalized_batch,
        normalized_rows,
        temperature,
        queries,
        spectral_filter,
        buffers.causal_mask,
    ),
    *(buffers.graph_convolution, buffers.rotary, buffers.sinusoid, buffers.timestep),
    *(buffers.normalized_image, buffers.anchors, buffers.windowed, buffers.one_hot),
    *(buffers.padded, buffers.positions, buffers.quantizer),
)

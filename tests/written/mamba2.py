"""A Mamba-2 language model, as a person writes it."""

import math

from burn import Tensor, nn, ops

HIDDEN, VOCABULARY = 16, 99
#: Heads and their features, features of a state, positions of a chunk.
HEADS, WIDTH, STATE, CHUNK = 4, 8, 8, 4
INNER = HEADS * WIDTH


class Net(nn.Module):
    record_prefix = "m"

    def __init__(self) -> None:
        super().__init__()
        self.backbone = Mamba2Model()
        self.lm_head = nn.Linear(HIDDEN, VOCABULARY, bias=False)

    def __call__(self, input_ids: Tensor) -> Tensor:
        return self.lm_head(self.backbone(input_ids))


class Mamba2Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embeddings = nn.Embedding(VOCABULARY, HIDDEN)
        self.layers = nn.ModuleList([Mamba2Block()])
        self.norm_f = nn.RMSNorm(HIDDEN, eps=1e-05)

    def __call__(self, input_ids: Tensor) -> Tensor:
        x = self.embeddings(input_ids)
        for layer in self.layers:
            x = layer(x)
        return self.norm_f(x)


class Mamba2Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(HIDDEN, eps=1e-05)
        self.mixer = Mamba2Mixer()

    def __call__(self, x: Tensor) -> Tensor:
        return x + self.mixer(self.norm(x))


class Mamba2Mixer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        channels = INNER + 2 * STATE
        self.in_proj = nn.Linear(HIDDEN, INNER + channels + HEADS, bias=False)
        self.conv1d = nn.Conv1d(
            channels, channels, kernel_size=4, padding=3, groups=channels
        )
        self.norm = MambaRMSNormGated()
        self.out_proj = nn.Linear(INNER, HIDDEN, bias=False)
        self.dt_bias = nn.parameter(HEADS)
        self.folded_scale = nn.buffer(HEADS, 1)
        self.folded_scale2 = nn.buffer(HEADS)

    def __call__(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        gate, x, dt = ops.split(
            self.in_proj(x), (INNER, INNER + 2 * STATE, HEADS), axis=2
        )
        x = ops.silu(self.conv1d(x.transpose(1, 2))[:, :, :length]).transpose(1, 2)
        x, b, c = ops.split(x, (INNER, STATE, STATE), axis=2)
        x = x.reshape(batch, length, HEADS, WIDTH)
        dt = ops.softplus(dt + self.dt_bias)
        y = scan(x * dt.unsqueeze(3), self.folded_scale2 * dt, b, c)
        y = (y + self.folded_scale * x).flatten(2)
        return self.out_proj(self.norm(y, gate))


def scan(x: Tensor, decay: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """The outputs of the states, chunk by chunk."""
    length = x.shape[1]
    x, decay, b, c = (chunks(one) for one in (x, decay, b, c))
    decay = decay.permute(0, 3, 1, 2)
    total = ops.cumsum(decay, axis=-1)
    inside = ops.einsum("bcln,bcsn,bhcls->bclsh", [c, b, decays(decay)])
    y = ops.einsum("bclsh,bcshp->bclhp", [inside, x])
    rest = ops.exp(total[:, :, :, -1:] - total)
    states = ops.einsum("bcln,bhcl,bclhp->bchpn", [b, rest, x])
    # The state in front of each chunk, from those that earlier chunks add.
    between = decays(ops.pad(total[:, :, :, -1], (0, 0, 1, 0, 0, 0)))
    states = ops.einsum("bhzc,bchpn->bzhpn", [between[:, :, :-1, 1:], states])
    y = y + ops.einsum("bcln,bchpn,bhcl->bclhp", [c, states, ops.exp(total)])
    return y.flatten(1, 2)[:, :length]


def chunks(x: Tensor) -> Tensor:
    """``x`` with zeros at the end, in chunks."""
    batch, length, *others = x.shape
    rank = len(others)
    x = ops.pad(x, (0, 0, *[0] * rank, 0, -length % CHUNK, *[0] * rank))
    return x.reshape(batch, -1, CHUNK, *others)


def decays(x: Tensor) -> Tensor:
    """``exp`` of the sums of ``x`` between all pairs of positions."""
    total = ops.cumsum(x, axis=-1)
    later = ops.trilu(ops.full((x.shape[-1], x.shape[-1]), True), k=1)
    return ops.exp(
        ops.where(later, -math.inf, total.unsqueeze(-1) - total.unsqueeze(-2))
    )


class MambaRMSNormGated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.parameter(INNER)

    def __call__(self, x: Tensor, gate: Tensor) -> Tensor:
        return self.weight * ops.rms_norm(x * ops.silu(gate))

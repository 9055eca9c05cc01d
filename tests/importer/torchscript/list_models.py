"""Models for ``torch.jit.script``: lists of open length, optional tensors, enums."""

# The compiler of TorchScript does not support all of Python.
# ruff: noqa: RET505, UP045

import math
from enum import Enum
from typing import Optional

import torch
from torch import Tensor, nn


class Cell(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight_ih = nn.Parameter(torch.randn(8, 3) * 0.3)
        self.weight_hh = nn.Parameter(torch.randn(8, 2) * 0.3)

    def forward(
        self, x: Tensor, state: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        h, c = state
        gates = torch.mm(x, self.weight_ih.t()) + torch.mm(h, self.weight_hh.t())
        i, f, g, o = gates.chunk(4, 1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        return h, (h, c)


class CustomLSTM(nn.Module):
    """The layer in both directions of PyTorch's benchmarks of TorchScript."""

    def __init__(self) -> None:
        super().__init__()
        self.forwards = Cell()
        self.backwards = Cell()

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        steps = torch.stack([x, x * 2], 1)
        zeros = torch.zeros(2, 2)
        state = (zeros, zeros)
        inputs = steps.unbind(0)
        outputs = torch.jit.annotate(list[Tensor], [])
        for i in range(len(inputs)):
            out, state = self.forwards(inputs[i], state)
            outputs += [out]
        state = (zeros, zeros)
        inputs = inputs[::-1]
        others = torch.jit.annotate(list[Tensor], [])
        for i in range(len(inputs)):
            out, state = self.backwards(inputs[i], state)
            others += [out]
        both = [torch.stack(outputs), torch.stack(others[::-1])]
        return torch.cat(both, -1), state[0], state[1]


class Viterbi(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        score = x[0]
        history = torch.jit.annotate(list[Tensor], [])
        for t in range(1, x.size(0)):
            best, index = (score.unsqueeze(1) + x.t() @ x).max(0)
            score = best + x[t]
            history.append(index)
        last = score.argmax(0)
        path = [last]
        for i in range(len(history) - 1, -1, -1):
            last = history[i][last]
            path.append(last)
        path.reverse()
        return score, torch.stack(path)


class Slices(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        rows = list(x.unbind(0))
        columns = x.unbind(1)
        more = rows[1:] + [x[0]]
        rows.extend(more)
        numbers = torch.jit.annotate(list[int], [])
        for i in range(x.size(0)):
            numbers.append(i * 2)
        return torch.stack(rows), torch.stack(columns[1:], 1), torch.tensor(numbers)


class RowInPlace(nn.Module):
    """Rows are views: what changes one of them changes the tensor."""

    def forward(self, x: Tensor) -> Tensor:
        y = x.exp()
        rows = y.unbind(0)
        rows[1].mul_(3)
        y[0].add_(1)
        return y + rows[0] + torch.stack(rows)


class CausalDecoder(nn.Module):
    """Whether the mask is causal is decided at run time: then it is None."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerDecoderLayer(4, 2, 8, batch_first=True)
        self.decoder = nn.TransformerDecoder(self.layer, 1)

    def forward(self, x: Tensor) -> Tensor:
        y = torch.stack([x, x * 2, x - 1], 1)
        y = torch.cat([y, y[:, :, :1]], 2)
        size = y.size(1)
        mask = torch.triu(torch.full((size, size), float("-inf")), 1)
        return self.decoder(y, y, tgt_mask=mask)


class PaddedEncoder(nn.Module):
    """Only positions that are not padded: the others depend on the mode of PyTorch."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)

    def forward(self, x: Tensor) -> Tensor:
        y = torch.stack([x, x * 2, x - 1], 1)
        y = torch.cat([y, y[:, :, :1]], 2)
        padding = torch.arange(3).expand(x.size(0), 3) > 1
        return self.encoder(y, src_key_padding_mask=padding)[:, :2]


class OptionalResult(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        scale: Optional[Tensor] = None
        offsets = torch.jit.annotate(list[Tensor], [])
        if x.sum() > 0:
            scale = x.abs().max()
            offsets.append(x)
        y = x + 1
        if scale is not None:
            y = y / scale
        for offset in offsets:
            y = y + offset
        return y, torch.tensor(len(offsets))


class Reduction(Enum):
    MEAN = "mean"
    SUM = "sum"
    MAX = "max"


class Weight(Enum):
    HALF = 0.5
    DOUBLE = 2.0


class Enumerations(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.reduction = Reduction.SUM
        self.weight = Weight.DOUBLE

    def reduced(self, x: Tensor, reduction: Reduction) -> Tensor:
        if reduction == Reduction.MEAN:
            return x.mean(1)
        elif reduction == Reduction.SUM:
            return x.sum(1)
        return x.amax(1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = self.reduced(x, self.reduction)
        if self.weight != Weight.HALF and self.reduction.name == "SUM":
            y = y * self.weight.value
        return y, self.reduced(x, Reduction.MAX)


class Dicts(nn.Module):
    def forward(self, x: Tensor) -> dict[str, Tensor]:
        pairs = [("a", x), ("b", x + 1)]
        first = dict(pairs)
        second = dict(first)
        second["c"] = first["b"] * 2
        return second


class TextKeys(nn.Module):
    """Keys that the code computes: two of them are no one key."""

    def forward(self, x: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        results = torch.jit.annotate(dict[str, Tensor], {})
        for i in range(3):
            key = f"level{i}"
            if key not in results:
                results[key] = x * i
            results["other_" + str(i)] = x + i
        return results, results["level1"] - results["other_2"]


class OpenKey(nn.Module):
    def forward(self, x: Tensor) -> dict[str, Tensor]:
        if x.size(0) > 999:
            raise ValueError(f"{x.size(0)} rows: " + str(x.size(0)))
        return {f"rows{x.size(0)}": x}


class ComputedNumbers(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        n = x.size(0)
        whole = -n // 2 + 10 * (-n % 3) + 100 * abs(2 - n)
        half = math.floor(n / 2) // 2 + math.ceil(n / 4) % 2 + round(n / 4)
        return x * math.sqrt(n) + whole + half + math.log(n) * math.exp(-n)


class OptionalInLoop(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        for row in x:
            y: Optional[Tensor] = None
            if row.sum() > 0:
                y = row * 2
            if y is None:
                y = row
            x = x + y
        return x


class LoopOfLists(nn.Module):
    def forward(self, x: Tensor) -> list[Tensor]:
        rows = torch.jit.annotate(list[Tensor], [])
        for row in x:
            rows.append(row.exp())
        return list(rows)


MODELS = (
    CustomLSTM,
    Viterbi,
    Slices,
    RowInPlace,
    CausalDecoder,
    PaddedEncoder,
    OptionalResult,
    Enumerations,
    Dicts,
    TextKeys,
    OpenKey,
    ComputedNumbers,
    OptionalInLoop,
    LoopOfLists,
)
REFUSED = {
    OpenKey: "a text that is known only at run time is a key",
    OptionalInLoop: "__is__ reads a value that differs between the two sides",
    LoopOfLists: "forward returns a list whose length is known only at run time",
}

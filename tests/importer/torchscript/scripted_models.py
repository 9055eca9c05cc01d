"""Models with control flow, as authors write them for ``torch.jit.script``.

``REFUSED`` has those that are not supported, with the reason.
"""

# The compiler of TorchScript does not support all of Python.
# ruff: noqa: B007, B905, SIM108, UP045

import torch
from torch import Tensor, nn


class If(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > 0:
            y = x * 2
            z = x + 1
        else:
            y = -x
            z = x - 1
        return y + z


class IfSizes(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if x.size(0) > 3:
            y = x[:3]
        else:
            y = x
        return y * 2


class EarlyReturn(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > 0:
            return x * 2
        y = x.exp()
        return y + 1


class EarlyReturn2(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > 0:
            if x.max() > 1:
                return x * 2
            x = x + 1
        elif x.min() < -1:
            return x * 3
        return x.exp()


class While(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        n = 0
        while x.abs().sum() > 1:
            x = x * 0.5
            n += 1
        return x, torch.tensor(n)


class WhileBreak(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        for i in range(10):
            x = x * 0.5
            if x.abs().sum() < 1:
                break
        return x


class WhileContinue(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        y = torch.zeros_like(x)
        for i in range(4):
            if x.sum() < i:
                continue
            y = y + x * i
        return y


class ForAppend(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        outs: list[Tensor] = []
        for i in range(x.size(1)):
            outs.append(x[:, i] * i)
        return torch.stack(outs, 1)


class ForAppendDyn(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        outs: list[Tensor] = []
        for i in range(x.size(0)):
            outs.append(x[i] * i)
        return torch.stack(outs, 0)


class Rnn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(3, 4)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h = torch.zeros(2, 4)
        outs: list[Tensor] = []
        for i in range(x.size(0)):
            h = self.cell(x[i].expand(2, 3), h)
            outs.append(h)
        return torch.stack(outs), h


class IterTensor(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros(3)
        for t in x:
            h = torch.tanh(h + t)
        return h


class IterUnbind(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        h = x.new_zeros(x.shape[0])
        for t in x.unbind(1):
            h = torch.tanh(h + t)
        return h


class AppendIf(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        outs = [x]
        if x.sum() > 0:
            outs.append(x * 2)
        else:
            outs.append(x * 3)
        return torch.cat(outs, 0)


class AppendIfLen(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        outs = [x]
        if x.sum() > 0:
            outs.append(x * 2)
        return torch.cat(outs, 0)


class OptionalArg(nn.Module):
    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        if mask is not None:
            x = x * mask
        return x + 1


class OptionalLocal(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        y: Tensor | None = None
        if x.sum() > 0:
            y = x * 2
        if y is None:
            y = x
        return y


class NumberIf(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        k = 2
        if x.sum() > 0:
            k = 3
        return x * k


class Kv(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        d: dict[str, Tensor] = {}
        d["a"] = x
        if x.sum() > 0:
            d["a"] = x * 2
        return d["a"]


class Inplace(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        y = torch.zeros_like(x)
        for i in range(x.size(0)):
            y[i] = x[i] * i
        return y


class InplaceStatic(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        y = torch.zeros_like(x)
        for i in range(3):
            y[:, i] = x[:, i] * i
        return y


class WhileInplace(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        y = x.clone()
        while y.abs().sum() > 1:
            y.mul_(0.5)
        return y


class Nested(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        y = x
        while y.abs().sum() > 1:
            if y.sum() > 0:
                y = y * 0.5
            else:
                y = -y * 0.25
        return y


class NestedLoop(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        y = torch.zeros(3)
        for i in range(x.size(0)):
            for j in range(i):
                y = y + x[i] * x[j]
        return y


class RangeFrom(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        y = x[0]
        for i in range(1, x.size(0)):
            y = torch.maximum(y * 0.5, x[i])
        return y


class RangeDown(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        y = torch.zeros(3)
        for i in range(x.size(0) - 1, -1, -1):
            y = y * 0.5 + x[i]
        return y


class HelperReturn(nn.Module):
    def act(self, x: Tensor, flag: bool) -> Tensor:
        if flag:
            return torch.relu(x)
        return torch.tanh(x)

    def forward(self, x: Tensor) -> Tensor:
        return self.act(x, bool(x.sum() > 0))


class ReturnInLoop(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        for i in range(5):
            x = x * 0.5
            if x.abs().sum() < 1:
                return x + i
        return x


class ListReturn(nn.Module):
    def forward(self, x: Tensor) -> list[Tensor]:
        outs: list[Tensor] = []
        for i in range(3):
            outs.append(x * i)
        return outs


class TensorItem(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        n = int(x.abs().max().item())
        return x * n


class Tuples(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        s = (x, x + 1)
        for i in range(x.size(0)):
            s = (s[1], s[0] * 0.5)
        return s[0] - s[1]


class Lists(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        hs = [x, x + 1]
        for i in range(x.size(0)):
            hs = [hs[1], hs[0] * 0.5]
        return hs[0] - hs[1]


class ListSet(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        hs = [x, x + 1]
        for i in range(x.size(0)):
            hs[0] = hs[0] * 0.5
        return hs[0] - hs[1]


class Comprehension(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        ys = [t * 2 for t in x.split(1, 1)]
        return torch.cat(ys, 1)


class Enumerate(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(3)])

    def forward(self, x: Tensor) -> Tensor:
        for i, layer in enumerate(self.layers):
            x = layer(x) + i
        return x


class TensorBranchTuple(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > 0:
            a, b = x.chunk(2, 0)[0], x.size(0)
        else:
            a, b = x * 2, 7
        return a * b


class StateIf(nn.Module):
    n: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("n", torch.zeros(3))

    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > 0:
            self.n = self.n + 1
        return x + self.n


class Power(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        n = x.size(0)
        if n % 2 == 0:
            y = x[: n // 2]
        else:
            y = x[n // 2 :]
        return y


MODELS = (
    If,
    IfSizes,
    EarlyReturn,
    EarlyReturn2,
    While,
    WhileBreak,
    WhileContinue,
    ForAppend,
    ForAppendDyn,
    Rnn,
    IterTensor,
    IterUnbind,
    AppendIf,
    AppendIfLen,
    OptionalArg,
    OptionalLocal,
    NumberIf,
    Kv,
    Inplace,
    InplaceStatic,
    WhileInplace,
    Nested,
    NestedLoop,
    RangeFrom,
    RangeDown,
    HelperReturn,
    ReturnInLoop,
    ListReturn,
    TensorItem,
    Tuples,
    Lists,
    ListSet,
    Comprehension,
    Enumerate,
    TensorBranchTuple,
    StateIf,
    Power,
)
REFUSED = {
    StateIf: "an attribute is set in a branch",
}

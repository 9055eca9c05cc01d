"""Linear layers."""

from burn import ops
from burn.box import Parameter
from burn.nn import init
from burn.nn.module import Module
from burn.tensor import Tensor


class Linear(Module):
    """``x @ weight.mT + bias`` over the last axis: [..., in] to [..., out].

    ``weight`` is [out, in], ``bias`` [out].
    """

    turned_in_burn = ("weight",)

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(
            init.kaiming_uniform((out_features, in_features), in_features)
        )
        self.bias = (
            Parameter(init.kaiming_uniform((out_features,), in_features))
            if bias
            else None
        )

    def __call__(self, x: Tensor) -> Tensor:
        return ops.linear(x, self.weight, self.bias)

    def describe(self) -> str:
        return f"{self.in_features}, {self.out_features}, bias={self.bias is not None}"


class Conv1D(Module):
    """``x @ weight + bias`` over the last axis: [..., nx] to [..., nf].

    ``weight`` is [nx, nf], ``bias`` [nf]: a :class:`Linear` with a transposed weight,
    like the layer of this name in GPT-2.
    """

    def __init__(self, nf: int, nx: int, bias: bool = True) -> None:
        super().__init__()
        self.nf, self.nx = nf, nx
        self.weight = Parameter(init.normal((nx, nf), 0.02))
        self.bias = Parameter(init.constant((nf,), 0.0)) if bias else None

    def __call__(self, x: Tensor) -> Tensor:
        y = x @ self.weight
        return y if self.bias is None else y + self.bias

    def describe(self) -> str:
        return f"{self.nf}, {self.nx}, bias={self.bias is not None}"

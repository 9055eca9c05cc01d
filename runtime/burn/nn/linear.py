"""Linear layers."""

from burn import ops
from burn.box import Parameter
from burn.dtypes import DType, float32
from burn.nn import init
from burn.nn.module import Module
from burn.ops.matmul import linear
from burn.tensor import Tensor


class Linear(Module):
    """``x @ weight.mT + bias`` over the last axis: [..., in] to [..., out].

    ``weight`` is [out, in], ``bias`` [out], both of ``dtype``.
    """

    turned_in_burn = ("weight",)

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        dtype: DType = float32,
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(
            init.kaiming_uniform((out_features, in_features), in_features, dtype)
        )
        self.bias = (
            Parameter(init.kaiming_uniform((out_features,), in_features, dtype))
            if bias
            else None
        )

    def __call__(self, x: Tensor) -> Tensor:
        return linear(x, self.weight, self.bias)

    def describe(self) -> str:
        return f"{self.in_features}, {self.out_features}, bias={self.bias is not None}"


class Conv1D(Module):
    """``x @ weight + bias`` over the last axis: [..., nx] to [..., nf].

    ``weight`` is [nx, nf], ``bias`` [nf]: a :class:`Linear` with a transposed weight,
    like the layer of this name in GPT-2.
    """

    def __init__(
        self, nf: int, nx: int, bias: bool = True, dtype: DType = float32
    ) -> None:
        super().__init__()
        self.nf, self.nx = nf, nx
        self.weight = Parameter(init.normal((nx, nf), 0.02, dtype))
        self.bias = Parameter(init.constant((nf,), 0.0, dtype)) if bias else None

    def __call__(self, x: Tensor) -> Tensor:
        y = x @ self.weight
        return y if self.bias is None else y + self.bias

    def describe(self) -> str:
        return f"{self.nf}, {self.nx}, bias={self.bias is not None}"


class Bilinear(Module):
    """``x @ weight[k] @ y + bias[k]`` for each output k: [..., in1] and [..., in2].

    ``weight`` is [out, in1, in2], ``bias`` [out]; the result is [..., out].
    """

    def __init__(
        self, in1_features: int, in2_features: int, out_features: int, bias: bool = True
    ) -> None:
        super().__init__()
        self.in1_features, self.in2_features = in1_features, in2_features
        self.out_features = out_features
        shape = out_features, in1_features, in2_features
        self.weight = Parameter(init.kaiming_uniform(shape, in1_features))
        self.bias = (
            Parameter(init.kaiming_uniform((out_features,), in1_features))
            if bias
            else None
        )

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        result = ops.einsum("...i,oij,...j->...o", [x, self.weight, y])
        return result if self.bias is None else result + self.bias

    def describe(self) -> str:
        sizes = f"{self.in1_features}, {self.in2_features}, {self.out_features}"
        return f"{sizes}, bias={self.bias is not None}"


class SwiGLU(Module):
    """``silu(linear_inner(x)) * linear_outer(x)``: [..., in] to [..., out].

    A gated linear unit (N. Shazeer, 2020), with the names of Burn; feed-forward layers
    of Llama call the two ``gate_proj`` and ``up_proj``.
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = False) -> None:
        super().__init__()
        self.linear_inner = Linear(in_features, out_features, bias)
        self.linear_outer = Linear(in_features, out_features, bias)

    def __call__(self, x: Tensor) -> Tensor:
        return ops.silu(self.linear_inner(x)) * self.linear_outer(x)

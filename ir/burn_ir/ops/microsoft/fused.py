"""Matrix products and convolutions of ``com.microsoft`` with fused neighbors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from burn import ops
from burn_ir.errors import InvalidOperand
from burn_ir.op import Op, Type, Value, operator
from burn_ir.ops.conv import Convolving
from burn_ir.ops.elementwise import same_dtype
from burn_ir.ops.matmul import Gemm, MatMul
from burn_ir.ops.microsoft.activation import DOMAIN, with_bias
from burn_ir.ops.options import shortest
from burn_ir.ops.support import shape_of

#: The operation of each activation, and the names of its parameters in order.
ACTIVATIONS: dict[str, tuple[Callable[..., Value], tuple[str, ...]]] = {
    "Clip": (ops.clip, ("lower", "upper")),
    "Elu": (ops.elu, ("alpha",)),
    "HardSigmoid": (ops.hard_sigmoid, ("alpha", "beta")),
    "LeakyRelu": (ops.leaky_relu, ("alpha",)),
    "Relu": (ops.relu, ()),
    "Selu": (ops.selu, ("alpha", "gamma")),
    "Sigmoid": (ops.sigmoid, ()),
    "Softplus": (ops.softplus, ()),
    "Softsign": (ops.softsign, ()),
    "Tanh": (ops.tanh, ()),
    "ThresholdedRelu": (ops.thresholded_relu, ("alpha",)),
}


def check_activation(name: str | None) -> None:
    """Check that ``name`` is an activation, or stands for none.

    Raises:
        InvalidOperand: it is not.
    """
    if name and name not in ACTIVATIONS:
        expected = ", ".join(ACTIVATIONS)
        raise InvalidOperand(f"expected activation {expected}, got {name!r}")


def activate(x: Value, name: str | None, parameters: Sequence[float | None]) -> Value:
    """Return ``x`` after an activation; None in ``parameters`` is the default."""
    if not name:
        return x
    function, names = ACTIVATIONS[name]
    options = {
        key: shortest(value)
        for key, value in zip(names, parameters, strict=False)
        if value is not None
    }
    if name == "Clip":
        return ops.clip(x, options.get("lower"), options.get("upper"))
    return function(x, **options)


@operator
class FusedMatMul(Op, onnx="FusedMatMul", domain=DOMAIN, versions=(1,)):
    """A scaled matrix product; ``transBatchA`` means the layout [K, batch, N]."""

    alpha: float = 1.0
    transA: Literal[0, 1] = 0  # noqa: N815
    transB: Literal[0, 1] = 0  # noqa: N815
    transBatchA: Literal[0, 1] = 0  # noqa: N815
    transBatchB: Literal[0, 1] = 0  # noqa: N815

    def infer(self, x: Type, y: Type) -> Type:
        if x.shape is None or y.shape is None:
            return Type(same_dtype(x, y), None)
        left = order(x.rank, self.transA, self.transBatchA)
        right = order(y.rank, self.transB, self.transBatchB)
        return MatMul().infer(
            x.with_shape([x.dims[a] for a in left]),
            y.with_shape([y.dims[a] for a in right]),
        )

    def lower(self, x: Value, y: Value) -> Value:
        left = _ordered(x, self.transA, self.transBatchA)
        product = left @ _ordered(y, self.transB, self.transBatchB)
        return product if self.alpha == 1 else product * self.alpha


@operator
class TransposeMatMul(Op, onnx="TransposeMatMul", domain=DOMAIN, versions=(1,)):
    """The former name of ``FusedMatMul``."""

    alpha: float = 1.0
    transA: Literal[0, 1] = 0  # noqa: N815
    transB: Literal[0, 1] = 0  # noqa: N815

    def infer(self, x: Type, y: Type) -> Type:
        return FusedMatMul(self.alpha, self.transA, self.transB).infer(x, y)

    def lower(self, x: Value, y: Value) -> Value:
        return FusedMatMul(self.alpha, self.transA, self.transB).lower(x, y)


def order(rank: int, transposed: int, batch_moved: int) -> list[int]:
    """Return the permutation of an operand's axes for the product."""
    axes = list(range(rank))
    if batch_moved and rank > 2:
        axes = [*axes[1:-1], 0, axes[-1]]
    if transposed and rank > 1:
        axes[-2:] = axes[:-3:-1]
    return axes


def _ordered(x: Value, transposed: int, batch_moved: int) -> Value:
    if not batch_moved and not transposed:
        return x
    shape = shape_of(x)  # with an unknown rank, it is taken for a matrix
    if not batch_moved and (shape is None or len(shape) > 1):
        return x.mT
    axes = order(len(x.shape), transposed, batch_moved)
    return x if axes == sorted(axes) else x.permute(*axes)


@operator
class FusedGemm(Op, onnx="FusedGemm", domain=DOMAIN, versions=(1,)):
    activation: str | None = None
    activation_alpha: float | None = None
    activation_beta: float | None = None
    activation_gamma: float | None = None
    alpha: float = 1.0
    beta: float = 1.0
    transA: Literal[0, 1] = 0  # noqa: N815
    transB: Literal[0, 1] = 0  # noqa: N815

    def __post_init__(self) -> None:
        check_activation(self.activation)

    def infer(self, x: Type, y: Type, z: Type | None = None) -> Type:
        return self._product().infer(x, y, z)

    def lower(self, x: Value, y: Value, z: Value = None) -> Value:
        second = self.activation_beta
        if self.activation == "Selu":
            second = self.activation_gamma
        parameters = (self.activation_alpha, second)
        return activate(self._product().lower(x, y, z), self.activation, parameters)

    def _product(self) -> Gemm:
        return Gemm(self.alpha, self.beta, self.transA, self.transB)


@operator
class FusedConv(Convolving, Op, onnx="FusedConv", domain=DOMAIN, versions=(1,)):
    activation: str | None = None
    activation_params: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        check_activation(self.activation)

    def infer(
        self, x: Type, weight: Type, bias: Type | None = None, skip: Type | None = None
    ) -> Type:
        return with_bias(self.conv().infer(x, weight, bias), skip)

    def lower(
        self, x: Value, weight: Value, bias: Value = None, skip: Value = None
    ) -> Value:
        out = self.conv().lower(x, weight, bias)
        out = out if skip is None else out + skip
        return activate(out, self.activation, self.activation_params)

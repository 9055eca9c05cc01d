"""Optimizer steps of the domain ``ai.onnx.preview.training``."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from burn import dtypes, ops
from burn_ir.errors import InvalidOperand
from burn_ir.op import Op, Type, Value, operator
from burn_ir.ops.options import non_default

DOMAIN = "ai.onnx.preview.training"


class Step:
    """Operators on groups of tensors: all x, all gradients, all of each state."""

    #: The number of tensors per optimized one, including itself.
    group: ClassVar[int]
    primitive: ClassVar[Any]

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the primitive."""
        raise NotImplementedError

    def infer(self, rate: Type, count: Type, *tensors: Type) -> tuple[Type, ...]:
        number, rest = divmod(len(tensors), self.group)
        if rest:
            raise InvalidOperand(
                f"expected {self.group} inputs for each tensor, got {len(tensors)}"
            )
        if not dtypes.is_float(rate.dtype) or not dtypes.is_integer(count.dtype):
            raise InvalidOperand(
                f"expected a floating rate and an integer count, got {rate.name} and "
                f"{count.name}"
            )
        arguments, _, states = _split(tensors, number)
        for i, operand in enumerate(tensors):
            if operand.dtype != arguments[i % number].dtype:
                raise InvalidOperand(
                    f"expected one dtype, got {arguments[i % number].name} and "
                    f"{operand.name}"
                )
        return tuple(t.forget() for t in (*arguments, *states))

    def lower(self, rate: Value, count: Value, *tensors: Value) -> tuple[Value, ...]:
        number, options = len(tensors) // self.group, self.arguments()
        step = type(self).primitive
        updates = [
            step(rate, count, *tensors[i::number], **options) for i in range(number)
        ]
        return tuple(result for kind in zip(*updates, strict=True) for result in kind)


def _split(
    tensors: tuple[Type, ...], number: int
) -> tuple[tuple[Type, ...], tuple[Type, ...], tuple[Type, ...]]:
    """Return the types of the optimized tensors, the gradients, and the state."""
    return tensors[:number], tensors[number : 2 * number], tensors[2 * number :]


@operator
class Adagrad(Step, Op, onnx="Adagrad", domain=DOMAIN, versions=(1,)):
    group = 3
    primitive = ops.adagrad

    decay_factor: float = 0.0
    epsilon: float = 1e-6
    norm_coefficient: float = 0.0

    def arguments(self) -> dict[str, Any]:
        return non_default(
            decay_factor=(self.decay_factor, 0.0),
            epsilon=(self.epsilon, 1e-6),
            norm_coefficient=(self.norm_coefficient, 0.0),
        )


@operator
class Adam(Step, Op, onnx="Adam", domain=DOMAIN, versions=(1,)):
    group = 4
    primitive = ops.adam

    alpha: float = 0.9
    beta: float = 0.999
    epsilon: float = 1e-6
    norm_coefficient: float = 0.0
    norm_coefficient_post: float = 0.0

    def arguments(self) -> dict[str, Any]:
        return non_default(
            alpha=(self.alpha, 0.9),
            beta=(self.beta, 0.999),
            epsilon=(self.epsilon, 1e-6),
            norm_coefficient=(self.norm_coefficient, 0.0),
            norm_coefficient_post=(self.norm_coefficient_post, 0.0),
        )


@operator
class Momentum(Step, Op, onnx="Momentum", domain=DOMAIN, versions=(1,)):
    group = 3
    primitive = ops.momentum

    alpha: float
    beta: float
    mode: Literal["standard", "nesterov"]
    norm_coefficient: float

    def arguments(self) -> dict[str, Any]:
        return {
            "alpha": self.alpha,
            "beta": self.beta,
            **non_default(
                norm_coefficient=(self.norm_coefficient, 0.0),
                nesterov=(self.mode == "nesterov", False),
            ),
        }

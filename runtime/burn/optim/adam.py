"""Optimizers with running means of gradients and of their squares."""

from collections.abc import Mapping
from typing import ClassVar, Unpack

from burn import ops
from burn.optim.groups import Group, Parameters
from burn.optim.optimizer import Common, Optimizer
from burn.optim.sgd import decayed
from burn.tensor import Tensor


class Adam(Optimizer):
    """Adam (D. Kingma and J. Ba, 2014) as in PyTorch; decay is added to the gradient.

    ``amsgrad`` divides by the maximum of all past second moments.
    """

    slots = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")
    #: Whether weight decay is decoupled from the gradient.
    decoupled: ClassVar[bool] = False

    def __init__(
        self,
        parameters: Parameters,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        **common: Unpack[Common],
    ) -> None:
        options = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
        }
        super().__init__(parameters, options, **common)

    def slots_of(self, group: Group) -> tuple[str, ...]:
        return self.slots if group["amsgrad"] else self.slots[:2]

    def scales(self, group: Group, lr: Tensor, step: Tensor) -> dict[str, Tensor]:
        first, second = group["betas"]
        return {
            "lr": lr / (1.0 - ops.pow(first, step)),
            "root": 1.0 / ops.sqrt(1.0 - ops.pow(second, step)),
            "shrink": 1.0 - lr * group["weight_decay"],
        }

    def update(
        self,
        group: Group,
        scales: Mapping[str, Tensor],
        state: dict[str, Tensor],
        x: Tensor,
        grad: Tensor,
    ) -> Tensor:
        if not self.decoupled:
            grad = decayed(group, x, grad)
        elif group["weight_decay"]:
            x = x * scales["shrink"]
        first: float = group["betas"][0]
        second: float = group["betas"][1]
        mean = state["exp_avg"] * first + grad * (1.0 - first)
        square = state["exp_avg_sq"] * second + grad * grad * (1.0 - second)
        state["exp_avg"], state["exp_avg_sq"] = mean, square
        if group["amsgrad"]:
            square = ops.maximum(state["max_exp_avg_sq"], square)
            state["max_exp_avg_sq"] = square
        eps: float = group["eps"]
        divisor: Tensor = ops.sqrt(square) * scales["root"] + eps
        return x - mean * scales["lr"] / divisor


class AdamW(Adam):
    """Adam with decoupled weight decay (I. Loshchilov and F. Hutter, 2017)."""

    decoupled = True

    def __init__(
        self,
        parameters: Parameters,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.01,
        amsgrad: bool = False,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(parameters, lr, betas, eps, weight_decay, amsgrad, **common)


class Adan(Optimizer):
    """Adan (X. Xie et al., 2022): Adam with a mean of differences of gradients."""

    slots = ("exp_avg", "exp_avg_diff", "exp_avg_sq", "previous")

    def __init__(
        self,
        parameters: Parameters,
        lr: float = 1e-3,
        betas: tuple[float, float, float] = (0.98, 0.92, 0.99),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        **common: Unpack[Common],
    ) -> None:
        options = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(parameters, options, **common)

    def scales(self, group: Group, lr: Tensor, step: Tensor) -> dict[str, Tensor]:
        first, second, third = group["betas"]
        return {
            "mean": lr / (1.0 - ops.pow(first, step)),
            "difference": lr * second / (1.0 - ops.pow(second, step)),
            "root": 1.0 / ops.sqrt(1.0 - ops.pow(third, step)),
            "later": ops.cast(step > 1.0, dtype=step.dtype),
            "shrink": 1.0 / (1.0 + lr * group["weight_decay"]),
        }

    def update(
        self,
        group: Group,
        scales: Mapping[str, Tensor],
        state: dict[str, Tensor],
        x: Tensor,
        grad: Tensor,
    ) -> Tensor:
        first, second, third = group["betas"]
        change = (grad - state["previous"]) * scales["later"]
        ahead = grad + change * second
        mean = state["exp_avg"] * first + grad * (1.0 - first)
        difference = state["exp_avg_diff"] * second + change * (1.0 - second)
        square = state["exp_avg_sq"] * third + ahead * ahead * (1.0 - third)
        state.update(
            exp_avg=mean, exp_avg_diff=difference, exp_avg_sq=square, previous=grad
        )
        moved = mean * scales["mean"] + difference * scales["difference"]
        x = x - moved / (ops.sqrt(square) * scales["root"] + group["eps"])
        return x * scales["shrink"] if group["weight_decay"] else x

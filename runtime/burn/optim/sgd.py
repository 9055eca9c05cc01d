"""Stochastic gradient descent with momentum, and Lion."""

from collections.abc import Mapping
from typing import Unpack

from burn import ops
from burn.optim.groups import Group, Parameters
from burn.optim.optimizer import Common, Optimizer
from burn.tensor import Tensor


class SGD(Optimizer):
    """Stochastic gradient descent with PyTorch's momentum and weight decay.

    Raises:
        ValueError: ``nesterov`` without momentum or with dampening, or as
            :class:`~burn.optim.Optimizer`.
    """

    slots = ("momentum_buffer",)

    def __init__(
        self,
        parameters: Parameters,
        lr: float = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        **common: Unpack[Common],
    ) -> None:
        options = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
        }
        super().__init__(parameters, options, **common)
        for group in self.groups:
            if group["nesterov"] and (group["momentum"] <= 0 or group["dampening"]):
                raise ValueError("expected momentum and no dampening with nesterov")

    def slots_of(self, group: Group) -> tuple[str, ...]:
        return self.slots if group["momentum"] else ()

    def scales(self, group: Group, lr: Tensor, step: Tensor) -> dict[str, Tensor]:
        scales = {"lr": lr}
        if group["momentum"] and group["dampening"]:
            # Dampening does not apply to the first gradient.
            share = 1.0 - group["dampening"]
            scales["share"] = ops.where(step > 1.0, share, 1.0 + 0.0 * step)
        return scales

    def update(
        self,
        group: Group,
        scales: Mapping[str, Tensor],
        state: dict[str, Tensor],
        x: Tensor,
        grad: Tensor,
    ) -> Tensor:
        grad = decayed(group, x, grad)
        momentum = group["momentum"]
        if momentum:
            share = grad * scales["share"] if "share" in scales else grad
            buffer = state["momentum_buffer"] * momentum + share
            state["momentum_buffer"] = buffer
            grad = grad + buffer * momentum if group["nesterov"] else buffer
        return x - grad * scales["lr"]


class Lion(Optimizer):
    """Lion (X. Chen et al., 2023): the sign of momentum, with decoupled weight
    decay.
    """

    slots = ("exp_avg",)

    def __init__(
        self,
        parameters: Parameters,
        lr: float = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
        **common: Unpack[Common],
    ) -> None:
        options = {"lr": lr, "betas": betas, "weight_decay": weight_decay}
        super().__init__(parameters, options, **common)

    def scales(self, group: Group, lr: Tensor, step: Tensor) -> dict[str, Tensor]:
        return {"lr": lr, "shrink": 1.0 - lr * group["weight_decay"]}

    def update(
        self,
        group: Group,
        scales: Mapping[str, Tensor],
        state: dict[str, Tensor],
        x: Tensor,
        grad: Tensor,
    ) -> Tensor:
        first, second = group["betas"]
        mean = state["exp_avg"]
        state["exp_avg"] = mean * second + grad * (1.0 - second)
        if group["weight_decay"]:
            x = x * scales["shrink"]
        return x - ops.sign(mean * first + grad * (1.0 - first)) * scales["lr"]


def decayed(group: Group, x: Tensor, grad: Tensor) -> Tensor:
    """Return the gradient plus that of the penalty ``weight_decay / 2 * x**2``."""
    decay = group["weight_decay"]
    return grad + x * decay if decay else grad

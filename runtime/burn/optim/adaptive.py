"""Optimizers that divide by a sum or mean of squared gradients."""

from collections.abc import Mapping
from typing import Unpack

from burn import ops
from burn.optim.groups import Group, Parameters
from burn.optim.optimizer import Common, Optimizer
from burn.optim.sgd import decayed
from burn.tensor import Tensor


class Adagrad(Optimizer):
    """Adagrad (J. Duchi et al., 2011) as in PyTorch."""

    slots = ("sum",)

    def __init__(
        self,
        parameters: Parameters,
        lr: float = 1e-2,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
        **common: Unpack[Common],
    ) -> None:
        options = {
            "lr": lr,
            "lr_decay": lr_decay,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "eps": eps,
        }
        super().__init__(parameters, options, **common)

    def initial(self, group: Group, slot: str) -> float:
        return float(group["initial_accumulator_value"])

    def scales(self, group: Group, lr: Tensor, step: Tensor) -> dict[str, Tensor]:
        return {"lr": lr / (1.0 + (step - 1.0) * group["lr_decay"])}

    def update(
        self,
        group: Group,
        scales: Mapping[str, Tensor],
        state: dict[str, Tensor],
        x: Tensor,
        grad: Tensor,
    ) -> Tensor:
        grad = decayed(group, x, grad)
        state["sum"] = state["sum"] + grad * grad
        eps: float = group["eps"]
        return x - grad * scales["lr"] / (ops.sqrt(state["sum"]) + eps)


class RMSprop(Optimizer):
    """RMSprop (G. Hinton, 2012), as in PyTorch; ``centered`` divides by deviations."""

    slots = ("square_avg", "momentum_buffer", "grad_avg")

    def __init__(
        self,
        parameters: Parameters,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
        **common: Unpack[Common],
    ) -> None:
        options = {
            "lr": lr,
            "alpha": alpha,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "centered": centered,
        }
        super().__init__(parameters, options, **common)

    def slots_of(self, group: Group) -> tuple[str, ...]:
        wanted = (True, group["momentum"], group["centered"])
        pairs = zip(self.slots, wanted, strict=True)
        return tuple(slot for slot, needed in pairs if needed)

    def scales(self, group: Group, lr: Tensor, step: Tensor) -> dict[str, Tensor]:
        return {"lr": lr}

    def update(
        self,
        group: Group,
        scales: Mapping[str, Tensor],
        state: dict[str, Tensor],
        x: Tensor,
        grad: Tensor,
    ) -> Tensor:
        grad = decayed(group, x, grad)
        alpha = group["alpha"]
        square = state["square_avg"] * alpha + grad * grad * (1.0 - alpha)
        state["square_avg"] = square
        if group["centered"]:
            mean = state["grad_avg"] * alpha + grad * (1.0 - alpha)
            state["grad_avg"] = mean
            square = square - mean * mean
        eps: float = group["eps"]
        scaled = grad / (ops.sqrt(square) + eps)
        if group["momentum"]:
            scaled = state["momentum_buffer"] * group["momentum"] + scaled
            state["momentum_buffer"] = scaled
        return x - scaled * scales["lr"]

"""Muon: momentum with orthogonalized updates, for matrices."""

import math
from collections.abc import Mapping
from typing import Unpack

from burn import ops
from burn.optim.groups import Group, Parameters
from burn.optim.optimizer import Common, Optimizer
from burn.tensor import Tensor


class Muon(Optimizer):
    """Muon (K. Jordan et al., 2024): momentum with orthogonalized updates.

    It supports matrices only; use :class:`~burn.optim.Combined` with another optimizer
    for vectors and embeddings. The iteration runs in the dtype of the gradient
    (PyTorch's in bfloat16). ``adjust_lr_fn`` is ``"original"``, which multiplies the
    rate by ``sqrt(max(1, rows / columns))``, or ``"match_rms_adamw"``.

    Raises:
        ValueError: a parameter is not a matrix, or as :class:`~burn.optim.Optimizer`.
    """

    slots = ("momentum_buffer",)

    def __init__(
        self,
        parameters: Parameters,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str = "original",
        **common: Unpack[Common],
    ) -> None:
        if adjust_lr_fn not in ("original", "match_rms_adamw"):
            raise ValueError(
                "expected adjust_lr_fn 'original' or 'match_rms_adamw', "
                f"got {adjust_lr_fn!r}"
            )
        options = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(parameters, options, **common)
        for path, box in self.parameters():
            if box.ndim != 2:
                raise ValueError(f"{path}: expected a matrix, got {list(box.shape)}")

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
        momentum = group["momentum"]
        buffer = state["momentum_buffer"] * momentum + grad * (1.0 - momentum)
        state["momentum_buffer"] = buffer
        ahead = grad * (1.0 - momentum) + buffer * momentum
        direction = _orthogonal(group, ahead if group["nesterov"] else buffer)
        if group["weight_decay"]:
            x = x * scales["shrink"]
        return x - direction * (scales["lr"] * _ratio(group, x.shape))


def _ratio(group: Group, shape: tuple[int, ...]) -> float:
    rows, columns = shape
    if group["adjust_lr_fn"] == "original":
        return math.sqrt(max(1.0, rows / columns))
    return 0.2 * math.sqrt(max(rows, columns))


def _orthogonal(group: Group, x: Tensor) -> Tensor:
    """Return the matrix with singular values near 1, by Newton-Schulz iterations."""
    a, b, c = group["ns_coefficients"]
    turned = x.shape[0] > x.shape[1]
    if turned:
        x = x.mT
    x = x / ops.maximum(ops.sqrt(ops.sum(x * x)), group["eps"])
    for _ in range(group["ns_steps"]):
        gram = x @ x.mT
        x = x * a + (gram * b + (gram @ gram) * c) @ x
    return x.mT if turned else x

"""Dynamic loss scaling for float16 gradients."""

from collections.abc import Mapping
from typing import Any

from burn import ops
from burn.backend.autodiff import Gradients
from burn.box import Box
from burn.dtypes import float32
from burn.nn.module import Module
from burn.optim.state import Stateful, Values, device_of, filled, fitted
from burn.tensor import Tensor, innermost


class GradScaler(Stateful):
    """Multiplies the loss by a scale, so that small gradients are not 0 in float16.

    A step with an infinite or NaN gradient is to be skipped; it multiplies the scale by
    ``backoff_factor``. After ``growth_interval`` steps without one the scale is
    multiplied by ``growth_factor``. Names and defaults are those of
    ``torch.amp.GradScaler``. ::

        with nn.autocast("fp16"):
            value = loss.cross_entropy(model(x), y)
        gradients = scaler.unscale(scaler.scale(value).backward())
        if scaler.update(gradients):
            opt.step(gradients)

    Raises:
        ValueError: a factor or the interval is out of its range.
    """

    def __init__(
        self,
        module: Module,
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
    ) -> None:
        if not init_scale > 0.0 or not growth_factor > 1.0:
            raise ValueError(
                "expected init_scale > 0 and growth_factor > 1, got "
                f"{init_scale} and {growth_factor}"
            )
        if not 0.0 < backoff_factor < 1.0 or growth_interval < 1:
            raise ValueError(
                "expected backoff_factor in (0, 1) and growth_interval >= 1, got "
                f"{backoff_factor} and {growth_interval}"
            )
        self.growth_factor, self.backoff_factor = growth_factor, backoff_factor
        self.growth_interval = growth_interval
        device = device_of(next(box for _, box in module.parameters()))
        self._scale = Box(filled((), init_scale, float32, device))
        self._growth = Box(filled((), 0.0, float32, device))

    @property
    def loss_scale(self) -> float:
        """The scale of the next step."""
        return float(self._scale)

    def scale(self, loss: Tensor) -> Tensor:
        """Return ``loss`` in float32, multiplied by the scale."""
        return ops.cast(loss, dtype=float32) * innermost(self._scale.value)

    def unscale(self, gradients: Mapping[Any, Tensor]) -> Gradients:
        """Return the gradients of the loss from those of the scaled loss."""
        factor = 1.0 / innermost(self._scale.value)
        return Gradients(
            {key: g * ops.cast(factor, dtype=g.dtype) for key, g in gradients.items()}
        )

    def update(self, gradients: Mapping[Any, Tensor]) -> bool:
        """Update the scale, and return whether all gradients are finite."""
        scale = innermost(self._scale.value)
        if _has_overflow(gradients):
            self._scale.set(scale * self.backoff_factor)
            self._growth.set(innermost(self._growth.value) * 0.0)
            return False
        count = innermost(self._growth.value) + 1.0
        grows = count >= float(self.growth_interval)
        self._scale.set(ops.where(grows, scale * self.growth_factor, scale))
        self._growth.set(ops.where(grows, count * 0.0, count))
        return True

    def state_dict(self) -> dict[str, Tensor]:
        """Return the scale, and the number of steps since it changed."""
        return {key: box.value.detach() for key, box in self._boxes().items()}

    def fitted_state(self, state: Mapping[str, Any]) -> Values:
        """Return the values that :meth:`load_state_dict` sets, with its errors."""
        return fitted(self._boxes(), state, "this scaler")

    def _boxes(self) -> dict[str, Box]:
        return {"scale": self._scale, "growth": self._growth}


def _has_overflow(gradients: Mapping[Any, Tensor]) -> bool:
    """Return whether an element is infinite or NaN; a plan branches on the result."""
    overflow: Tensor | None = None
    for gradient in map(innermost, gradients.values()):
        here = ops.any(ops.logical_or(ops.isinf(gradient), ops.isnan(gradient)))
        overflow = here if overflow is None else ops.logical_or(overflow, here)
    return overflow is not None and bool(overflow)

"""Dynamic loss scaling for float16 gradients."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from burn import ops
from burn.backend.autodiff import Gradients
from burn.box import Box, PassingReader, Reader, current_reader, reading
from burn.dtypes import float32
from burn.nn.module import Module
from burn.ops.logic import any_nonfinite
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

    The condition reads a value on the host, which waits for a CUDA device;
    :meth:`keeping_on_overflow` does not.

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
        has_overflow = _overflow(gradients)
        self._set(bool(has_overflow))
        return not has_overflow

    @contextmanager
    def keeping_on_overflow(self, gradients: Mapping[Any, Tensor]) -> Iterator[None]:
        """Update the scale; boxes that are set in this context keep their values if a
        gradient is infinite or NaN.

        Nothing is read on the host.
        """
        has_overflow = _overflow(gradients)
        self._set(has_overflow)
        with reading(_Keeping(has_overflow, current_reader())):
            yield

    def _set(self, has_overflow: Tensor | bool) -> None:
        """Set the scale and the number of steps since it changed."""
        scale = innermost(self._scale.value)
        count = innermost(self._growth.value) + 1.0
        grows = count >= float(self.growth_interval)
        larger = ops.where(grows, scale * self.growth_factor, scale)
        later = ops.where(grows, 0.0, count)
        self._scale.set(ops.where(has_overflow, scale * self.backoff_factor, larger))
        self._growth.set(ops.where(has_overflow, 0.0, later))

    def state_dict(self) -> dict[str, Tensor]:
        """Return the scale, and the number of steps since it changed."""
        return {key: box.value.detach() for key, box in self._boxes().items()}

    def fitted_state(self, state: Mapping[str, Any]) -> Values:
        """Return the values that :meth:`load_state_dict` sets, with its errors."""
        return fitted(self._boxes(), state, "this scaler")

    def _boxes(self) -> dict[str, Box]:
        return {"scale": self._scale, "growth": self._growth}


class _Keeping(PassingReader):
    """A reader by which boxes keep their values where ``condition`` is true."""

    def __init__(self, condition: Tensor, outer: Reader | None) -> None:
        super().__init__(outer)
        self._condition = condition

    def write(self, box: Box, value: Tensor) -> Tensor:
        before = innermost(self.read(box))
        return super().write(box, ops.where(self._condition, before, innermost(value)))


def _overflow(gradients: Mapping[Any, Tensor]) -> Tensor:
    """Return whether an element is infinite or NaN, a bool []."""
    return any_nonfinite([innermost(g) for g in gradients.values()])

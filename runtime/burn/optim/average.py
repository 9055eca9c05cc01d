"""Moving averages of weights."""

from collections.abc import Mapping
from typing import Any

from burn import ops
from burn.box import Box
from burn.nn.module import Module
from burn.optim.state import Stateful, Values, device_of, fitted, scalar_box
from burn.tensor import Tensor, innermost


class EMA(Stateful):
    """Exponential moving averages of the parameters of a module.

    They start as a copy; ``update`` after each step moves them towards the weights by
    ``1 - decay``. With ``warmup`` the decay of step n is at most ``n / (n + 9)``, which
    reduces the influence of the first weights. Averages and the step count are boxes.
    """

    def __init__(
        self, module: Module, decay: float = 0.999, warmup: bool = False
    ) -> None:
        if not 0.0 <= decay < 1.0:
            raise ValueError(f"expected decay in [0, 1), got {decay}")
        self.module, self.decay, self.warmup = module, decay, warmup
        self._parameters = dict(module.parameters())
        self.count = scalar_box(0.0, device_of(next(iter(self._parameters.values()))))
        self.averages = {
            path: Box(innermost(box.held()) * 1.0)
            for path, box in self._parameters.items()
        }

    def update(self) -> None:
        """Move the averages towards the current weights."""
        count = innermost(self.count.value) + 1.0
        self.count.set(count)
        decay = count * 0.0 + self.decay
        if self.warmup:
            decay = ops.minimum(decay, count / (count + 9.0))
        for path, average in self.averages.items():
            x, mean = innermost(self._parameters[path].value), innermost(average.value)
            average.set(mean + (x - mean) * ops.cast(1.0 - decay, dtype=x.dtype))

    def averaged(self) -> Module:
        """Return a copy of the module for inference, with the averages as its
        parameters.
        """
        copy = self.module.valid()
        for path, box in copy.parameters():
            box.set(self.averages[path].value.detach())
        return copy

    def state_dict(self) -> dict[str, Tensor]:
        """Return the averages by parameter path, and the step count under ``step``."""
        state = {path: box.value.detach() for path, box in self.averages.items()}
        return {"step": self.count.value.detach(), **state}

    def fitted_state(self, state: Mapping[str, Any]) -> Values:
        """Return the values that :meth:`load_state_dict` sets, with its errors."""
        boxes = {"step": self.count, **self.averages}
        return fitted(boxes, state, "averages of this module")

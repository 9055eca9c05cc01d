"""A combination of several optimizers."""

from collections.abc import Mapping
from typing import Any

from burn.backend.base import Backend
from burn.box import Box
from burn.optim.groups import Group
from burn.optim.optimizer import Optimizer
from burn.optim.state import Stateful, Values
from burn.tensor import Tensor


class Combined(Stateful):
    """Optimizers of different parameters that are stepped together, as Muon and AdamW.

    ``optim.Combined(optim.Muon(matrices), optim.AdamW(others))``; a schedule sets the
    rates of all. Each clips by the norm of its own gradients.

    Raises:
        ValueError: two optimizers share a parameter, or there is no optimizer.
    """

    def __init__(self, *optimizers: Optimizer) -> None:
        paths = [path for each in optimizers for path, _ in each.parameters()]
        twice = sorted({path for path in paths if paths.count(path) > 1})
        if twice or not optimizers:
            raise ValueError(
                f"expected optimizers of different parameters, got {twice}"
            )
        self.optimizers = optimizers

    @property
    def groups(self) -> list[Group]:
        """The groups of all optimizers."""
        return [group for each in self.optimizers for group in each.groups]

    def step(self, gradients: Mapping[Any, Tensor]) -> None:
        """Update the parameters of each optimizer."""
        for each in self.optimizers:
            each.step(gradients)

    def to(self, backend: Backend) -> None:
        """Move the state to the device of ``backend``."""
        for each in self.optimizers:
            each.to(backend)

    def boxes(self) -> dict[str, Box]:
        """Return the state that a step changes, except parameters, by state key."""
        return {
            f"{number}.{key}": box
            for number, each in enumerate(self.optimizers)
            for key, box in each.boxes().items()
        }

    def state_dict(self) -> dict[str, Tensor]:
        """Return the states, with the index of the optimizer as the prefix of keys."""
        return {
            f"{number}.{key}": value
            for number, each in enumerate(self.optimizers)
            for key, value in each.state_dict().items()
        }

    def fitted_state(self, state: Mapping[str, Any]) -> Values:
        """Return the values that :meth:`load_state_dict` sets, with its errors."""
        parts: list[dict[str, Any]] = [{} for _ in self.optimizers]
        for key, value in state.items():
            number, _, name = key.partition(".")
            if not number.isdecimal() or int(number) >= len(parts):
                raise ValueError(
                    f"expected the state of {len(parts)} optimizers, got the key {key}"
                )
            parts[int(number)][name] = value
        values: Values = {}
        for each, part in zip(self.optimizers, parts, strict=True):
            values |= each.fitted_state(part)
        return values

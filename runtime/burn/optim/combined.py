"""Several optimisers as one."""

from collections.abc import Mapping
from typing import Any

from burn.backend.base import Backend
from burn.box import Box
from burn.optim.optimizer import Group, Optimizer
from burn.tensor import Tensor


class Combined:
    """Optimisers of different parameters, stepped together, as Muon beside AdamW.

    ``optim.Combined(optim.Muon(matrices), optim.AdamW(others))``; a schedule sets the
    rates of all. Each clips by the norm of its own gradients.

    Raises:
        ValueError: two of them have a parameter in common, or there is none.
    """

    def __init__(self, *optimizers: Optimizer) -> None:
        paths = [path for each in optimizers for path, _ in each.parameters()]
        twice = sorted({path for path in paths if paths.count(path) > 1})
        if twice or not optimizers:
            raise ValueError(
                f"expected optimisers of different parameters, got {twice}"
            )
        self.optimizers = optimizers

    @property
    def groups(self) -> list[Group]:
        """The groups of all optimisers."""
        return [group for each in self.optimizers for group in each.groups]

    def step(self, gradients: Mapping[Any, Tensor]) -> None:
        """Let each optimiser change its parameters."""
        for each in self.optimizers:
            each.step(gradients)

    def to(self, backend: Backend) -> None:
        """Move the state to the device of ``backend``."""
        for each in self.optimizers:
            each.to(backend)

    def boxes(self) -> dict[str, Box]:
        """Everything that a step changes besides parameters, by key of the state."""
        return {
            f"{number}.{key}": box
            for number, each in enumerate(self.optimizers)
            for key, box in each.boxes().items()
        }

    def state_dict(self) -> dict[str, Tensor]:
        """The states, with the number of the optimiser before each key."""
        return {
            f"{number}.{key}": value
            for number, each in enumerate(self.optimizers)
            for key, value in each.state_dict().items()
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take the states of :meth:`state_dict`."""
        for number, each in enumerate(self.optimizers):
            head = f"{number}."
            each.load_state_dict(
                {
                    k.removeprefix(head): v
                    for k, v in state.items()
                    if k.startswith(head)
                }
            )

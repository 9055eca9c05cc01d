"""One class of a random program, and the trial of its statements on two sizes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

#: Elements and magnitudes beyond which a statement is dropped.
LARGEST_TENSOR, LARGEST_VALUE = 20_000, 50.0
#: The standard deviation, relative to the largest element, of values that are more than
#: rounding.
SMALLEST_SPREAD = 1e-2
LONGEST_RANK = 5
#: What statements raise that do not fit their operands.
FAILURES = (
    *(RuntimeError, ValueError, TypeError, IndexError, AssertionError),
    *(NotImplementedError, AttributeError, KeyError),
)
#: The tensors of a program by name.
Values = dict[str, Any]


@dataclass
class Body:
    """One class: the lines of ``__init__`` and ``forward``, and its values.

    ``values`` are those of the two sizes of inputs. ``module`` has the layers.
    """

    name: str
    parameters: tuple[str, ...]
    values: tuple[Values, Values]
    module: Any = field(default_factory=lambda: nn.Module().eval())
    init: list[str] = field(default_factory=list)
    forward: list[str] = field(default_factory=list)
    result: str = "x"

    def source(self) -> str:
        """Return the text of the class."""
        lines = [f"class {self.name}(nn.Module):", "    def __init__(self):"]
        lines += ["        super().__init__()", *(f"        {s}" for s in self.init)]
        lines += ["", f"    def forward(self, {', '.join(self.parameters)}):"]
        for statement in (*self.forward, f"return {self.result}"):
            lines += [f"        {line}" for line in statement.splitlines()]
        return "\n".join(lines) + "\n\n\n"

    def floats(self) -> list[str]:
        """Return the names of the float tensors, the latest last."""
        return [n for n, v in self.values[0].items() if v.is_floating_point()]

    def free_name(self, stem: str) -> str:
        """Return the name of a new layer."""
        taken = {name for name, _ in self.module.named_children()}
        taken |= {name for name, _ in self.module.named_parameters()}
        return next(n for k in range(99) if (n := f"{stem}{k or ''}") not in taken)

    def add(self, layer: str, init: str, text: str, target: str, space: Values) -> bool:
        """Add a statement if both sizes of its result can be used.

        ``init`` makes the attribute ``layer``, both "" without one. ``space`` has the
        names that programs import.
        """
        results = self._results(init, text, target, space)
        is_kept = len(results) == len(self.values) and all(map(is_usable, results))
        if not is_kept or results[0].dim() != results[1].dim():
            if layer and hasattr(self.module, layer):
                delattr(self.module, layer)
            return False
        self.init += [init] * bool(init)
        self.forward.append(text)
        for values, result in zip(self.values, results, strict=True):
            values.pop(target, None)
            values[target] = result
        return True

    def _results(
        self, init: str, text: str, target: str, space: Mapping[str, Any]
    ) -> list[Any]:
        names = {**space, "self": self.module}
        results = []
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                exec(init, names)
                self.module.eval()
                for values in self.values:
                    copies = {name: value.clone() for name, value in values.items()}
                    local = copies | names
                    exec(text, local)
                    results.append(local[target])
            except FAILURES:
                return []
        return results


def is_usable(value: Any) -> bool:
    """Return whether a value is a tensor that can be compared with a reference."""
    if not isinstance(value, torch.Tensor) or value.is_complex():
        return False
    if not 0 < value.numel() <= LARGEST_TENSOR or not 0 < value.dim() <= LONGEST_RANK:
        return False
    if not value.is_floating_point():
        return True
    largest = float(value.abs().max())
    is_varied = value.numel() == 1 or float(value.std()) > SMALLEST_SPREAD * largest
    return value.dtype == torch.float32 and is_varied and largest < LARGEST_VALUE

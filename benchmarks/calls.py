"""Measures what one eager operation, and the check of an input, cost on 16 elements.

python -m benchmarks.calls
"""

from __future__ import annotations

import timeit
from collections.abc import Callable
from typing import Any

import numpy as np

import burn
from benchmarks.cases import print_table
from burn import nn

CALLS = 20000


class Unchecked(nn.Module):
    """Returns its input."""

    def __call__(self, x: burn.Tensor) -> burn.Tensor:
        return x


class Checked(nn.Module):
    """Returns its input, which is checked as in generated modules."""

    @nn.check_inputs(x="float32[batch]")
    def __call__(self, x: burn.Tensor) -> burn.Tensor:
        return x


def main() -> None:
    """Print a table of microseconds."""
    array = np.random.default_rng(0).standard_normal(16).astype(np.float32)
    a = burn.tensor(array)
    untracked = a.to(burn.Autodiff(burn.Cpu()))
    tracked = untracked.require_grad()
    checked, unchecked = Checked(), Unchecked()
    calls: dict[str, Callable[[], Any]] = {
        "numpy.add": lambda: np.add(array, array),
        "a + b": lambda: a + a,
        "a + 1.5": lambda: a + 1.5,
        "a.reshape(4, 4)": lambda: a.reshape(4, 4),
        "a + b, Autodiff, not tracked": lambda: untracked + untracked,
        "a + b, Autodiff, tracked": lambda: tracked + tracked,
        "call of a module": lambda: unchecked(a),
        "call of a module, one input checked": lambda: checked(a),
    }
    rows = ([name, f"{microseconds(call):.2f}"] for name, call in calls.items())
    print_table(("", "us"), rows)


def microseconds(call: Callable[[], Any]) -> float:
    """The time of one call, the best of seven repetitions."""
    return min(timeit.repeat(call, number=CALLS, repeat=7)) / CALLS * 1e6


if __name__ == "__main__":
    main()

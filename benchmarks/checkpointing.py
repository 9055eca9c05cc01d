"""Measures the memory that gradients need, with and without checkpointing.

    python -m benchmarks.checkpointing

Eager memory is the peak of what Python and NumPy allocate during one forward and
backward pass, without the weights. Planned memory is the estimate that sizes the arena
of the compiled pass. Times are of the fastest of several passes on this machine.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np

import burn
from benchmarks.cases import print_table
from burn import Autodiff, Cpu, Tensor, nn, ops
from burn.backend.autodiff import Checkpointing
from burn.backend.cpu.bind.optimization import cpu_passes
from burn.plan.compiled import Compiled
from burn.plan.lifetimes import peak_bytes
from burn.plan.passes import run_passes

HEAD = ("network", "checkpointing", "eager MB", "eager s", "planned MB", "compiled s")
PASSES = 3


class Transformer(nn.Module):
    """Encoder layers of width 256, for ``[8, 128, 256]``."""

    def __init__(self, depth: int = 12) -> None:
        super().__init__()
        layers = [
            nn.TransformerEncoderLayer(
                *(256, 4, 1024), dropout=0.1, activation="gelu", batch_first=True
            )
            for _ in range(depth)
        ]
        self.blocks = nn.ModuleList(layers)

    def __call__(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        return x


class ConvNet(nn.Module):
    """Convolutions with batch norm and ReLU, for ``[8, 3, 64, 64]``."""

    def __init__(self, depth: int = 8, width: int = 32) -> None:
        super().__init__()
        widths = [3, *[width] * depth]
        pairs = zip(widths, widths[1:], strict=False)
        self.convs = nn.ModuleList(nn.Conv2d(i, o, 3, padding=1) for i, o in pairs)
        self.norms = nn.ModuleList(nn.BatchNorm2d(width) for _ in range(depth))

    def __call__(self, x: Tensor) -> Tensor:
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x = ops.relu(norm(conv(x)))
        return x


NETWORKS: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    "transformer, 12 blocks": (Transformer, (8, 128, 256)),
    "ConvNet, 8 blocks": (ConvNet, (8, 3, 64, 64)),
}


def main() -> None:
    """Print the table."""
    rows = []
    for name, (make, shape) in NETWORKS.items():
        rows.append((name, "none", *_measured(make, shape, "none", "")))
        rows.append((name, "balanced", *_measured(make, shape, "balanced", "")))
        if name.startswith("transformer"):
            figures = _measured(make, shape, "none", "blocks.*")
            rows.append((name, "nn.checkpoint of blocks", *figures))
    print_table(HEAD, rows)


def _measured(
    make: Callable[[], Any],
    shape: tuple[int, ...],
    checkpointing: Checkpointing,
    pattern: str,
) -> tuple[str, ...]:
    """Return the columns of a row after its name and kind."""
    nn.init.seed(0)
    model = make().to(Autodiff(Cpu(), checkpointing=checkpointing))
    if pattern:
        nn.checkpoint(model, pattern)
    values = np.random.default_rng(0).standard_normal(shape, np.float32)
    x = burn.tensor(values)

    def gradients(x: Tensor) -> Any:
        return (model(x) ** 2).mean().backward().by_name(model)

    gradients(x)
    eager = (_traced_peak(gradients, x), _fastest(gradients, x))
    compiled = Compiled(gradients)
    compiled(x)
    planned = (_planned_peak(compiled, values), _fastest(compiled, x))
    return tuple(
        text
        for size, seconds in (eager, planned)
        for text in (f"{size / 1e6:.0f}", f"{seconds:.3f}")
    )


def _traced_peak(function: Callable[[Tensor], Any], x: Tensor) -> int:
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        function(x)
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def _planned_peak(compiled: Any, values: np.ndarray[Any, Any]) -> int:
    (recordings,) = compiled._plans.values()
    plan = recordings.executable.plan
    segment = run_passes(plan.root, plan.inputs, cpu_passes(plan))
    return peak_bytes(segment, [values], set())


def _fastest(function: Callable[[Tensor], Any], x: Tensor) -> float:
    times = []
    for _ in range(PASSES):
        start = time.perf_counter()
        function(x)
        times.append(time.perf_counter() - start)
    return min(times)


if __name__ == "__main__":
    main()

"""Compares gradients of plans with those of eager calls, for the networks of training.

    python -m benchmarks.gradients [--only NAME]

Worst is the largest difference of an element, relative to the largest of its tensor
(or to a hundredth of the largest of all: the gradient of a key's bias is zero but for
rounding). Norm is that of all differences, relative to that of all gradients. The last
two are the same for eager calls by oneDNN and by NumPy.

Whether a ReLU lets an element pass, and which one a max pooling takes, is decided by
the last digit for some of millions, and gradients jump there. So networks are compared
as they are and, to see rounding alone, with softplus and means in place of those.
"""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import numpy as np

import burn
from benchmarks.cases import print_table
from benchmarks.training_cases import CASES
from benchmarks.training_ours import NETWORKS, loss_of
from burn import Autodiff, Cpu, ops
from burn.backend.cpu.onednn.binding import engine

HEAD = ("network", "variant", "tensors", "worst", "norm", "NumPy's worst", "norm")
SMOOTH = {"relu": ops.softplus, "max_pool": ops.avg_pool}
#: Tensors that are smaller than this part of the largest are not looked at alone.
SMALL = 1e-2


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="", help="part of the names of networks")
    options = parser.parse_args()
    names = [name for name in NETWORKS if options.only in name]
    print_table(HEAD, (row for name in names for row in rows(name)))


def rows(name: str) -> list[tuple[str, ...]]:
    """A network as it is, and smooth."""
    results = []
    variants: dict[str, dict[str, Any]] = {"as it is": {}, "smooth": SMOOTH}
    for variant, others in variants.items():
        with ExitStack() as stack:
            for op, other in others.items():
                stack.enter_context(patch.object(ops, op, other))
            eager, compiled, numpys = gradients(name)
        against = [*differences(compiled, eager), *differences(eager, numpys)]
        results.append((name, variant, str(len(eager)), *(f"{n:.1e}" for n in against)))
    return results


def gradients(name: str) -> tuple[list[Any], ...]:
    """Those of eager calls, of a plan, and of eager calls by NumPy."""
    net, case = NETWORKS[name]().to(Autodiff(Cpu())), CASES[name]
    x, target = (burn.from_numpy(array) for array in case.batch())

    def step(x: Any, target: Any) -> list[Any]:
        grads = loss_of(net, x, target).backward()
        results = [grads[box].detach() for _, box in net.parameters()]
        for (_, box), grad in zip(net.parameters(), results, strict=True):
            box.set(box.value.detach() - grad * 0.0)  # all calls see the same weights
        return results

    plan = burn.compile(step)
    for _ in range(2):  # the first call records
        compiled = plan(x, target)
    eager = step(x, target)
    with engine.numpy_only():
        numpys = step(x, target)
    return tuple([g.numpy() for g in results] for results in (eager, compiled, numpys))


def differences(result: list[Any], expected: list[Any]) -> tuple[float, float]:
    """The worst of an element, and the norm of all, both relative."""
    pairs = list(zip(result, expected, strict=True))
    least = SMALL * max(float(np.abs(b).max()) for b in expected)
    worst = max(
        float(np.abs(a - b).max()) / max(float(np.abs(b).max()), least)
        for a, b in pairs
    )
    apart = sum(float(np.sum((a - b) ** 2.0)) for a, b in pairs)
    whole = sum(float(np.sum(b**2.0)) for b in expected)
    return worst, (apart / whole) ** 0.5


if __name__ == "__main__":
    main()

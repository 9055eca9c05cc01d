"""Weights of an imported model, trained and loaded back into PyTorch's module.

    python -m tests.export.round_trip [PATTERN ...]

Each architecture of ``tests/wild/gradients.py`` is exported to ``.pt2`` and traced to
TorchScript, imported, and trained for one step. ``load_state_dict(strict=True)`` of
the PyTorch module gets the result, and both are called again. "As the file itself" are
those whose own program has a state that the module refuses, too: TorchScript keeps
buffers with ``persistent=False`` as others.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from burn import Autodiff, Cpu, optim, train
from tests.wild.compare import Array, is_right, largest_error, to_array
from tests.wild.entry import Task
from tests.wild.exporters import export_case, output_arrays, randomize, seeded
from tests.wild.generated import Generated, import_exported, keep_statistics
from tests.wild.gradients import gradient_tasks

FORMATS = ("pt2", "torchscript")


def train_once(generated: Generated, arrays: Sequence[Array]) -> Any:
    """Return the model after one step of training, for inference."""
    model = generated.load(Autodiff(Cpu()))
    keep_statistics(model)

    @train.step(model, optim.SGD(model, lr=1e-3, clip_norm=1.0), compiled=False)
    def step() -> Any:
        return generated.scalar(model, arrays)

    step()
    return model


def load_strictly(module: Any, state: dict[str, Any]) -> str:
    """Return why PyTorch refuses the keys of a state, "" if it does not."""
    try:
        module.load_state_dict(state, strict=True)
    except RuntimeError as error:
        return " ".join(str(error).split()[6:])[:240]
    return ""


def compare_round_trip(task: Task, folder: Path) -> str:
    """Return "right", or how the round trip of a file fails."""
    with seeded():
        case = task.entry.build()
    case.module.eval()
    randomize(case.module)
    before = {key: to_array(v).copy() for key, v in case.module.state_dict().items()}
    exported = export_case(case, task, folder)
    generated = import_exported(exported.path, folder)
    arrays = [to_array(case.inputs[k]) for k in exported.input_positions]
    model = train_once(generated, arrays)
    state = {k: torch.from_numpy(v.numpy()) for k, v in model.state_dict().items()}
    refusal = load_strictly(case.module, state)
    if refusal:
        is_own = load_strictly(case.module, exported.module.state_dict())
        return f"{'as the file itself: ' if is_own else ''}{refusal}"
    after = case.module.state_dict()
    if all(np.array_equal(before[key], to_array(after[key])) for key in before):
        return "nothing was trained"
    with torch.no_grad():
        expected = output_arrays(case.module(*case.inputs))
    actual = generated.call(model.valid(), arrays)
    largest = largest_error(actual, expected)
    return "right" if is_right(largest) else f"results differ by {largest:.0e}"


def main() -> None:
    """Print a line for each file, and how many are right."""
    parser = argparse.ArgumentParser()
    parser.add_argument("patterns", nargs="*", default=["*"])
    tasks = gradient_tasks(parser.parse_args().patterns, FORMATS)
    right = 0
    for number, task in enumerate(tasks, 1):
        with tempfile.TemporaryDirectory() as folder:
            try:
                outcome = compare_round_trip(task, Path(folder))
            except (RuntimeError, ValueError, TypeError) as error:
                outcome = f"{type(error).__name__}: {str(error)[:200]}"
        right += outcome == "right"
        print(f"[{number}/{len(tasks)}] {task.key}: {outcome}", flush=True)
    print(f"{right} of {len(tasks)} files are right")
    sys.exit(right != len(tasks))


if __name__ == "__main__":
    main()

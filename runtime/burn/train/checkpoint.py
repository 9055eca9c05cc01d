"""The whole state of training in one file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from burn.box import Box
from burn.nn.module import Module
from burn.record import open_record, write_record
from burn.tensor import from_numpy


def save_checkpoint(step: Any, path: str | Path) -> None:
    """Write the state of a :class:`~burn.train.Step`, whole or not at all."""
    tensors = {f"model.{key}": box.numpy() for key, box in step.model.boxes()}
    tensors |= _prefixed("optimizer", step.optimizer.state_dict())
    for name in ("schedule", "ema"):
        part = getattr(step, name)
        if part is not None:
            tensors |= _prefixed(name, part.state_dict())
    tensors |= _prefixed("random", random_states(step.model))
    if step.position:
        tensors |= _prefixed("accumulated", step.sums)
    write_record(path, tensors.items(), {"position": str(step.position)})


def load_checkpoint(step: Any, path: str | Path) -> None:
    """Set the state of a :class:`~burn.train.Step` from ``path``."""
    record = open_record(path, mmap=False)
    parts: dict[str, dict[str, Any]] = {}
    for key in record:
        kind, _, name = key.partition(".")
        parts.setdefault(kind, {})[name] = np.array(record[key])
    expected = {"model", "optimizer"}
    expected |= {
        name for name in ("schedule", "ema") if getattr(step, name) is not None
    }
    optional = {"random", "accumulated"}
    if parts.keys() - optional != expected:
        raise ValueError(
            f"{path}: expected the state of {sorted(expected)}, got {sorted(parts)}"
        )
    states = random_states(step.model)
    if states.keys() != parts.get("random", {}).keys():
        raise ValueError(f"{path}: expected random states {sorted(states)}")
    boxes = dict(step.model.boxes())
    if boxes.keys() != parts["model"].keys():
        differing = sorted(boxes.keys() ^ parts["model"].keys())
        raise ValueError(
            f"{path}: expected the weights of the model; {differing} differ"
        )
    step.optimizer.load_state_dict(parts["optimizer"])
    for name in expected - {"model", "optimizer"}:
        getattr(step, name).load_state_dict(parts[name])
    _set(boxes, parts["model"])
    _set(states, parts.get("random", {}))
    position = int(record.metadata.get("position", "0"))
    zeros = {key: np.zeros(box.shape, box.dtype) for key, box in step.sums.items()}
    _set(step.sums, {**zeros, **parts.get("accumulated", {})})
    step.position = position


def random_states(module: Module) -> dict[str, Box]:
    """The boxes of a module that are in no record, by path: keys of random numbers."""
    return {
        f"{path}.{name}" if path else name: box
        for path, part in module.modules()
        for name, box in part.children()
        if isinstance(box, Box) and not box.recorded
    }


def _prefixed(prefix: str, state: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{prefix}.{key}": value.numpy() for key, value in state.items()}


def _set(boxes: Mapping[str, Box], arrays: Mapping[str, Any]) -> None:
    for key, array in arrays.items():
        boxes[key].set(from_numpy(array))

"""The whole state of training in one file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from burn.box import Box
from burn.nn.module import Module
from burn.optim.state import Values, assign, fitted
from burn.record import open_record, write_record

#: Parts of a checkpoint that are omitted if they are empty.
OPTIONAL = {"random", "accumulated"}


def save_checkpoint(
    step: Any, path: str | Path, *, metadata: Mapping[str, str] | None = None
) -> None:
    """Write the state of a :class:`~burn.train.Step` atomically.

    ``metadata`` is that of a learner.
    """
    state = {f"model.{key}": box.numpy() for key, box in step.model.boxes()}
    for name, part in _parts(step):
        state |= _prefixed(name, part.state_dict())
    state |= _prefixed("random", random_states(step.model))
    accumulated = {path: step.sums[path] for path in sorted(step.accumulated)}
    state |= _prefixed("accumulated", accumulated)
    position = {"position": str(step.position)}
    write_record(path, state.items(), {**position, **(metadata or {})})


def load_checkpoint(step: Any, path: str | Path) -> Mapping[str, str]:
    """Set the state of a :class:`~burn.train.Step` from ``path``, atomically.

    Return the metadata, for a learner.
    """
    record = open_record(path, mmap=False)
    parts: dict[str, dict[str, Any]] = {}
    for key in record:
        kind, _, name = key.partition(".")
        parts.setdefault(kind, {})[name] = record[key]
    expected = {"model", *(name for name, _ in _parts(step))}
    if parts.keys() - OPTIONAL != expected - OPTIONAL:
        raise ValueError(
            f"{path}: expected the state of {sorted(expected)}, got {sorted(parts)}"
        )
    try:
        values = _fitted(step, parts)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    assign(values)
    if step.schedule is not None:
        step.schedule.update_rates()
    step.position = int(record.metadata.get("position", "0"))
    step.accumulated = set(parts.get("accumulated", ()))
    step.reset_plans()
    return record.metadata


def _parts(step: Any) -> Iterator[tuple[str, Any]]:
    """Yield the components of a step with a ``state_dict``, by name in a checkpoint."""
    for name in ("optimizer", "schedule", "ema", "scaler"):
        part = getattr(step, name, None)
        if part is not None:
            yield name, part


def _fitted(step: Any, parts: Mapping[str, Mapping[str, Any]]) -> Values:
    """Return the new value of every box, without setting any.

    Raises:
        ValueError: a key, a shape or a dtype differs from the step.
    """
    values = fitted(dict(step.model.boxes()), parts["model"], "the model")
    states, sums = random_states(step.model), step.sums
    values |= fitted(states, parts.get("random", {}), "random numbers")
    accumulated = parts.get("accumulated", {})
    values |= fitted(sums, accumulated, "accumulated gradients", optional=sums)
    for name, part in _parts(step):
        if name in parts:
            values |= part.fitted_state(parts[name])
    return values


def random_states(module: Module) -> dict[str, Box]:
    """Return the boxes that are in no record, by path: random keys."""
    return {
        f"{path}.{name}" if path else name: box
        for path, part in module.modules()
        for name, box in part.children()
        if isinstance(box, Box) and not box.recorded
    }


def _prefixed(prefix: str, state: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{prefix}.{key}": value.numpy() for key, value in state.items()}

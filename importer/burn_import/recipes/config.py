"""What a state dict does not say: the numbers of a ``config.json``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any, TypeVar

from burn.record.errors import shown
from burn_ir import InvalidModel, UnreadableFile

T = TypeVar("T", int, float, str, bool)
_LARGEST = 2**20


@dataclass(frozen=True)
class Config:
    """Numbers and names by key, as Hugging Face writes them.

    ``assumed`` has what was taken as usual, because there is nothing at its key.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    assumed: dict[str, object] = field(default_factory=dict)
    name: str = ""

    def get(self, key: str, default: T) -> T:
        """The value at ``key``, of the type of ``default``.

        Raises:
            InvalidModel: it is of another type.
        """
        value = self.values.get(key)
        if value is None:
            self.assumed[self.name + key] = default
            return default
        if isinstance(default, float) and isinstance(value, int):
            value = float(value)
        if type(value) is not type(default):
            kind = type(default).__name__
            raise InvalidModel(f"config {shown(key)}: expected {kind}, got {value!r}")
        result: T = value
        return result

    def part(self, name: str) -> Config:
        """The configuration at ``name``; this one, where it has no such part."""
        values = self.values.get(name)
        inner = values if isinstance(values, dict) else self.values
        return Config(inner, self.assumed, f"{name}.")

    def positive(self, key: str, default: T) -> T:
        """The number at ``key``.

        Raises:
            InvalidModel: it is of another type, or not above 0.
        """
        value = self.get(key, default)
        if not isinstance(value, int | float) or not 0 < value < inf:
            raise InvalidModel(
                f"config {shown(key)}: expected a number above 0, got {value}"
            )
        return value

    @property
    def architectures(self) -> list[str]:
        """The names of the classes that the weights are of."""
        found = self.values.get("architectures")
        return [str(name) for name in found] if isinstance(found, list) else []

    @property
    def kind(self) -> str:
        """The name of the architecture, ``bert``, else ""."""
        return self.get("model_type", "") if "model_type" in self.values else ""

    @property
    def notes(self) -> tuple[str, ...]:
        """A sentence that says what was assumed, if anything was."""
        shown = ", ".join(f"{key} {value}" for key, value in self.assumed.items())
        return (f"Taken as usual, as nothing says otherwise: {shown}.",)[: len(shown)]


def read_config(path: Path) -> Config:
    """The configuration in a JSON file.

    Raises:
        UnreadableFile: it is none.
    """
    try:
        if path.stat().st_size > _LARGEST:
            raise UnreadableFile(f"{path.name}: expected a configuration, got more")
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UnreadableFile(f"{path.name}: expected JSON, got {error}") from error
    if not isinstance(content, dict):
        raise UnreadableFile(f"{path.name}: expected an object of JSON")
    return Config(content)

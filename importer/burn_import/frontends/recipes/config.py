"""Settings of a ``config.json`` that a state dict does not contain."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any, TypeVar

from burn.record.errors import shown
from burn_ir import InvalidModel, UnreadableFile, UnsupportedModel

T = TypeVar("T", int, float, str, bool)
_LARGEST = 2**20
_NAME = "config.json"


def config_path(weights: Path, config: str | None) -> Path:
    """Return the path ``config``, or that of the ``config.json`` beside weights."""
    return Path(config) if config else weights.with_name(_NAME)


class NotClaimed(UnsupportedModel):
    """Raised when weights and configuration do not determine a known model."""


@dataclass(frozen=True)
class Config:
    """The entries of a ``config.json``, with a record of those that were read.

    ``assumed`` maps missing keys to the defaults used instead. ``name`` is the path of
    a nested configuration, ``text_config.``; ``used`` holds the paths of all entries
    that were read, shared with nested configurations.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    assumed: dict[str, object] = field(default_factory=dict)
    name: str = ""
    used: set[str] = field(default_factory=set)

    def value(self, key: str) -> Any:
        """Return the JSON value at ``key``; None if it is missing."""
        self.used.add(self.name + key)
        return self.values.get(key)

    def get(self, key: str, default: T) -> T:
        """Return the value at ``key``, or ``default``, which determines the type.

        Raises:
            InvalidModel: the value has another type.
        """
        value = self.value(key)
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

    def required(self, key: str, default: T) -> T:
        """Return the value at ``key``; ``default`` determines only the type.

        Raises:
            NotClaimed: the key is missing.
            InvalidModel: the value has another type.
        """
        if self.value(key) is None:
            raise NotClaimed(
                f"the configuration has no {shown(self.name + key)}, and weights do "
                "not determine it"
            )
        return self.get(key, default)

    def part(self, name: str) -> Config:
        """Return the nested configuration at ``name``; this one if it has none."""
        values = self.value(name)
        if not isinstance(values, dict):
            return self
        path = f"{self.name}{name}."
        self.used.add(path)
        return Config(values, self.assumed, path, self.used)

    def unused(self) -> Iterator[tuple[str, Any]]:
        """Yield the paths and values of unread entries, including nested ones."""
        for key, value in self.values.items():
            path = self.name + key
            if f"{path}." in self.used and isinstance(value, dict):
                yield from Config(value, {}, f"{path}.", self.used).unused()
            elif path not in self.used:
                yield path, value

    def positive(self, key: str, default: T) -> T:
        """Return the number at ``key``, or ``default``.

        Raises:
            InvalidModel: the value has another type, or is not above 0.
        """
        value = self.get(key, default)
        if not isinstance(value, int | float) or not 0 < value < inf:
            raise InvalidModel(
                f"config {shown(key)}: expected a number above 0, got {value}"
            )
        return value

    @property
    def architectures(self) -> list[str]:
        """The class names of the model in Hugging Face's library."""
        names = self.value("architectures")
        return [str(name) for name in names] if isinstance(names, list) else []

    @property
    def kind(self) -> str:
        """The ``model_type`` (``bert``), or ""."""
        return self.get("model_type", "") if "model_type" in self.values else ""

    @property
    def notes(self) -> tuple[str, ...]:
        """A sentence about the assumed defaults, if there are any."""
        shown = ", ".join(f"{key} {value}" for key, value in self.assumed.items())
        return (f"Taken as usual, as nothing says otherwise: {shown}.",)[: len(shown)]


def read_config(path: Path) -> Config:
    """Return the configuration in a JSON file.

    Raises:
        UnreadableFile: the file is not a JSON object.
    """
    try:
        if path.stat().st_size > _LARGEST:
            raise UnreadableFile(
                f"{path.name}: expected a configuration of at most {_LARGEST} bytes"
            )
        content = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise UnreadableFile(
            f"cannot read the configuration {str(path)!r}: {error.strerror or error}",
            f"The configuration is the model's {_NAME}, in its repository.",
        ) from error
    except (ValueError, RecursionError) as error:
        raise UnreadableFile(f"{path.name}: expected JSON, got {error}") from error
    if not isinstance(content, dict):
        raise UnreadableFile(f"{path.name}: expected an object of JSON")
    return Config(content)

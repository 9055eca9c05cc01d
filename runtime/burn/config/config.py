"""The base class of configurations."""

from __future__ import annotations

import dataclasses
import json
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from burn.config.values import ConfigError, decode_fields, encode


class Config:
    """A base of frozen dataclasses that are saved beside checkpoints::

        @dataclass(frozen=True)
        class Training(Config):
            model: ModelConfig
            epochs: int = 10
            lr: float = 1e-4

        Training(ModelConfig(512)).save("run/config.json")
        config = Training.load("run/config.json").with_(epochs=3)

    Fields are bool, int, float, str, ``Path``, enums, ``Literal``, None, other
    dataclasses, and lists, tuples, ``dict[str, ...]`` and unions of these. Their types
    are checked when a file is read and by :meth:`with_`; ``__post_init__`` may check
    more and raises :class:`ConfigError`.
    """

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as dicts, lists, strings, numbers, booleans and None.

        Raises:
            ConfigError: a value cannot be converted.
        """
        fields: dict[str, Any] = encode(_checked(self), "")
        return fields

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        """Return the configuration for a dict in the format of :meth:`to_dict`.

        Fields with a default may be missing.

        Raises:
            ConfigError: a field is unknown, missing, or of another type.
        """
        config: Self = decode_fields(_checked(cls), fields, "")
        return config

    def with_(self, **changes: Any) -> Self:
        """Return a copy with other values of some fields.

        Fields of a nested configuration are separated by ``__``:
        ``config.with_(model__hidden=256)``.

        Raises:
            ConfigError: a field is unknown, or a value is of another type.
        """
        fields, nested = _own_values(self), dict[str, dict[str, Any]]()
        for name, value in changes.items():
            outer, is_nested, inner = name.partition("__")
            if is_nested and outer in fields:
                nested.setdefault(outer, {})[inner] = value
            else:
                fields[name] = value
        for name, inner_changes in nested.items():
            part = fields[name]
            if not isinstance(part, Config):
                raise ConfigError(
                    f"{name}: expected a Config to change {sorted(inner_changes)} of, "
                    f"got {type(part).__name__}"
                )
            try:
                fields[name] = part.with_(**inner_changes)
            except ConfigError as error:
                raise ConfigError(f"{name}.{error}") from error
        return type(self).from_dict(fields)

    def save(self, path: str | Path) -> None:
        """Write a JSON or TOML file, chosen by the suffix, atomically.

        TOML has no null: fields that are None are omitted, so their default must be
        None.

        Raises:
            ConfigError: a value cannot be written, or would be read back differently.
            ImportError: the suffix is ``.toml`` and tomli_w is not installed.
        """
        target, fields = Path(path), self.to_dict()
        if _is_toml(target):
            fields = _without_none(fields)
            text = _toml_writer().dumps(fields)
        else:
            text = json.dumps(fields, indent=2, ensure_ascii=False) + "\n"
        if type(self).from_dict(fields) != self:
            raise ConfigError(
                f"{path}: the file would not be read as the same configuration; is a "
                "field None that has another default, or NaN?"
            )
        partial = target.with_name(target.name + ".part")
        partial.write_text(text, "utf-8")
        os.replace(partial, target)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Return the configuration in a JSON or TOML file, chosen by the suffix.

        Raises:
            ConfigError: the file is not of that format, or a field is invalid.
        """
        source = Path(path)
        try:
            text = source.read_text("utf-8")
            fields = tomllib.loads(text) if _is_toml(source) else json.loads(text)
        except ValueError as error:  # of JSON, TOML and UTF-8
            raise ConfigError(f"{path}: {error}") from error
        try:
            return cls.from_dict(fields)
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}") from error


def _checked(config: Any) -> Any:
    if not dataclasses.is_dataclass(config):
        kind = config if isinstance(config, type) else type(config)
        raise TypeError(f"{kind.__name__}: expected @dataclass above the class")
    return config


def _own_values(config: Config) -> dict[str, Any]:
    fields = dataclasses.fields(_checked(config))
    return {item.name: getattr(config, item.name) for item in fields if item.init}


def _is_toml(path: Path) -> bool:
    if path.suffix not in (".json", ".toml"):
        raise ConfigError(f"{path}: expected a file .json or .toml")
    return path.suffix == ".toml"


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        items = value.items()
        return {key: _without_none(item) for key, item in items if item is not None}
    if isinstance(value, list):
        return [_without_none(item) for item in value]
    return value


def _toml_writer() -> Any:
    try:
        import tomli_w
    except ImportError as error:
        raise ImportError(
            "writing TOML needs tomli_w, which the extra installs: "
            "pip install 'burn-runtime[toml]'"
        ) from error
    return tomli_w

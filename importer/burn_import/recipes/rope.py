"""Rotary position embeddings: the angles of positions, and turning by them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from burn_import.recipes.config import Config
from burn_import.recipes.writer import Writer
from burn_ir import InvalidModel, UnsupportedModel
from burn_ir.types import Array


def frequencies(config: Config, size: int, usual: float = 1e4) -> Array:
    """The angle per position of each pair of a head's features, float32.

    ``usual`` is the base of their powers where no configuration says it.

    Raises:
        UnsupportedModel: they are scaled in a way that is not known.
    """
    settings = _settings(config)
    told = Config(settings, config.assumed)
    given = told if "rope_theta" in settings else config
    theta = given.positive("rope_theta", usual)
    inverse = 1.0 / theta ** (np.arange(0, size, 2, dtype=np.float64) / size)
    kind = settings.get("rope_type", settings.get("type", "default"))
    if kind == "linear":
        inverse = inverse / told.positive("factor", 1.0)
    elif kind == "llama3":
        inverse = _llama3(inverse, told)
    elif kind != "default":
        raise UnsupportedModel(f"expected a known scaling of angles, got {kind!r}")
    return inverse.astype(np.float32)


def _settings(config: Config) -> Mapping[str, Any]:
    """What older and newer configurations say of the angles."""
    for key in ("rope_parameters", "rope_scaling"):
        value = config.values.get(key)
        if isinstance(value, dict):
            return value
    return {}


def _llama3(inverse: Array, told: Config) -> Array:
    """Long waves are stretched, short ones kept, those between mixed."""
    factor = told.positive("factor", 8.0)
    low = told.positive("low_freq_factor", 1.0)
    high = told.positive("high_freq_factor", 4.0)
    if low >= high:
        raise InvalidModel(
            f"config 'high_freq_factor': expected more than {low}, got {high}"
        )
    length = told.positive("original_max_position_embeddings", 8192)
    waves = 2 * np.pi / inverse
    share = (length / waves - low) / (high - low)
    mixed = (1 - share) * inverse / factor + share * inverse
    result = np.where(waves > length / low, inverse / factor, inverse)
    between = (waves <= length / low) & (waves >= length / high)
    return np.where(between, mixed, result)


def angles(w: Writer, positions: str, inverse: Array) -> tuple[str, str]:
    """The cosines and sines ``[1, length, pairs]`` of positions ``[length]``."""
    column = w.op("Unsqueeze", w.op("Cast", positions, to=1), [0, 2])
    found = w.op("Mul", column, w.constant("inv_freq", inverse))
    return w.op("Cos", found, name="cos"), w.op("Sin", found, name="sin")


def turned(w: Writer, x: str, turn: tuple[str, str], name: str = "") -> str:
    """Heads ``[batch, heads, length, size]`` turned by the angles of their places."""
    return w.op("RotaryEmbedding", x, *turn, name=name)

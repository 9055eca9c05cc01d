"""Rotary position embeddings: angles of positions, and rotation of heads."""

from __future__ import annotations

import numpy as np

from burn_import.frontends.recipes.config import Config
from burn_import.frontends.recipes.graph_writer import RecipeWriter
from burn_import.frontends.recipes.text.rope_scaling import (
    dynamic,
    factors,
    long_sharpening,
    yarn,
    yarn_sharpening,
)
from burn_ir import InvalidModel, UnsupportedModel
from burn_ir.types import Array


def frequencies(
    config: Config, size: int, usual: float = 1e4, layer: str = ""
) -> Array:
    """Return the angle per position of each pair of a head's features, float32.

    ``usual`` is the default base of their powers. Scalings that depend on the length of
    the text are those for short texts.

    Raises:
        UnsupportedModel: the scaling is of an unknown kind.
    """
    scaling = _rotary_entries(config, layer)
    inverse = 1.0 / _base(config, scaling, usual) ** _powers(size)
    kind = _kind(scaling)
    if kind == "linear":
        inverse = inverse / scaling.positive("factor", 1.0)
    elif kind == "llama3":
        inverse = _llama3(inverse, scaling)
    elif kind == "yarn":
        inverse = yarn(
            inverse,
            _base(config, scaling, usual),
            scaling,
            _trained_length(config, scaling),
        )
    elif kind == "longrope":
        inverse = inverse / factors(scaling, "short_factor", size // 2)
    elif kind not in ("default", "dynamic"):
        raise UnsupportedModel(f"expected a known scaling of angles, got {kind!r}")
    return inverse.astype(np.float32)


def _powers(size: int) -> Array:
    return np.arange(0, size, 2, dtype=np.float64) / size


def _kind(scaling: Config) -> str:
    kind = scaling.value("type") or "default"
    kind = scaling.value("rope_type") or kind
    return "longrope" if kind == "su" else str(kind)


def _base(config: Config, scaling: Config, usual: float) -> float:
    source = scaling if scaling.value("rope_theta") is not None else config
    return source.positive("rope_theta", usual)


def _trained_length(config: Config, scaling: Config) -> int:
    """Return the maximum length in training, before angles were scaled."""
    key = "original_max_position_embeddings"
    for part in (scaling, config):
        if part.value(key) is not None:
            return part.positive(key, 1)
    return config.positive("max_position_embeddings", 2048)


def _rotary_entries(config: Config, layer: str = "") -> Config:
    """Return the rotary entries of older and newer configurations.

    Newer ones may have them by the type of the ``layer``.
    """
    for key in ("rope_parameters", "rope_scaling"):
        if isinstance(config.value(key), dict):
            part = config.part(key)
            return part.part(layer) if layer in part.values else part
    return Config({}, config.assumed)


def has_layer_types(config: Config) -> bool:
    """Return whether the rotary entries are given by layer type."""
    return "sliding_attention" in (config.value("rope_parameters") or {})


def _llama3(inverse: Array, scaling: Config) -> Array:
    """Scale low frequencies, keep high ones, and interpolate between them."""
    factor = scaling.positive("factor", 8.0)
    low = scaling.positive("low_freq_factor", 1.0)
    high = scaling.positive("high_freq_factor", 4.0)
    if low >= high:
        raise InvalidModel(
            f"config 'high_freq_factor': expected more than {low}, got {high}"
        )
    length = scaling.positive("original_max_position_embeddings", 8192)
    waves = 2 * np.pi / inverse
    share = (length / waves - low) / (high - low)
    mixed = (1 - share) * inverse / factor + share * inverse
    result = np.where(waves > length / low, inverse / factor, inverse)
    between = (waves <= length / low) & (waves >= length / high)
    return np.where(between, mixed, result)


def angles(
    w: RecipeWriter,
    positions: str,
    config: Config,
    size: int,
    usual: float = 1e4,
    layer: str = "",
) -> tuple[str, str]:
    """Return the cosines and sines ``[1, length, pairs]`` of positions ``[length]``.

    ``layer`` is the type of the layers that use them, for entries by layer type.
    """
    scaling = _rotary_entries(config, layer)
    kind, base, factor = _kind(scaling), _base(config, scaling, usual), 1.0
    if kind == "dynamic":
        most = config.positive("max_position_embeddings", 2048)
        grows = scaling.positive("factor", 1.0)
        inverse = dynamic(w, positions, _powers(size), base, grows, most)
    else:
        inverse = w.constant("inv_freq", frequencies(config, size, usual, layer))
    if kind == "yarn":
        factor = yarn_sharpening(scaling)
    if kind == "longrope":
        factor = long_sharpening(scaling, config, _trained_length(config, scaling))
        slow = base ** -_powers(size) / factors(scaling, "long_factor", size // 2)
        stored = w.constant("long_inv_freq", slow.astype(np.float32))
        is_long = w.op(
            "Greater", w.op("Shape", positions), _trained_length(config, scaling)
        )
        inverse = w.op("Where", is_long, stored, inverse)
    column = w.op("Unsqueeze", w.op("Cast", positions, to=1), [0, 2])
    products = w.op("Mul", column, inverse)
    table = [w.op("Cos", products, name="cos"), w.op("Sin", products, name="sin")]
    if factor != 1.0:
        table = [w.op("Mul", part, factor) for part in table]
    return table[0], table[1]


def rotate(w: RecipeWriter, x: str, table: tuple[str, str], name: str = "") -> str:
    """Rotate heads ``[batch, heads, length, size]`` by their positions' angles."""
    return w.op("RotaryEmbedding", x, *table, name=name)

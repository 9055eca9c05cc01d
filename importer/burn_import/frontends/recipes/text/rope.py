"""Rotary position embeddings: angles of positions, and rotation of heads."""

from math import ceil, floor, log, pi, sqrt

import numpy as np

from burn.record.errors import shown
from burn_import.frontends.recipes.config import Config
from burn_import.frontends.recipes.graph_writer import RecipeWriter
from burn_ir import InvalidModel, UnsupportedModel
from burn_ir.types import Array


def yarn(inverse: Array, base: float, scaling: Config, trained: int) -> Array:
    """Return frequencies, scaled if they turn less than once in ``trained`` tokens."""
    pairs = len(inverse)

    def pair_of(rotations: float) -> float:
        """Return the index of the pair with so many rotations in training."""
        return pairs * log(trained / (rotations * 2 * pi)) / log(base)

    low, high = (
        pair_of(scaling.positive(key, usual))
        for key, usual in (("beta_fast", 32.0), ("beta_slow", 1.0))
    )
    if scaling.get("truncate", True):
        low, high = floor(low), ceil(high)
    low, high = max(low, 0), min(high, 2 * pairs - 1)
    high = high + 0.001 if low == high else high
    stretched = np.clip((np.arange(pairs) - low) / (high - low), 0, 1)
    factor = scaling.positive("factor", 1.0)
    result: Array = inverse / factor * stretched + inverse * (1 - stretched)
    return result


def yarn_sharpening(scaling: Config) -> float:
    """Return YaRN's factor of cosines and sines, which scales the scores."""
    if scaling.value("attention_factor") is not None:
        return scaling.positive("attention_factor", 1.0)
    factor = scaling.positive("factor", 1.0)

    def attention_scale(multiplier: float) -> float:
        return 0.1 * multiplier * log(factor) + 1.0 if factor > 1 else 1.0

    names = ("mscale", "mscale_all_dim")
    if all([scaling.value(name) for name in names]):
        one, other = (attention_scale(scaling.positive(name, 1.0)) for name in names)
        return one / other
    return attention_scale(1.0)


def long_sharpening(scaling: Config, config: Config, trained: int) -> float:
    """Return LongRoPE's factor of cosines and sines."""
    if scaling.value("attention_factor") is not None:
        return scaling.positive("attention_factor", 1.0)
    if scaling.value("factor") is not None:
        factor = scaling.positive("factor", 1.0)
    else:
        factor = config.positive("max_position_embeddings", trained) / trained
    return sqrt(1 + log(factor) / log(trained)) if factor > 1 else 1.0


def factors(scaling: Config, key: str, pairs: int) -> Array:
    """Return LongRoPE's divisors, one for each frequency.

    Raises:
        InvalidModel: their number is not that of the frequencies.
    """
    values = scaling.value(key)
    entries = values if isinstance(values, list) else []
    numbers = [v for v in entries if isinstance(v, int | float) and v > 0]
    if len(numbers) != pairs or len(entries) != pairs:
        raise InvalidModel(
            f"config {shown(key)}: expected {pairs} numbers above 0, got "
            f"{shown(values)}"
        )
    return np.array(numbers, np.float64)


def dynamic(
    w: RecipeWriter,
    positions: str,
    powers: Array,
    base: float,
    factor: float,
    trained: int,
) -> str:
    """Return frequencies whose base grows with the length beyond ``trained``."""
    length = w.op("Max", w.op("Shape", positions), np.array([trained]))
    share = w.op("Mul", w.op("Cast", length, to=1), factor / trained)
    growth = w.op("Sub", share, factor - 1)
    last = 2 * len(powers) / (2 * len(powers) - 2)
    larger = w.op("Mul", w.op("Pow", growth, last), base)
    return w.op("Pow", larger, (-powers).astype(np.float32), name="inv_freq")


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

"""Scaling of rotary positions for texts longer than those of the first training.

YaRN (https://arxiv.org/abs/2309.00071) scales low frequencies and keeps high ones,
LongRoPE (https://arxiv.org/abs/2402.13753) has a factor for each; both also scale the
attention scores. Dynamic NTK increases the base with the length of the text.
"""

from __future__ import annotations

from math import ceil, floor, log, pi, sqrt

import numpy as np

from burn.record.errors import shown
from burn_import.frontends.recipes.config import Config
from burn_import.frontends.recipes.graph_writer import RecipeWriter
from burn_ir import InvalidModel
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

"""Examples of operators that draw at random. Seeds are given: laws compare bits."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.strategies.registry import Array, Draw, Example, case, extents, floats

#: Numbers of dtypes: float32, float16, float64.
KINDS = (1, 10, 11)


def seeded(draw: Draw, **values: Any) -> dict[str, Any]:
    """A seed, and some of the attributes."""
    attrs = {name: v for name, v in values.items() if draw(st.booleans())}
    return attrs | {"seed": draw(st.sampled_from([0.0, 3.0, 2.5, -7.0]))}


@case("RandomNormal")
def normal(draw: Draw, version: int) -> Example:
    shape = extents(draw)
    attrs = seeded(draw, mean=-2.0, scale=0.5, dtype=draw(st.sampled_from(KINDS)))
    return Example(attrs | {"shape": shape}, [])


@case("RandomUniform")
def uniform(draw: Draw, version: int) -> Example:
    shape = extents(draw)
    attrs = seeded(draw, low=-2.0, high=3.5, dtype=draw(st.sampled_from(KINDS)))
    return Example(attrs | {"shape": shape}, [])


@case("RandomNormalLike")
def normal_like(draw: Draw, version: int) -> Example:
    attrs = seeded(draw, mean=-2.0, scale=0.5, dtype=draw(st.sampled_from(KINDS)))
    return Example(attrs, [floats(draw, extents(draw))], smooth=False)


@case("RandomUniformLike")
def uniform_like(draw: Draw, version: int) -> Example:
    attrs = seeded(draw, low=-2.0, high=3.5, dtype=draw(st.sampled_from(KINDS)))
    return Example(attrs, [floats(draw, extents(draw))], smooth=False)


@case("Bernoulli")
def bernoulli(draw: Draw, version: int) -> Example:
    x = floats(draw, extents(draw), draw(st.sampled_from([np.float32, np.float64])))
    p = 1 / (1 + np.exp(-x))
    attrs = seeded(draw, dtype=draw(st.sampled_from([1, 6, 9, 11])))
    return Example(attrs, [p], smooth=False)


@case("Multinomial")
def multinomial(draw: Draw, version: int) -> Example:
    x = floats(draw, extents(draw, 2, 2, least=2))
    attrs = seeded(draw, sample_size=draw(st.integers(2, 9)), dtype=7)
    return Example(attrs, [x])


@case("Dropout", domain="burn")
def tracked_dropout(draw: Draw, version: int) -> Example:
    x = floats(draw, extents(draw), draw(st.sampled_from([np.float32, np.float64])))
    attrs = {"ratio": draw(st.sampled_from([0.0, 0.3, 1.0]))}
    return Example(attrs, [x], expected=[x])


@case("Dropout")
def dropout(draw: Draw, version: int) -> Example:
    x = floats(draw, extents(draw), draw(st.sampled_from([np.float32, np.float64])))
    outputs = draw(st.integers(1, 2))
    if version < 12:
        mask = np.ones(x.shape, bool if version >= 10 else x.dtype)
        attrs = {"ratio": 0.3} if draw(st.booleans()) else {}
        attrs |= {"is_test": 1} if version < 7 else {}
        return Example(attrs, [x], outputs, expected=[x, mask][:outputs])
    ratio = draw(st.sampled_from([None, 0.3, 0.0]))
    mode = draw(st.sampled_from([None, False, True]))
    operands: list[Array | None] = [
        x,
        None if ratio is None else np.array(ratio, x.dtype),
        None if mode is None else np.array(mode),
    ]
    seed = draw(st.integers(0, 5))
    expected = reference_dropout(x, 0.5 if ratio is None else ratio, mode, seed)
    return Example(
        {"seed": seed},
        operands,
        outputs,
        always_stored=frozenset(draw(st.sampled_from([(), (1,), (1, 2)]))),
        discrete=frozenset({1, 2}),
        expected=expected[:outputs] if mode else None,
    )


def reference_dropout(x: Array, ratio: float, mode: Any, seed: int) -> list[Any]:
    """The results of ONNX's reference implementation."""
    if not mode:
        return [x, np.ones(x.shape, bool)]
    kept = np.random.RandomState(seed).uniform(0.0, 1.0, x.shape) >= ratio
    return [(kept * x / (1 - ratio)).astype(x.dtype), kept]

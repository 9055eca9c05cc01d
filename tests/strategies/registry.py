"""Examples of operators: one Hypothesis strategy for each, at every version."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

Array: TypeAlias = np.ndarray[Any, Any]
Draw: TypeAlias = Callable[[SearchStrategy[Any]], Any]
Key: TypeAlias = tuple[str, str]


@dataclass(frozen=True)
class Maybe:
    """An operand of an optional type: ``value``, or an empty optional of ``like``."""

    value: Array | list[Array] | None
    like: Array | list[Array]


#: An array, a sequence, an optional; None for an operand that is omitted.
Operand: TypeAlias = Array | list[Array] | Maybe | None


@dataclass(frozen=True)
class Example:
    """A node of one operator, with arrays for its operands.

    ``attrs`` are those of a file of the tested version (a body is a ``RawGraph``). An
    omitted operand is None. A law is tested twice: with the operands as inputs of the
    graph, and with those at ``stored`` as constants (by default all but the first).
    Operands at ``always_stored`` are constants both times, sequences never.
    """

    attrs: Mapping[str, Any]
    inputs: Sequence[Operand]
    outputs: int = 1
    stored: frozenset[int] | None = None
    always_stored: frozenset[int] = frozenset()
    #: Positions of values that only the bodies of the node read, as captures.
    captured: frozenset[int] = frozenset()
    #: Positions of floating operands without gradient and symbols, such as ratios.
    discrete: frozenset[int] = frozenset()
    #: False if the function has a kink or jump within 1e-4 of the operands.
    smooth: bool = True
    #: False if the extents of the operands cannot all grow together.
    resizable: bool = True
    #: The names of the axes of operands, by position; the others follow from extents.
    symbols: Mapping[int, tuple[str | int, ...]] = field(default_factory=dict)
    #: The results of the specification, if no other runtime runs this version.
    expected: Sequence[Any] | None = None
    #: A newer version that computes the same by the specification, and its attributes.
    newer: tuple[int, Mapping[str, Any]] | None = None
    rtol: float = 1e-5
    atol: float = 1e-6

    def constants(self, stored: bool) -> frozenset[int]:
        """The positions of the operands that are constants."""
        if not stored:
            return self.always_stored
        if self.stored is not None:
            return self.stored | self.always_stored
        return frozenset(
            i
            for i, x in enumerate(self.inputs)
            if i and not isinstance(x, list | Maybe)
        )


Maker: TypeAlias = Callable[[Draw, int], Example]

_CASES: dict[Key, Maker] = {}


def case(*names: str, domain: str = "") -> Callable[[Maker], Maker]:
    """Declare the decorated ``make(draw, version)`` as the strategy of operators.

    Raises:
        ValueError: an operator has one already.
    """

    def register(make: Maker) -> Maker:
        for name in names:
            if (domain, name) in _CASES:
                raise ValueError(f"operator {name!r} has two strategies")
            _CASES[domain, name] = make
        return make

    return register


def cases() -> Mapping[Key, Maker]:
    """All strategies by (domain, operator)."""
    return _CASES


@st.composite
def _examples(draw: Draw, key: Key, version: int) -> Example:
    return _CASES[key](draw, version)


def examples(key: Key, version: int) -> SearchStrategy[Example]:
    """Examples of one operator at one version."""
    return _examples(key, version)


def generator(draw: Draw) -> np.random.Generator:
    """A random number generator whose seed is drawn."""
    return np.random.default_rng(draw(st.integers(0, 2**32 - 1)))


def extents(
    draw: Draw, low: int = 3, high: int = 4, least: int = 1, most: int = 5
) -> tuple[int, ...]:
    """A shape of rank ``low`` to ``high`` with extents of ``least`` to ``most``."""
    sizes = st.lists(st.integers(least, most), min_size=low, max_size=high)
    return tuple(draw(sizes))


def floats(draw: Draw, shape: Sequence[int], dtype: Any = np.float32) -> Array:
    """Normally distributed numbers."""
    return np.asarray(generator(draw).standard_normal(tuple(shape))).astype(dtype)


def integers(
    draw: Draw, shape: Sequence[int], low: int, high: int, dtype: Any = np.int64
) -> Array:
    """Integers from ``low`` to ``high``, both included."""
    numbers = generator(draw).integers(low, high + 1, tuple(shape))
    return np.asarray(numbers).astype(dtype)

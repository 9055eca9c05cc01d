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
    """An operand of an optional type: ``value``, or None where ``like`` might be."""

    value: Array | list[Array] | None
    like: Array | list[Array]


#: An array, a sequence, an optional; None for an operand that is omitted.
Operand: TypeAlias = Array | list[Array] | Maybe | None


@dataclass(frozen=True)
class Example:
    """A node with arrays for its operands.

    ``attrs`` are as a file of that version has them (a body is a ``RawGraph``), an
    omitted operand is None. The laws give the operands first as inputs of the graph,
    then those at ``stored`` (all but the first, where nothing is said) as constants;
    those at ``always_stored`` are constants both times. Sequences never are.
    """

    attrs: Mapping[str, Any]
    inputs: Sequence[Operand]
    outputs: int = 1
    stored: frozenset[int] | None = None
    always_stored: frozenset[int] = frozenset()
    #: Positions that are no operands of the node: its bodies use them from outside.
    captured: frozenset[int] = frozenset()
    #: Positions of floating operands that are no data: no gradient, no symbols.
    discrete: frozenset[int] = frozenset()
    #: False where the function has a kink or jump nearer than 1e-4.
    smooth: bool = True
    #: False if the extents of the operands cannot all grow together.
    resizable: bool = True
    #: What each axis of each operand is called; made up from the extents if None.
    symbols: Mapping[int, tuple[str | int, ...]] = field(default_factory=dict)
    #: The results by the specification, where nothing else can run this version.
    expected: Sequence[Any] | None = None
    #: Another version, and its attributes, that is specified to compute the same.
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
    """A generator of random numbers, of which one integer is drawn."""
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

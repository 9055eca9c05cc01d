"""Constants in source keep their dtype, rank and shape, as every operand of a node."""

from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from burn import dtypes
from tests.importer.operands.many_nodes import NodeCase, Operand, check
from tests.modules import Array

#: Shapes of the constants, and of the values beside them.
STORED = ((), (1,), (0,), (1, 1), (0, 3), (3,))
GIVEN = ((), (1,), (3,), (2, 1), (2, 3))
FLOATS = (dtypes.float16, dtypes.float32, dtypes.float64, dtypes.bfloat16)
INTEGERS = (dtypes.int8, dtypes.int32, dtypes.int64, dtypes.uint8, dtypes.uint64)
BINARY = {
    "Add": (dtypes.float16, dtypes.float32, dtypes.float64, *INTEGERS),
    "Sub": (dtypes.bfloat16, dtypes.float32, dtypes.float64, *INTEGERS),
    "Mul": (dtypes.float32, dtypes.float64, *INTEGERS),
    "Div": (dtypes.float32, dtypes.float64, *INTEGERS),
    "Pow": (dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64),
    "Mod": (*INTEGERS,),
    "Equal": (*FLOATS, *INTEGERS, dtypes.bool_),
    "Greater": (dtypes.float32, dtypes.float64, dtypes.int64, dtypes.uint64),
    "LessOrEqual": (dtypes.float32, dtypes.float64, dtypes.int64),
    "And": (dtypes.bool_,),
    "Xor": (dtypes.bool_,),
    "BitwiseAnd": INTEGERS,
    "BitShift": (dtypes.uint8, dtypes.uint64),
    "PRelu": (dtypes.float32, dtypes.float64),
    "Max": (*FLOATS, *INTEGERS),
    "Min": (dtypes.float32, dtypes.int32, dtypes.uint64),
    "Sum": (dtypes.float32, dtypes.float64),
    "Mean": (dtypes.float32,),
}
ATTRS: dict[str, dict[str, Any]] = {"BitShift": {"direction": "LEFT"}}
RNG = np.random.default_rng(5)


@pytest.fixture(autouse=True)
def seeded() -> None:
    """Each test draws the same, whichever tests run before it."""
    RNG.bit_generator.state = np.random.default_rng(5).bit_generator.state


def array(shape: Sequence[int], dtype: Any) -> Array:
    """Random contents; a few integers are as large as the dtype has them."""
    if dtype == dtypes.bool_:
        return np.asarray(RNG.random(shape) < 0.5)
    if dtypes.is_float(dtype):
        return np.asarray(RNG.normal(size=shape) * 3).astype(dtype)
    small = np.asarray(RNG.integers(1, 7, shape)).astype(dtype)
    largest = np.asarray(dtypes.integer_limits(dtype).max).astype(dtype)
    return np.where(RNG.random(shape) < 0.1, largest, small)


def fits(*shapes: tuple[int, ...]) -> bool:
    """Return whether shapes can be broadcast together."""
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        return False
    return True


def pairs(op: str, dtype: Any) -> Iterator[NodeCase]:
    """A constant on either side of a given value, and two constants."""
    attrs = ATTRS.get(op, {})
    for one, other in product(STORED, (*GIVEN, *STORED)):
        if not fits(one, other):
            continue
        stored = Operand(array(one, dtype), True)
        for is_stored in (False, True):
            beside = Operand(array(other, dtype), is_stored)
            for sides in ((beside, stored), (stored, beside)):
                shapes = [x.array.shape for x in sides]
                # Of PRelu the slope alone is broadcast.
                if op != "PRelu" or np.broadcast_shapes(*shapes) == shapes[0]:
                    yield NodeCase(op, sides, attrs)


def can_be_power(case: NodeCase) -> bool:
    """Return whether all engines agree on a power: of a small, nonnegative base."""
    return all(np.all(np.abs(x.array) < 9) for x in case.operands if x is not None)


@pytest.mark.parametrize(
    ("op", "dtype"),
    [(op, dtype) for op, kinds in BINARY.items() for dtype in kinds],
    ids=lambda value: value if isinstance(value, str) else dtypes.name_of(value),
)
@pytest.mark.sampled(16)
def test_constants_beside_values(tmp_path: Path, op: str, dtype: Any) -> None:
    every = list(pairs(op, dtype))
    picked = np.sort(RNG.permutation(len(every))[:90])
    cases = [every[i] for i in picked]
    if op == "Pow":
        cases = [case for case in cases if can_be_power(case)]
    check(cases, tmp_path)


TERNARY = (dtypes.float16, dtypes.float32, dtypes.float64, dtypes.int64, dtypes.uint8)


def places(count: int) -> Iterator[tuple[bool, ...]]:
    """Every choice of stored operands but none."""
    return (choice for choice in product((False, True), repeat=count) if any(choice))


def joined(op: str, arrays: Sequence[Array | None], **attrs: Any) -> Iterator[NodeCase]:
    """A node on ``arrays``, with every choice of stored operands."""
    given = [i for i, x in enumerate(arrays) if x is not None]
    for choice in places(len(given)):
        stored = dict(zip(given, choice, strict=True))
        operands = [
            None if x is None else Operand(x, stored[i]) for i, x in enumerate(arrays)
        ]
        yield NodeCase(op, tuple(operands), attrs)


@pytest.mark.parametrize("dtype", TERNARY, ids=dtypes.name_of)
@pytest.mark.sampled(6)
def test_constants_in_where(tmp_path: Path, dtype: Any) -> None:
    shapes = ((), (1,), (1, 1), (0, 3), (3,), (2, 3))
    cases = [
        case
        for a, b, c in product(shapes, repeat=3)
        if fits(a, b, c)
        for case in joined(
            "Where", [array(a, dtypes.bool_), array(b, dtype), array(c, dtype)]
        )
    ]
    picked = RNG.permutation(len(cases))[:150]
    check([cases[i] for i in picked], tmp_path)


@pytest.mark.parametrize("dtype", TERNARY, ids=dtypes.name_of)
@pytest.mark.sampled(6)
def test_constants_in_clip(tmp_path: Path, dtype: Any) -> None:
    low, high = (np.asarray(n).astype(dtype) for n in (2, 4))
    bounds = ((low, high), (low, None), (None, high), (high, low))
    cases = [
        case
        for shape in ((), (1,), (1, 1), (0, 3), (3,), (2, 3))
        for least, most in bounds
        for case in joined("Clip", [array(shape, dtype), least, most])
    ]
    check(cases, tmp_path)


@pytest.mark.parametrize(
    "dtype", [*FLOATS[:3], *INTEGERS, dtypes.bool_], ids=dtypes.name_of
)
@pytest.mark.sampled(16)
def test_constants_in_concat(tmp_path: Path, dtype: Any) -> None:
    rows = ((0,), (1,), (3,))
    tables = ((0, 3), (1, 3), (2, 3))
    cases = [
        case
        for shapes in (*product(rows, repeat=3), *product(tables, repeat=3))
        for case in joined("Concat", [array(s, dtype) for s in shapes], axis=0)
    ]
    picked = RNG.permutation(len(cases))[:120]
    check([cases[i] for i in picked], tmp_path)


@pytest.mark.parametrize("dtype", [dtypes.int32, dtypes.int64], ids=dtypes.name_of)
def test_constants_as_indices(tmp_path: Path, dtype: Any) -> None:
    data = [array(s, k) for s in ((5,), (5, 3)) for k in (dtypes.int64, dtypes.float32)]
    shapes = ((), (1,), (0,), (1, 1), (0, 3), (3,), (2, 2))
    cases = [
        case
        for x, shape in product(data, shapes)
        for case in joined("Gather", [x, RNG.integers(-5, 5, shape).astype(dtype)])
    ]
    check(cases, tmp_path)

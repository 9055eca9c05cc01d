"""Operators on small operands (no axis, one, none left), any of which are stored."""

from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.importer.operands.many_nodes import NodeCase, Operand, check
from tests.modules import Array

RNG = np.random.default_rng(9)


def f(*shape: int) -> Array:
    return np.asarray(RNG.normal(size=shape)).astype(np.float32)


def i(*values: int) -> Array:
    return np.array(values, np.int64)


def n(value: int) -> Array:
    return np.array(value, np.int64)


def above_zero(*shape: int) -> Array:
    return np.asarray(np.abs(f(*shape)) + 1)


#: Operands by operator, with attributes; None is left out.
EXAMPLES: dict[str, list[tuple[Sequence[Array | None], dict[str, Any]]]] = {
    "MatMul": [
        ((f(3), f(3)), {}),
        ((f(1), f(1)), {}),
        ((f(1), f(1, 1)), {}),
        ((f(2, 3), f(3)), {}),
        ((f(3), f(2, 3, 2)), {}),
        ((f(1, 1, 3), f(3, 2)), {}),
        ((f(0, 3), f(3, 2)), {}),
    ],
    "Gemm": [
        ((f(2, 3), f(3, 2), None), {}),
        ((f(2, 3), f(3, 2), f()), {"beta": 0.5}),
        ((f(1, 3), f(1, 3), f(1)), {"transB": 1}),
        ((f(2, 3), f(3, 2), f(2, 1)), {"alpha": 2.0}),
        ((f(0, 3), f(3, 2), f(2)), {}),
    ],
    "Expand": [((f(), i(2, 3)), {}), ((f(1), i(0)), {}), ((f(3, 1), i(1, 2)), {})],
    "Reshape": [
        ((f(), i(1)), {}),
        ((f(1), i()), {}),
        ((f(0, 3), i(0, 3)), {}),
        ((f(6), i(2, -1)), {}),
    ],
    "Tile": [((f(2), i(3)), {}), ((f(1, 2), i(2, 0)), {}), ((f(), i()), {})],
    "Unsqueeze": [((f(), i(0)), {}), ((f(3), i(0, -1)), {})],
    "Squeeze": [((f(1), i(0)), {}), ((f(1, 3), i(0)), {})],
    "Pad": [
        ((f(3), i(1, 2)), {}),
        ((f(3), i(1, -1), f()), {}),
        ((f(2, 3), i(1, 0), f(), i(1)), {}),
        ((f(1, 3), i(0, 1, 0, 1)), {"mode": "reflect"}),
    ],
    "Slice": [
        ((f(5), i(1), i(4)), {}),
        ((f(5), i(-1), i(-9), i(0), i(-2)), {}),
        ((f(2, 5), i(1), i(9), i(1)), {}),
        ((f(2, 5), i(0, 2), i(0, 4), i(0, 1)), {}),
    ],
    "ReduceSum": [
        ((f(3), i(0)), {"keepdims": 0}),
        ((f(1), i(0)), {}),
        ((f(), None), {"keepdims": 0}),
        ((f(2, 3), i()), {"noop_with_empty_axes": 1}),
        ((f(0, 3), i(0)), {}),
    ],
    "ReduceMax": [((f(3), i(-1)), {"keepdims": 0}), ((f(1, 2), i(0, 1)), {})],
    "CumSum": [((f(3), n(0)), {}), ((f(1, 3), n(-1)), {"reverse": 1})],
    "Gather": [((f(1), n(0)), {}), ((f(0, 3), i(1)), {"axis": 1})],
    "GatherElements": [((f(3), i(2, 0)), {}), ((f(1, 1), i(0)[None]), {})],
    "GatherND": [((f(3), i(2)), {}), ((f(2, 3), i(1, 0)[None]), {})],
    "ScatterElements": [((f(3), i(2), f(1)), {}), ((f(1, 1), i(0)[None], f(1, 1)), {})],
    "ScatterND": [((f(3), i(2)[None], f(1)), {}), ((f(1), i(0), f()), {})],
    "Range": [
        ((n(0), n(3), n(1)), {}),
        ((n(3), n(3), n(1)), {}),
        ((f(), f(), f()), {}),
    ],
    "TopK": [((f(3), i(2)), {}), ((f(1, 3), i(1)), {})],
    "OneHot": [((i(1, 0), n(3), i(5, 7)), {})],
    "Trilu": [((f(1, 1), n(0)), {}), ((f(2, 3), n(1)), {"upper": 0})],
    "Split": [((f(3), i(1, 2)), {}), ((f(1, 3), i(0, 3)), {"axis": 1})],
    "Concat": [((f(1), f(0)), {"axis": 0}), ((i(), i(2)), {"axis": 0})],
    "Einsum": [
        ((f(3), f(3)), {"equation": "i,i->"}),
        ((f(), f(1)), {"equation": ",i"}),
    ],
    "LayerNormalization": [((f(3), f(3), f(3)), {}), ((f(1, 3), f(3), None), {})],
    "BatchNormalization": [
        ((f(1, 1), f(1), f(1), f(1), above_zero(1)), {}),
        ((f(2, 3), f(3), f(3), f(3), above_zero(3)), {}),
    ],
    "InstanceNormalization": [((f(1, 1, 3), f(1), f(1)), {})],
    "Conv": [
        ((f(1, 1, 3), f(1, 1, 1), f(1)), {}),
        ((f(1, 1, 3), f(1, 1, 3), None), {}),
    ],
    "ConvTranspose": [((f(1, 1, 3), f(1, 1, 1), f(1)), {})],
    "PRelu": [((f(3), f(1)), {}), ((f(1), f(1)), {}), ((f(), f()), {})],
    "Clip": [((f(), f(), f()), {}), ((f(1), None, f()), {})],
    "Compress": [((f(3), np.array([True, False])), {})]
    + [((f(1), np.array([True])), {"axis": 0})],
    "QuantizeLinear": [
        ((f(3), above_zero(), np.array(3, np.uint8)), {}),
        ((f(1), above_zero(1), np.array([3], np.int8)), {"axis": 0}),
    ],
    "DequantizeLinear": [
        ((np.array([3, 9], np.uint8), above_zero(), np.array(3, np.uint8)), {}),
        ((np.array(3, np.int8), above_zero(), None), {}),
    ],
    "ReverseSequence": [((f(2, 2, 1), i(1, 2)), {})],
    "Resize": [((f(1, 1, 2), None, np.array([1, 1, 2], np.float32)), {})],
    "Col2Im": [((f(1, 4, 1), i(2, 2), i(2, 2)), {})],
    "CastLike": [((f(), n(1)), {}), ((f(1), n(1)), {})],
    "Identity": [((f(),), {}), ((f(0),), {})],
    "Softmax": [((f(1),), {}), ((f(0, 3),), {})],
    "ArgMax": [((f(1),), {"keepdims": 0}), ((f(2, 3),), {})],
}
OUTPUTS = {"TopK": 2, "Split": 2}


def cases(op: str) -> Iterator[NodeCase]:
    """The examples of an operator, with any of their operands stored."""
    for arrays, attrs in EXAMPLES[op]:
        given = [k for k, x in enumerate(arrays) if x is not None]
        for choice in product((False, True), repeat=len(given)):
            stored = dict(zip(given, choice, strict=True))
            operands = [
                None if x is None else Operand(x, stored[k])
                for k, x in enumerate(arrays)
            ]
            yield NodeCase(op, tuple(operands), attrs, OUTPUTS.get(op, 1))


@pytest.mark.parametrize("op", EXAMPLES)
@pytest.mark.sampled(3)
def test_small_operands(tmp_path: Path, op: str) -> None:
    check(list(cases(op)), tmp_path)

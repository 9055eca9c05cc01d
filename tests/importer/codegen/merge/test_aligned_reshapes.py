"""Reshapes of several layers infer the extent of one axis."""

import numpy as np
import pytest

from burn import Tensor, ops
from burn.backend.cpu.device import Cpu
from burn_import.codegen.merge.flattened_axes import aligned_reshapes
from burn_import.tracing.trace import Apply, Symbol
from burn_ir.dim import Dim, symbol
from burn_ir.types import Type


def reshape(shape: tuple[int, ...], *extents: Dim) -> Apply:
    """Return a reshape to ``shape`` whose result has the ``extents``."""
    x = Tensor(Symbol(), Cpu())
    return Apply(
        ops.reshape, (x, shape), {}, [Symbol(Type(np.dtype(np.float32), extents))]
    )


@pytest.mark.parametrize(
    ("first", "shape"),
    [((-1, 64, 4), (-1, 16, 8)), ((1, -1, 4), (1, -1, 8)), ((1, 64, 4), (1, 16, 8))],
)
def test_known_extents_are_inferred_as_by_the_first(
    first: tuple[int, ...], shape: tuple[int, ...]
) -> None:
    calls = [reshape(first, 1, 64, 4), reshape((1, 16, -1), 1, 16, 8)]
    assert [call.args[1] for call in aligned_reshapes(calls)] == [first, shape]


def test_an_unknown_extent_stays_inferred() -> None:
    calls = [
        reshape((1, -1, 4), 1, 64, 4),
        reshape((-1, 16, 8), symbol("batch"), 16, 8),
    ]
    assert aligned_reshapes(calls) == calls

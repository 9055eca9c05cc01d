"""Extents that ``reshape`` infers in some of the bodies of a class."""

from types import SimpleNamespace
from typing import Any

import pytest

from burn import ops
from burn_import.codegen.merge.constructor_numbers import Numerals
from burn_import.codegen.merge.expression_slots import DifferError
from burn_import.codegen.merge.unified_body import Union
from burn_import.tracing.trace import Apply


def numerals(shape: tuple[int, ...], union: Union) -> Numerals:
    """Return the numbers of bodies, of which the first reshapes to ``shape``."""
    call = Apply(ops.reshape, (None, shape), {}, [])
    trace: Any = SimpleNamespace(body=SimpleNamespace(statements=[call]))
    return Numerals(union, trace, ())


def test_bodies_that_infer_two_extents_of_a_shape_differ() -> None:
    """A class of both would reshape to [-1, windows, 8], where the second has -1."""
    union = Union(numbers={(0, 1, 1): (4, -1)}, inferred={(0, 1, 0)})
    with pytest.raises(DifferError):
        numerals((2, 4, 8), union)


def test_one_extent_that_a_body_infers_is_inferred_in_all() -> None:
    place = (0, 1, 1)
    found = numerals((2, 4, 8), Union(numbers={place: (4, -1)}))
    assert found.values == {place: -1}
    assert found.columns == []


def test_a_number_beside_an_inferred_extent_is_given() -> None:
    union = Union(numbers={(0, 1, 1): (4, 2)}, inferred={(0, 1, 0)})
    assert [column.values for column in numerals((2, 4, 8), union).columns] == [(4, 2)]

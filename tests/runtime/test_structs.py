"""Structs set, check, compare and replace their fields as data classes do."""

import copy
import pickle
from collections.abc import Callable
from functools import cached_property
from typing import Any

import pytest

from burn.structs import FrozenStruct, Struct, replace


class Point(Struct):
    x: int
    y: int = 0


class Extent(FrozenStruct):
    size: int
    name: str = ""

    @cached_property
    def doubled(self) -> int:
        return 2 * self.size


class Labelled(Point):
    label: str = "none"


def test_fields_are_set_by_position_and_by_name() -> None:
    assert (Point(1, 2).y, Point(1).y, Point(y=3, x=1).y) == (2, 0, 3)
    assert repr(Labelled(1, label="a")) == "Labelled(x=1, y=0, label='a')"


@pytest.mark.parametrize(
    ("args", "named"),
    [((), {}), ((1, 2, 3), {}), ((1,), {"z": 1}), ((1,), {"x": 1}), ((), {"y": 1})],
)
def test_other_arguments_than_the_fields_are_refused(args: Any, named: Any) -> None:
    with pytest.raises(TypeError, match="Point has the fields x, y"):
        Point(*args, **named)


def test_structs_are_compared_by_identity_and_frozen_ones_by_fields() -> None:
    assert Point(1) != Point(1)
    assert Extent(1) == Extent(1, "") != Extent(2)
    assert hash(Extent(1)) == hash(Extent(1, ""))
    with pytest.raises(AttributeError, match=r"Extent\.size"):
        Extent(1).size = 2  # type: ignore[misc]
    with pytest.raises(AttributeError, match=r"cannot delete Extent\.size"):
        del Extent(1).size


def test_a_copy_with_other_values_forgets_what_was_cached() -> None:
    extent = Extent(2, "a")
    assert extent.doubled == 4
    assert replace(extent, size=3).doubled == 6
    assert replace(extent, name="b") == Extent(2, "b")
    with pytest.raises(TypeError, match="has the fields size, name"):
        replace(extent, width=1)


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_structs_are_copied_and_pickled(copied: Callable[[Any], Any]) -> None:
    assert copied(Extent(2, "a")) == Extent(2, "a")
    assert copied(Point(1)).x == 1

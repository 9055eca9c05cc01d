"""A plain run leaves out only what another test stands for."""

from dataclasses import dataclass
from typing import Any, cast

import pytest

from tests.sampling import left_out


@dataclass(frozen=True)
class Item:
    """As much of a test as sampling asks for."""

    name: str
    mark: str = "models"

    @property
    def nodeid(self) -> str:
        return f"tests/test_zoo.py::{self.name}"

    def get_closest_marker(self, name: str) -> object:
        return name if name == self.mark else None


def names(*items: Item) -> list[str]:
    """Return the names of the tests that are left out."""
    return [item.name for item in left_out(cast(Any, items))]


def test_one_exporter_of_each_architecture_is_left() -> None:
    bert = [Item(f"test_keys[arch/bert.ts-op{n}]") for n in (11, 13, 17)]
    bert.append(Item("test_keys[arch/bert.dynamo-op20]"))
    others = [Item("test_keys[arch/gpt2.ts-op17]"), Item("test_keys[real/yolo/net]")]
    dropped = names(*bert, *others)
    assert len(dropped) == 3
    assert set(dropped) < {item.name for item in bert}


@pytest.mark.parametrize("suffix", ["", "-False", "-int8"])
def test_each_test_and_parameter_keeps_one(suffix: str) -> None:
    first = Item(f"test_values[arch/bert.ts-op11{suffix}]")
    second = Item(f"test_values[arch/bert.dynamo-op20{suffix}]")
    others = [
        Item("test_values[arch/bert.ts-op11-other]"),
        Item("test_keys[bert.ts-op11]"),
    ]
    dropped = names(first, second, *others)
    assert len(dropped) == 1
    assert dropped[0] in {first.name, second.name}


def test_thorough_tests_and_no_others_are_left_out() -> None:
    small = [Item(f"test_values[bert.ts-op{n}]", mark="") for n in (11, 13)]
    assert names(*small, Item("test_wheel", mark="thorough")) == ["test_wheel"]

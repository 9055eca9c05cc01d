"""A plain run leaves out only what another test stands for."""

from dataclasses import dataclass
from typing import Any, cast

import pytest
from hypothesis import settings

from tests.sampling import emission_count, left_out


@dataclass(frozen=True)
class Item:
    """As much of a test as sampling asks for."""

    name: str
    mark: str = "models"
    file: str = "tests/test_zoo.py"

    @property
    def nodeid(self) -> str:
        return f"{self.file}::{self.name}"

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        if name not in self.mark.split():
            return None
        mark: pytest.Mark = getattr(pytest.mark, name)(3).mark
        return mark


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


def test_each_file_and_architecture_keeps_one() -> None:
    first = [Item(f"test_a[arch/bert.ts-op11-{option}]") for option in (True, False)]
    other = Item("test_a[arch/bert_large.ts-op11-True]")
    elsewhere = Item("test_b[arch/bert.ts-op11]", file="tests/test_export.py")
    dropped = names(*first, other, elsewhere)
    assert len(dropped) == 1
    assert dropped[0] in {item.name for item in first}


def test_a_nightly_case_runs_where_it_is_selected() -> None:
    items = [Item("test_a[1]", ""), Item("test_a[2]", "nightly")]
    assert names(*items) == ["test_a[2]"]
    assert not list(left_out(cast(Any, items), is_selected=True))


def test_files_keep_the_same_export() -> None:
    files = ("tests/test_a.py", "tests/test_b.py")
    exports = [f"test_it[arch/bert.ts-op{n}]" for n in (11, 13, 17)]
    items = [Item(name, file=file) for file in files for name in exports]
    dropped = names(*items)
    assert len(dropped) == 4
    assert len(set(dropped)) == 2


def test_thorough_tests_and_no_others_are_left_out() -> None:
    small = [Item(f"test_values[bert.ts-op{n}]", mark="") for n in (11, 13)]
    assert names(*small, Item("test_wheel", mark="thorough")) == ["test_wheel"]


def test_cases_that_are_selected_by_name_are_not_sampled() -> None:
    cases = [Item(f"test_a[{n}]", mark="sampled") for n in range(7)]
    cases += [Item(f"test_b[bert.ts-op{n}]") for n in (11, 13)]
    thorough = Item("test_wheel", mark="thorough")
    dropped = list(left_out(cast(Any, [*cases, thorough]), is_selected=True))
    assert dropped == [cast(Any, thorough)]


def test_one_in_three_sampled_cases_is_left_of_each_test() -> None:
    first = [Item(f"test_a[{n}]", mark="sampled") for n in range(7)]
    other = [Item("test_b[0]", mark="sampled")]
    dropped = names(*first, *other, Item("test_c[0]", mark=""))
    assert len(dropped) == 4
    assert set(dropped) < {item.name for item in first}
    assert set(names(*first[::-1])) == set(dropped)


def test_a_test_of_many_cases_is_sampled_without_a_marker() -> None:
    file = "tests/runtime/test_ops.py"
    many = [Item(f"test_a[{n}]", mark="", file=file) for n in range(12)]
    few = [Item(f"test_b[{n}]", mark="", file=file) for n in range(7)]
    file = "tests/test_docs.py"
    rules = [Item(f"test_c[{n}]", mark="", file=file) for n in range(12)]
    dropped = names(*many, *few, *rules)
    assert len(dropped) == 8
    assert set(dropped) < {item.name for item in many}
    assert not list(left_out(cast(Any, many), is_selected=True))


def test_models_that_are_left_are_sampled() -> None:
    bert = [Item(f"test_a[bert.ts-op{n}]", mark="models sampled") for n in (11, 13)]
    other = Item("test_a[gpt2.ts-op17]", mark="models sampled")
    assert len(names(*bert, other)) == 2


def test_properties_of_printed_text_have_more_examples() -> None:
    given = settings.get_current_profile_name()
    try:
        counts = []
        for profile in ("sample", "default", "nightly"):
            settings.load_profile(profile)
            counts.append(emission_count())
    finally:
        settings.load_profile(given)
    assert counts == [300, 1_000, 50_000]

"""Rows, errors and the table of the coverage suite, without PyTorch."""

from pathlib import Path

import numpy as np
import pytest

from tests.wild.catalogue.small_configs import small_size
from tests.wild.compare import (
    MismatchError,
    compare_gradients,
    is_finite,
    is_right,
    largest_error,
)
from tests.wild.entry import FORMATS, Case, Entry, ordered_tasks
from tests.wild.results import Row, read_rows, row_from_json, trim_partial_line
from tests.wild.table import clean_cause, coverage_page, group_cause, summary_text


def row(name: str, outcome: str, format_: str = "pt2", **more: object) -> Row:
    """Return a row of the library ``lib``."""
    result = Row(f"lib/{name}:{format_}", "lib", "nets", name, format_, outcome)
    for field, value in more.items():
        setattr(result, field, value)
    return result


def entry(name: str) -> Entry:
    """Return an entry that nobody builds."""

    def build() -> Case:
        raise AssertionError("not built here")

    return Entry("lib", "nets", name, build)


def test_rows_are_read_as_they_were_written(tmp_path: Path) -> None:
    first = row("a", "right", error=float("inf"), seconds={"import": 0.5})
    path = tmp_path / "rows.jsonl"
    path.write_text(f"{first.to_json()}\n{row('b', 'wrong').to_json()}\n", "utf-8")
    assert read_rows([path]) == [first, row("b", "wrong")]


def test_the_last_row_of_a_key_counts(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    lines = [row("a", outcome).to_json() + "\n" for outcome in ("wrong", "right")]
    path.write_text("".join(lines), "utf-8")
    assert [r.outcome for r in read_rows([path])] == ["right"]


def test_a_line_that_was_cut_off_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(row("a", "right").to_json() + "\n" + '{"key": "li', "utf-8")
    trim_partial_line(path)
    assert [r.name for r in read_rows([path])] == ["a"]
    assert path.read_text("utf-8").endswith("\n")


def test_other_lines_are_refused() -> None:
    with pytest.raises(ValueError, match="expected a row"):
        row_from_json('{"key": "a"}')


def test_tasks_have_one_order_for_every_process() -> None:
    entries = [entry(f"net{k}") for k in range(20)]
    tasks = ordered_tasks(entries, FORMATS)
    assert tasks == ordered_tasks(entries[::-1], FORMATS)
    assert len({task.key for task in tasks}) == 80
    assert len({task.format for task in tasks[:20]}) == len(FORMATS)


def test_every_architecture_comes_before_any_comes_again() -> None:
    entries = [entry(f"net{k}") for k in range(20)]
    tasks = ordered_tasks(entries, FORMATS)
    for start in range(0, 80, 20):
        assert len({task.entry.key for task in tasks[start : start + 20]}) == 20


@pytest.mark.parametrize(
    ("result", "reference", "error"),
    [
        ([1.0, 2.0], [1.0, 2.0], 0.0),
        ([1.0, 2.1], [1.0, 2.0], 0.05),
        ([np.nan, 2.0], [np.nan, 2.0], 0.0),
        ([np.nan, 2.0], [1.0, 2.0], np.inf),
        ([np.inf, 2.0], [-np.inf, 2.0], np.inf),
        ([0.0, 0.0], [0.0, 0.0], 0.0),
        ([1e-9, 0.0], [0.0, 0.0], np.inf),
    ],
)
def test_errors_are_relative_to_the_largest_element(
    result: list[float], reference: list[float], error: float
) -> None:
    assert largest_error([np.array(result)], [np.array(reference)]) == pytest.approx(
        error
    )


def test_other_dtypes_count_elements_that_differ() -> None:
    a, b = np.array([1, 2, 3, 4]), np.array([1, 2, 3, 5])
    assert largest_error([a], [b]) == 0.25


def test_only_numbers_are_finite() -> None:
    assert is_finite(np.array([1.0])) and is_finite(np.array([True]))
    assert not is_finite(np.array([1.0, np.nan]))
    assert not is_finite(np.array([1j * np.inf]))


def test_complex_references_are_pairs() -> None:
    reference = np.array([1 + 2j])
    assert largest_error([np.array([[1.0, 2.0]])], [reference]) == 0.0


@pytest.mark.parametrize(
    "results",
    [[], [np.zeros((1, 2))], [np.zeros(2, np.int64)], [np.zeros(2), np.zeros(2)]],
    ids=["none", "rank", "dtype", "two"],
)
def test_other_outputs_are_a_mismatch(results: list[np.ndarray]) -> None:
    with pytest.raises(MismatchError):
        largest_error(results, [np.zeros(2)])


def test_rounding_widens_the_tolerance() -> None:
    assert is_right(9e-5) and not is_right(2e-4)
    assert is_right(2e-4, rounding=1e-4) and not is_right(2e-3, rounding=1e-4)


def test_gradients_are_compared_by_key() -> None:
    expected = {"a": np.ones(2), "b": np.ones(3), "c": np.ones(1), "d": np.ones(1)}
    results = {"a": np.ones(2) * 1.5, "b": np.ones(3), "d": np.zeros(1)}
    result = compare_gradients(results, expected, changed=["d"])
    assert (result.worst, result.error, result.compared) == ("a", 0.5, 2)
    assert (result.missing, result.changed) == (("c",), ("d",))


def test_small_gradients_are_measured_against_large_ones() -> None:
    expected = {"a": np.array([1.0]), "b": np.array([1e-9])}
    actual = {"a": np.array([1.0]), "b": np.array([2e-9])}
    assert compare_gradients(actual, expected).error == pytest.approx(1e-6)


def test_sizes_go_by_the_ends_of_names() -> None:
    assert small_size("text_hidden_size") == 32
    assert small_size("num_key_value_heads") == 2
    assert small_size("decoder_attention_heads") == 4
    assert small_size("vocab_size") == 100
    assert small_size("hidden_act") == small_size("layer_norm_eps") == 0


def test_causes_tell_no_folders() -> None:
    cause = "KeyError: /usr/lib/python/net.py line 12\nmore"
    assert clean_cause(cause) == "KeyError: net.py line 12"
    assert group_cause("expected 'a', got 3.5e-2") == "expected '..', got N"


def test_the_page_has_every_outcome() -> None:
    rows = [
        row("good", "right", gradient="right", versions={"torch": "2.0"}),
        row("steep", "right", gradient="wrong: w", gradient_error=0.5),
        row("bent", "right", gradient="folded: w", gradient_error=0.5),
        row("short", "right", gradient="changed: by 0.002", gradient_error=0.1),
        row("odd", "refused", cause="UnsupportedModel: no | such operator"),
        row("lost", "exporter failed", format_="onnx-dynamo"),
        row("broken", "invalid file", format_="onnx-dynamo", cause="no axis"),
    ]
    page = coverage_page(rows)
    assert "Versions: torch 2.0." in page
    assert "| lib | 7 | - | - | 4 of 5 (80.0 %) | - | 1 of 2 (50.0 %) |" in page
    assert "| nets | steep |  |  | right, g |  |" in page
    assert "| nets | bent, short |  |  | right, f |  |" in page
    assert "| nets | lost | no file |  |  |  |" in page
    assert r"| lib/odd:pt2 | refused | UnsupportedModel: no \| such operator |" in page
    assert "| nets | broken | invalid |  |  |  |" in page
    assert "| lib/broken:onnx-dynamo | no axis |" in page
    assert "| lib/steep:pt2 | 0.5 | wrong: w |" in page


def test_the_summary_counts_causes() -> None:
    rows = [
        row(f"n{k}", "internal error", stage="load", cause=f"KeyError: {k}")
        for k in range(3)
    ]
    text = summary_text(rows)
    assert "0 of 3 (0.0 %)" in text
    assert "   3 load: KeyError: N" in text

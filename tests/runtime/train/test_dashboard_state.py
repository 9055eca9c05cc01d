"""What a dashboard shows of the events of a run."""

import math

import pytest

from burn.train.dashboard.state import RunState, format_seconds, thin_series

RUN = {
    "folder": "runs/a",
    "epochs": 3,
    "history": [],
    "batches_done": 0,
    "batches": {"train": 4, "valid": 2},
    "resumed_from": None,
}


def add_epoch(state: RunState, epoch: int, start: float) -> None:
    """Add six batches of a second each, and the end of the epoch after the last."""
    splits = [("train", i) for i in range(1, 5)] + [("valid", 1), ("valid", 2)]
    for seconds, (split, number) in enumerate(splits, 1):
        values = {"loss": 1 / number, **({"lr": 0.1} if split == "train" else {})}
        position = [split, epoch, number, start + seconds]
        state.apply(["batch", *position, 8, 0.1 * number, values])
    state.apply(["epoch", epoch, start + 6.0, {"train/loss": 0.5, "valid/loss": 0.6}])


def test_values_are_kept_by_metric_and_split() -> None:
    state = RunState()
    state.apply(["begin", RUN, 0.0])
    assert state.names == []
    add_epoch(state, 1, 0.0)
    assert state.names == ["loss", "lr"]
    assert state.batches["loss"]["valid"] == [(1, 1.0), (2, 0.5)]
    assert [number for number, _ in state.batches["lr"]["train"]] == [1, 2, 3, 4]
    assert state.epochs == {"loss": {"train": [(1, 0.5)], "valid": [(1, 0.6)]}}
    state.apply(["batch", "train", 2, 1, 7.0, 8, 0.3, {"loss": 2.0}])
    assert state.batches == {"loss": {"train": [(1, 2.0)]}, "lr": {}}
    assert (state.epoch, state.number, state.lr) == (2, 1, 0.3)
    state.apply(["close"])
    assert state.is_closed
    with pytest.raises(ValueError, match="expected one of begin, .* got 'end'"):
        state.apply(["end"])


def test_the_time_left_is_that_of_the_other_epochs() -> None:
    state = RunState()
    state.apply(["begin", RUN, 0.0])
    assert math.isnan(state.run_seconds_left(0.0))
    for number in (1, 2):
        state.apply(["batch", "train", 1, number, float(number), 8, 0.1, {}])
    assert state.samples_per_second == 8
    assert state.split_seconds_left == 2
    assert state.run_seconds_left(2.0) == 16  # of 18 batches
    add_epoch(state, 1, 0.0)
    assert state.run_seconds_left(6.0) == 12
    assert state.run_seconds_left(8.0) == 10
    assert state.run_seconds_left(60.0) == 0


def test_batches_without_a_number_have_no_time_left() -> None:
    state = RunState()
    state.apply(["begin", {**RUN, "batches": {"train": None}}, 0.0])
    for number in (1, 2):
        state.apply(["batch", "train", 1, number, float(number), 8, 0.1, {}])
    assert math.isnan(state.split_seconds_left)
    assert math.isnan(state.run_seconds_left(2.0))


def test_a_resumed_run_begins_with_its_history() -> None:
    state = RunState()
    history = [{"train/loss": 2.0}, {"train/loss": 1.0}]
    name = "interrupted.safetensors"
    run = {**RUN, "history": history, "batches_done": 3, "resumed_from": name}
    state.apply(["begin", run, 0.0])
    assert (state.epoch, state.number, state.epochs_done) == (3, 3, 2)
    assert state.epochs["loss"]["train"] == [(1, 2.0), (2, 1.0)]
    assert list(state.messages) == [f"resumed from {name}"]


def test_long_series_become_means_of_neighbors() -> None:
    points = [(i, float(i)) for i in range(1, 11)]
    assert thin_series(points, 10) == points
    assert thin_series(points, 5) == [
        (2, 1.5),
        (4, 3.5),
        (6, 5.5),
        (8, 7.5),
        (10, 9.5),
    ]
    assert thin_series([(1, math.nan), (2, 1.0), (3, math.inf)], 5) == [(2, 1.0)]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(math.nan, "-:--"), (5.4, "0:05"), (61, "1:01"), (3723, "1:02:03")],
)
def test_times_have_hours_if_they_are_long(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text

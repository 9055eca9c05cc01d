"""Buffers that are in the record but in no ``state_dict``."""

import copy
import pickle
from pathlib import Path

import numpy as np
import pytest

import burn
from burn import Tensor, nn
from burn.nn import WeightsError
from burn.record import open_record
from burn.store import Store


class Rotary(nn.Module):
    """A layer beside frequencies that PyTorch would not save."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.inv_freq = nn.buffer(4, persistent=False)

    def __call__(self, x: Tensor) -> Tensor:
        return self.layer(x) * self.inv_freq


STATE = {
    "layer.weight": np.eye(4, dtype=np.float32),
    "layer.bias": np.zeros(4, np.float32),
}
FREQUENCIES = np.array([1, 2, 3, 4], np.float32)


def loaded() -> Rotary:
    """Return a module of which everything is set."""
    return Rotary().load_state_dict({**STATE, "inv_freq": FREQUENCIES})


def test_the_state_dict_has_only_what_is_persistent() -> None:
    model = loaded()
    assert set(model.state_dict()) == set(STATE)
    assert [key for key, _ in model.boxes()] == [*STATE, "inv_freq"]


def test_a_state_dict_without_it_keeps_its_value() -> None:
    model = loaded()
    model.load_state_dict({key: array * 2 for key, array in STATE.items()})
    x = burn.tensor(np.ones((1, 4), np.float32))
    np.testing.assert_array_equal(model(x).numpy(), 2 * FREQUENCIES[None])


def test_a_module_without_its_value_does_not_load() -> None:
    with pytest.raises(WeightsError, match="missing inv_freq"):
        Rotary().load_state_dict(STATE)


def test_a_parameter_is_still_required() -> None:
    with pytest.raises(WeightsError, match="missing layer.bias"):
        loaded().load_state_dict({"layer.weight": STATE["layer.weight"]})


def test_records_hold_it(tmp_path: Path) -> None:
    path = tmp_path / "rotary.safetensors"
    loaded().save_weights(path)
    assert set(open_record(path)) == {*STATE, "inv_freq"}
    again = Rotary().load_weights(path)
    np.testing.assert_array_equal(again.inv_freq.numpy(), FREQUENCIES)
    report = Store.from_tensors(STATE).load(again)
    assert report.skipped == ("inv_freq",)


def test_copies_know_it() -> None:
    for model in (copy.deepcopy(loaded()), pickle.loads(pickle.dumps(loaded()))):
        assert set(model.valid().state_dict()) == set(STATE)
        np.testing.assert_array_equal(model.inv_freq.numpy(), FREQUENCIES)

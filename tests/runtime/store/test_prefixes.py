"""A file whose keys begin with a prefix is refused with the call that loads it."""

from pathlib import Path

import numpy as np
import pytest

from burn import Autodiff, Cpu, nn, optim, train
from burn.store import Store, WeightsError


def test_a_prefix_of_all_keys_is_named(tmp_path: Path) -> None:
    model = nn.Linear(3, 2).to(Autodiff(Cpu()))
    path = tmp_path / "run.safetensors"
    train.step(model, optim.Adam(model, lr=0.1))(lambda x: model(x).sum()).save(path)
    other = nn.Linear(3, 2)
    with pytest.raises(WeightsError, match=r"begin with 'model\.'") as caught:
        other.load_weights(path)
    _, _, code = str(caught.value).splitlines()[-1].partition(": ")
    eval(code, {"Store": Store, "path": path, "module": other})
    for key, box in model.boxes():
        np.testing.assert_array_equal(dict(other.boxes())[key].numpy(), box.numpy())


def test_other_keys_have_no_prefix() -> None:
    store = Store.from_tensors({"model.weight": np.zeros((2, 3), np.float32)})
    with pytest.raises(WeightsError) as caught:
        store.load(nn.Linear(3, 2))
    assert "begin with" not in str(caught.value)

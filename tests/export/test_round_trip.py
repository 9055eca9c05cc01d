"""Trained weights of two small programs load strictly into PyTorch's modules."""

from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(find_spec("torch") is None, reason="needs PyTorch"),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["pt2", "torchscript"])
@pytest.mark.parametrize("name", ["research/tcn", "research/mixer"])
def test_trained_weights_load_strictly(name: str, kind: str, tmp_path: Path) -> None:
    from tests.export.round_trip import compare_round_trip
    from tests.wild.gradients import gradient_tasks

    (task,) = gradient_tasks([name], (kind,))
    assert compare_round_trip(task, tmp_path) == "right"


def test_other_keys_are_refused() -> None:
    import torch

    from tests.export.round_trip import load_strictly

    module = torch.nn.Linear(2, 3)
    assert load_strictly(module, module.state_dict()) == ""
    assert "bias" in load_strictly(module, {"weight": torch.zeros(3, 2)})

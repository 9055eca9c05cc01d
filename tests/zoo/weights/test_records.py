"""Records that Burn wrote: they are read, loaded, and written again as they were.

They are not in the repository: ``--burn-fixtures`` says where they are.
"""

from pathlib import Path

import numpy as np
import pytest

import burn
from burn import Tensor, nn, ops
from burn.record import burn_formats, read_record, record_bytes
from burn.store import Store

FILES = [
    f"burn-pt/examples/{name}/model.bpk"
    for name in ("mnist-inference-web", "remote-inference-web")
]


class Block(nn.Module):
    """A convolution, a normalization and a pool."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, 64, 3)
        self.norm = nn.BatchNorm2d(64)

    def __call__(self, x: Tensor) -> Tensor:
        return ops.max_pool(ops.relu(self.norm(self.conv(x))), kernel_size=2, stride=2)


class Digits(nn.Module):
    """The classifier of Burn's examples."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = Block(1), Block(64)
        self.fc1 = nn.Linear(1600, 128)
        self.fc2 = nn.Linear(128, 128)
        self.fc3 = nn.Linear(128, 10)

    def __call__(self, x: Tensor) -> Tensor:
        x = self.conv2(self.conv1(x)).flatten(1)
        return self.fc3(ops.relu(self.fc2(ops.relu(self.fc1(x)))))


@pytest.fixture(params=FILES)
def path(request: pytest.FixtureRequest) -> Path:
    """A record of Burn's."""
    result: Path = request.config.getoption("--burn-fixtures") / request.param
    if not result.is_file():
        pytest.skip(f"no {request.param} (see --burn-fixtures)")
    return result


def test_a_pack_of_burn_is_loaded(path: Path) -> None:
    model = Digits()
    report = Store.from_file(path).in_burn_layout().load(model)
    assert len(report.applied) == 18 and not report.problems
    record, held = read_record(path), model.state_dict()
    np.testing.assert_array_equal(held["fc1.weight"].numpy(), record["fc1.weight"].T)
    np.testing.assert_array_equal(
        held["conv1.norm.weight"].numpy(), record["conv1.norm.gamma"]
    )
    images = np.random.default_rng(0).normal(size=(2, 1, 28, 28)).astype(np.float32)
    scores = model(burn.tensor(images)).numpy()
    assert scores.shape == (2, 10) and np.isfinite(scores).all()


def test_a_pack_of_burn_is_written_as_it_was(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = path.read_bytes()
    ids = iter(_ids(whole))
    record = read_record(path)
    by_name = {name: next(ids) for name in sorted(record)}
    monkeypatch.setattr(burn_formats, "id_of", by_name.__getitem__)
    assert record_bytes("bpk", record.items()) == whole


def _ids(pack: bytes) -> list[int]:
    """Return the ids that a pack has, which are numbers of eight bytes, in order."""
    key = b"hparam_id\x1b"
    starts = [n + len(key) for n in range(len(pack)) if pack.startswith(key, n)]
    return [int.from_bytes(pack[at : at + 8], "big") for at in starts]

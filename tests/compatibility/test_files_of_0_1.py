"""Files that version 0.1 wrote are read by this one, and mean the same."""

from pathlib import Path

import numpy as np
import pytest

import burn
from burn.record import read_record
from burn.store import Store
from burn_import.output import read_header
from burn_import.status import status_of
from tests.modules import import_file

FILES = Path(__file__).parent / "v0_1"
#: What 0.1 computed for the 128 numbers from -1 to 1.
LOGITS = [
    [0.608924, -0.463513, 1.308505],
    [-1.528962, -1.4584, -0.299638],
]
IMAGE = np.linspace(-1, 1, 128, dtype=np.float32).reshape(2, 1, 8, 8)
KEYS = ["head.bias", "head.weight", "stem.bias", "stem.weight"]


def test_the_module_runs() -> None:
    model = import_file(FILES / "small.py").Small.load(verify=True)
    actual = model(burn.tensor(IMAGE)).numpy()
    np.testing.assert_allclose(actual, LOGITS, rtol=1e-5, atol=1e-5)


def test_the_header_is_read() -> None:
    digests = read_header(FILES / "small.py")
    assert digests is not None and digests.body == digests.actual
    assert status_of(FILES / "small.py").problems == ()


@pytest.mark.parametrize("suffix", ["bpk", "mpk", "bin", "json"])
def test_records_are_read(suffix: str) -> None:
    record = read_record(FILES / f"small.{suffix}")
    assert sorted(record) == KEYS
    assert record.metadata["epoch"] == "3"
    model = import_file(FILES / "small.py").Small()
    Store.from_file(FILES / f"small.{suffix}").load(model)
    expected = read_record(FILES / "small.safetensors")
    for key, value in model.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), expected[key])


def test_the_files_are_small() -> None:
    assert sum(path.stat().st_size for path in FILES.iterdir()) < 20_000

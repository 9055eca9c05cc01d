"""Random programs of PyTorch, through each format of files."""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(find_spec("torch") is None, reason="needs PyTorch"),
]
#: Outcomes of a file that is not wrong: exporters refuse, or write invalid files.
EXPECTED = {"right", "exporter failed", "invalid file", "refused"}


@pytest.mark.parametrize("file_format", ["pt2", "torchscript", "onnx-torchscript"])
@pytest.mark.parametrize("seed", range(4))
def test_a_program_has_the_results_of_pytorch(
    seed: int, file_format: str, tmp_path: Path
) -> None:
    from tests.wild.catalogue.random_models import list_entries
    from tests.wild.entry import Task
    from tests.wild.examine import Examination

    (entry,) = list_entries([seed])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TorchScript is deprecated
        row = Examination(Task(entry, file_format), tmp_path, print).run()
    assert row.outcome in EXPECTED, f"{row.stage}: {row.cause}"
    assert not row.gradient.startswith("wrong")


def test_the_same_seed_gives_the_same_program() -> None:
    from tests.wild.programs.writer import build_program

    sources = [build_program(seed)[0] for seed in (7, 7, 8)]
    assert sources[0] == sources[1] != sources[2]

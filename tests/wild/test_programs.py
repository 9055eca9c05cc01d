"""Programs of which files were refused or wrong, in the formats of PyTorch."""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.wild.examine import Examination

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(find_spec("torch") is None, reason="needs PyTorch"),
]
#: Files by the name of their program; those that PyTorch cannot export are left out.
FILES = (
    *("projected_lstm:pt2", "projected_lstm:torchscript"),
    "packed_projected_lstm:torchscript",
    *("normalized_lstm:pt2", "normalized_gru:pt2", "normalized_rnn:torchscript"),
    *("complex_states:pt2", "complex_states:torchscript"),
)


@pytest.mark.parametrize("file", FILES)
def test_a_program_keeps_its_results_gradients_and_keys(
    file: str, tmp_path: Path
) -> None:
    from tests.wild.catalogue.research_models import list_entries
    from tests.wild.entry import Task
    from tests.wild.examine import Examination

    name, file_format = file.split(":")
    (entry,) = (entry for entry in list_entries() if entry.name == name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TorchScript is deprecated
        row = Examination(Task(entry, file_format), tmp_path, print).run()
    assert row.outcome == "right", f"{row.stage}: {row.cause}"
    assert row.gradient == "right"
    assert not row.missing_keys and not row.extra_keys and not row.changed_keys


def _examined(name: str, folder: Path) -> Examination:
    from tests.wild.catalogue.research_models import list_entries
    from tests.wild.cuda import CudaExamination
    from tests.wild.entry import Task

    (entry,) = (entry for entry in list_entries() if entry.name == name)
    return CudaExamination(Task(entry, "pt2"), folder, print)


@pytest.mark.cuda
@pytest.mark.parametrize("name", ["gat", "tcn", "peephole_lstm"])
def test_calls_and_gradients_are_those_of_the_cpu(name: str, tmp_path: Path) -> None:
    pytest.importorskip("cupy")
    row = _examined(name, tmp_path).run()
    assert (row.outcome, row.gradient, row.cuda) == ("right", "right", "right")
    assert row.cuda_error is not None and row.cuda_error < 1e-4
    assert row.cuda_gradient_error is not None and row.cuda_gradient_error < 1e-4


def test_a_failure_of_the_device_leaves_the_outcome_of_the_cpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import burn

    def fail() -> None:
        raise RuntimeError("no kernel")

    monkeypatch.setattr(burn, "Cuda", fail)
    row = _examined("gat", tmp_path).run()
    assert (row.outcome, row.gradient) == ("right", "right")
    assert row.cuda.startswith("error: RuntimeError: no kernel")
    assert row.cuda_error is None

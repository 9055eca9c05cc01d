"""Programs of which files were refused or wrong, in the formats of PyTorch."""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(find_spec("torch") is None, reason="needs PyTorch"),
]
#: Files by the name of their program; those that PyTorch cannot export are left out.
FILES = (
    *("projected_lstm:pt2", "projected_lstm:torchscript"),
    "packed_projected_lstm:torchscript",
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

"""A fixed sample of random graphs; ``--fuzz-graphs 20000`` runs that many."""

from pathlib import Path

import pytest

from tests.fuzz.runner import is_wrong, run_seeds
from tests.fuzz.sample import OPEN


def test_sample(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """No graph crashes or gives another result than onnxruntime.

    Worker processes run the graphs, since onnxruntime may end the process.
    """
    count: int = request.config.getoption("--fuzz-graphs")
    reports = run_seeds(0, count, 1, tmp_path / "fuzz.jsonl")
    assert len(reports) == count
    right = sum(report["kind"] == "right" for report in reports)
    assert right > count // 2, "too few graphs are compared at all"
    wrong = {r["seed"]: r["findings"] for r in reports if is_wrong(r)}
    assert {seed: f for seed, f in wrong.items() if seed not in OPEN} == {}

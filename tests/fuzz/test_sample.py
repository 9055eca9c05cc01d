"""A fixed sample of random graphs; ``--fuzz-graphs 20000`` runs that many.

``--fuzz-seconds 60`` goes on with other graphs, whose number it decides.
"""

from pathlib import Path
from typing import Any

import pytest

from tests.fuzz.generator import generate
from tests.fuzz.runner import is_wrong, run_seeds
from tests.fuzz.sample import EXTRA, GRAPHS_A_SECOND, OPEN, SHARES, counts


def check(reports: list[dict[str, Any]], profile: str, count: int) -> None:
    """Compare what came of ``count`` graphs with what is known to be open."""
    assert len(reports) == count
    right = sum(report["kind"] == "right" for report in reports)
    assert right >= count // 2, "too few graphs are compared at all"
    wrong = {(profile, r["seed"]): r["findings"] for r in reports if is_wrong(r)}
    assert {key: f for key, f in wrong.items() if key not in OPEN} == {}


@pytest.mark.parametrize("profile", SHARES)
def test_sample(profile: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """No graph crashes or gives another result than onnxruntime.

    Worker processes run the graphs, since onnxruntime may end the process.
    """
    count = counts(request.config.getoption("--fuzz-graphs"))[profile]
    log = tmp_path / "fuzz.jsonl"
    check(run_seeds(0, count, 1, log, profile), profile, count)


@pytest.mark.parametrize("profile", SHARES)
def test_further_graphs(
    profile: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    seconds: float = request.config.getoption("--fuzz-seconds")
    count = counts(int(seconds * GRAPHS_A_SECOND))[profile]
    log = tmp_path / "fuzz.jsonl"
    check(run_seeds(EXTRA, EXTRA + count, 1, log, profile), profile, count)


@pytest.mark.parametrize("profile", SHARES)
def test_a_seed_makes_the_same_graph_again(profile: str) -> None:
    """Whatever was generated before it in the same process."""
    first = generate(5, profile)
    generate(6, profile)
    again = generate(5, profile)
    assert first.model == again.model
    assert repr(first.feeds) == repr(again.feeds)

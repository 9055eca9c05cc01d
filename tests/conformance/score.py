"""``python -m tests.conformance.score``: how much of the suite passes, as a table.

The suite is run as its test runs it, in all variants. ``--save`` also writes the counts
to ``score.json``, from which the page of operators has them. Further arguments are
pytest's (``-n 2``).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx
import pytest

from tests.conformance.suite import Case, cases
from tests.conformance.variants import VARIANTS, variants_of

SCORE = Path(__file__).with_name("score.json")
SUITE = Path(__file__).with_name("test_suite.py")
#: What passed and what there is.
Count = tuple[int, int]


class Outcomes:
    """A plugin that notes which case passed in which variant."""

    def __init__(self) -> None:
        self.passed: dict[str, set[str]] = {name: set() for name in VARIANTS}
        self.surprises: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Return nothing; called with the outcome of each phase of each test."""
        if report.failed:
            self.surprises.append(report.nodeid.partition("::")[2])
        pair = dict(report.user_properties).get("case")
        if report.when == "call" and isinstance(pair, list):
            case, variants = pair
            for variant in variants:
                self.passed[variant].add(case)


def score(passed: Mapping[str, set[str]]) -> dict[str, Any]:
    """The counts by kind, by operator (its direct cases) and by variant."""
    every = list(cases().values())
    plain = passed["plain"]
    return {
        "onnx": onnx.__version__,
        "total": counted(every, plain),
        "kinds": _grouped(every, plain, lambda case: case.kind),
        "operators": _grouped(
            [case for case in every if case.direct],
            plain,
            lambda case: case.operators[0],
        ),
        "variants": {
            name: counted(
                [c for c in every if variant in variants_of(c, True)], passed[name]
            )
            for name, variant in VARIANTS.items()
            if passed[name]  # with ``-k``, others were not run
        },
    }


def counted(chosen: Sequence[Case], passed: set[str]) -> Count:
    """Return the numbers of passed and of chosen cases."""
    return sum(case.name in passed for case in chosen), len(chosen)


def _grouped(
    chosen: Sequence[Case], passed: set[str], key: Callable[[Case], str]
) -> dict[str, Count]:
    groups: dict[str, list[Case]] = {}
    for case in chosen:
        groups.setdefault(key(case), []).append(case)
    return {name: counted(groups[name], passed) for name in sorted(groups)}


def table(result: Mapping[str, Any]) -> Iterator[str]:
    """The lines that show a score."""
    yield f"onnx {result['onnx']}, cases through the generated source"
    yield _line("total", result["total"])
    for title, key in (("kind", "kinds"), ("variant", "variants")):
        yield f"\nby {title}"
        yield from (_line(name, count) for name, count in result[key].items())
    yield "\nby operator (cases written for it)"
    yield from (_line(name, count) for name, count in result["operators"].items())


def _line(name: str, count: Count) -> str:
    passed, total = count
    return f"  {name:42} {passed:5} / {total:5}  {passed / total:6.1%}"


def main(arguments: Sequence[str]) -> int:
    """The exit status: that of the tests."""
    given = [argument for argument in arguments if argument != "--save"]
    outcomes = Outcomes()
    options = ["--nightly", "-q", "--no-header", "--tb=no", "-r", "N"]
    status = pytest.main([str(SUITE), *options, *given], plugins=[outcomes])
    result = score(outcomes.passed)
    print(*table(result), sep="\n")
    if outcomes.surprises:
        print("\nnot as the tables have it:", *sorted(outcomes.surprises), sep="\n  ")
    if "--save" in arguments:
        SCORE.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    return int(status)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

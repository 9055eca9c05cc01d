"""Reducing a failing seed to a small graph, and printing it as a finished test.

``python -m tests.fuzz.triage 47 --profile networks`` prints a function for
``tests/fuzz/test_found.py``; ``-o FILE`` appends it to a file. ``--log fuzz.jsonl``
takes the graphs from the log of a run, instead of making them again from their seeds.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path

from tests.fuzz.checks import Report, report_of
from tests.fuzz.generator import PROFILES, FuzzCase, generate
from tests.fuzz.report import source_of_test
from tests.fuzz.shrink import shrink
from tests.fuzz.storage import case_of_json


def smallest(case: FuzzCase, report: Report, seconds: float = 60) -> FuzzCase:
    """The smallest part of ``case`` that fails as the first finding of ``report``."""
    wanted = report.findings[0]
    thorough = wanted.check in ("generated", "bf16", "int8")

    def fails(part: FuzzCase) -> bool:
        # The seed and the profile decide on which checks there are.
        part = replace(part, seed=case.seed, profile=case.profile)
        results = report_of(part, thorough).findings
        return any(f.signature == wanted.signature for f in results)

    small = shrink(case, fails, seconds)
    return replace(small, seed=case.seed, profile=case.profile)


def _case_of(seed: int, profile: str, log: Path | None) -> FuzzCase:
    """The graph of a seed, from ``log`` if there is one."""
    if log is None:
        return generate(seed, profile)
    with log.open(encoding="utf-8") as lines:
        for report in map(json.loads, lines):
            if (report["seed"], report["profile"]) == (seed, profile):
                return case_of_json(report)
    raise SystemExit(f"{log} has no seed {seed} of {profile}")


def main() -> None:
    """Shrink the seeds given as arguments, and print or write a test of each."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.triage")
    parser.add_argument("seeds", type=int, nargs="+")
    parser.add_argument("--profile", choices=[*PROFILES], default="mixed")
    parser.add_argument("--seconds", type=float, default=60, help="for each seed")
    parser.add_argument("--log", type=Path, help="log of a run, with its graphs")
    parser.add_argument("-o", dest="output", type=Path, help="file to append to")
    options = parser.parse_args()
    for seed in options.seeds:
        case = _case_of(seed, options.profile, options.log)
        report = report_of(case)
        print(f"# {options.profile} {seed}: {report.kind} {report.detail}")
        if not report.findings:
            continue
        small = smallest(case, report, options.seconds)
        for finding in report_of(small).findings[:4] or report.findings[:1]:
            print(f"#   {finding.kind}: {finding.check}, {finding.inputs}")
            print(f"#   {finding.detail}")
        text = source_of_test(small, report.findings[0], f"{options.profile}_{seed}")
        if options.output is None:
            print(text)
        else:
            with options.output.open("a", encoding="utf-8") as file:
                file.write("\n\n" + text)
        sys.stdout.flush()


if __name__ == "__main__":
    main()

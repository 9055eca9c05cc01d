"""Reducing a failing seed to a small graph, and printing it as a finished test.

``python -m tests.fuzz.triage 47 --profile networks`` prints a function for
``tests/fuzz/test_found.py``; ``-o FILE`` appends it to a file.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from tests.fuzz.checks import Report, report_of
from tests.fuzz.generator import PROFILES, FuzzCase, generate
from tests.fuzz.report import source_of_test
from tests.fuzz.shrink import shrink


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


def main() -> None:
    """Shrink the seeds given as arguments, and print or write a test of each."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.triage")
    parser.add_argument("seeds", type=int, nargs="+")
    parser.add_argument("--profile", choices=[*PROFILES], default="mixed")
    parser.add_argument("--seconds", type=float, default=60, help="for each seed")
    parser.add_argument("-o", dest="output", type=Path, help="file to append to")
    options = parser.parse_args()
    for seed in options.seeds:
        case = generate(seed, options.profile)
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

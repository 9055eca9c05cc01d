"""Reducing a failing seed to a small graph, and printing it as a test."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import onnx

from tests.fuzz.checks import Report, report_of
from tests.fuzz.generator import FuzzCase
from tests.fuzz.shrink import shrink


def smallest(case: FuzzCase, report: Report) -> FuzzCase:
    """The smallest part of ``case`` that fails as the first finding of ``report``."""
    wanted = report.findings[0]
    thorough = wanted.check in ("generated", "bf16", "int8")

    def fails(part: FuzzCase) -> bool:
        found = report_of(part, thorough).findings
        return any(f.signature == wanted.signature for f in found)

    return shrink(case, fails)


def as_text(case: FuzzCase) -> str:
    """A small case as text: the model, and the inputs."""
    lines = [onnx.printer.to_text(case.model)]
    for feeds in case.feeds:
        for name, value in feeds.items():
            lines.append(f"{name} = {_literal(value)}")
    return "\n".join(lines)


def _literal(value: Any) -> str:
    with np.printoptions(threshold=12, floatmode="unique", linewidth=100):
        return repr(value)[:250]


def main() -> None:
    """Shrink the seeds given as arguments and print them."""
    from tests.fuzz.generator import generate

    for text in sys.argv[1:]:
        case = generate(int(text))
        report = report_of(case)
        print("=" * 20, text, report.kind, report.detail)
        if not report.findings:
            continue
        small = smallest(case, report)
        print(as_text(small))
        for finding in report_of(small, True).findings[:4]:
            print("   ", finding)
        sys.stdout.flush()


if __name__ == "__main__":
    main()

"""``python -m tests.conformance.cuda junit.xml``: stores what ran on a CUDA device.

The file is what ``pytest -m cuda tests/ir --junitxml=junit.xml`` writes where there is
a device. ``docs/operators.md`` shows it.
"""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from pathlib import Path

STORED = Path(__file__).with_name("cuda.json")
TEST = "test_the_device_agrees_with_the_host["


def record(report: Path) -> dict[str, str]:
    """Return the result of each operator: ``yes``, or the reason of a failure.

    Raises:
        ValueError: an operator failed, or nothing was tested.
    """
    results: dict[str, str] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        name = case.get("name", "")
        if "test_cuda_operators" not in case.get("classname", ""):
            continue
        if case.find("failure") is not None or case.find("error") is not None:
            raise ValueError(f"expected all operators to agree, not {name}")
        skipped = case.find("skipped")
        why = "" if skipped is None else skipped.get("message", "")
        results[name.removeprefix(TEST).rstrip("]")] = f"no: {why}" if why else "yes"
    if not results:
        raise ValueError(f"expected results of test_cuda_operators in {report}")
    return dict(sorted(results.items()))


def stored() -> Mapping[str, str]:
    """Return the last recorded results, by operator name."""
    recorded: Mapping[str, str] = json.loads(STORED.read_text("utf-8"))
    return recorded


if __name__ == "__main__":
    text = json.dumps(record(Path(sys.argv[1])), indent=1)
    STORED.write_text(f"{text}\n", "utf-8")

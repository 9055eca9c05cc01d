"""``python -m tests.importer.aten.page``: writes ``docs/aten.md``.

Its sources are the rules, the table of unsupported operators, the stored names of the
core operators, and the cases.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from burn_import.frontends.torch_export.aten import COMPLEX, RULES
from burn_import.frontends.torch_export.unsupported import REASONS
from tests.conftest import ROOT
from tests.importer.aten import families
from tests.importer.aten.draws import DRAWS

CASES = (*families.CASES, *(draw.case for draw in DRAWS))
PAGE = ROOT / "docs" / "aten.md"
NAMES = json.loads(Path(__file__).with_name("names.json").read_text("utf-8"))
HEAD = """\
# Operators of exported programs

Written by `python -m tests.importer.aten.page`: do not edit.

The ATen operators that a `.pt2` file may call. Each is lowered to the
[operators of ONNX and burn](operators.md), which define its gradient, devices and
dtypes.

- *core* lists the overloads that are Core ATen operators.
- *others* lists overloads of programs that are exported without `run_decompositions()`,
  and of decompositions. In-place operators (`add_`) have the rule of the functional
  operator.
- *cases* counts the tests that compare an overload with a formula, or the distribution
  of its random numbers.
"""


def page() -> str:
    """Return the text of the page."""
    core = set(NAMES["core"])
    lines = [HEAD, summary(), ""]
    lines += ["| operator | core | others | cases |", "|---|---|---|--:|"]
    lines += rows(core)
    lines += ["", "## Not supported", ""]
    lines += ["A program that calls one of these is refused with this reason.", ""]
    for reason, targets in REASONS.items():
        names = ", ".join(
            f"`{t.removeprefix('aten.')}`" for t in sorted(targets.split())
        )
        lines += [f"- {reason}: {names}"]
    return "\n".join(lines) + "\n"


def summary() -> str:
    """Return how many of the stored names have a rule."""
    counts = []
    for kind in ("core", "exported"):
        result = sum(name in RULES or name in COMPLEX for name in NAMES[kind])
        counts.append(f"{result} of the {len(NAMES[kind])}")
    return (
        f"With PyTorch {NAMES['torch']}, {counts[0]} core operators have a rule, and "
        f"{counts[1]} others\nin exports of its layers and functions. {len(CASES)} "
        f"cases call {len({case.target for case in CASES})} operators."
    )


def rows(core: set[str]) -> Iterator[str]:
    """Yield a line for each operator, with its overloads."""
    cases = Counter(case.target.rpartition(".")[0] for case in CASES)
    results: dict[str, list[str]] = {}
    for target, entry in {**COMPLEX, **RULES}.items():
        if entry.mutates is None:
            name, _, overload = target.rpartition(".")
            results.setdefault(name, []).append(overload)
    for name, overloads in sorted(results.items()):
        kept = sorted(o for o in overloads if f"{name}.{o}" in core)
        others = sorted(set(overloads) - set(kept))
        cells = (name.removeprefix("aten."), ", ".join(kept), ", ".join(others))
        yield f"| {' | '.join(cells)} | {cases[name] or ''} |"


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), "utf-8")


if __name__ == "__main__":
    main()

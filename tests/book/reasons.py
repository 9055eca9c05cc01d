"""Why some code of the pages is not executed: one row for each reason and page."""

import re
from typing import NamedTuple

from tests.book.blocks import Unit


class Reason(NamedTuple):
    """Code of pages that match, which begins as the pattern says, is not executed."""

    pages: str
    pattern: str
    reason: str


REASONS = (
    Reason("", r"pip |python3 -m venv", "needs the package index"),
    Reason("", r"\. \.venv/bin/activate", "changes the shell alone"),
    Reason("importing|own-the-source", r"cp models", "the working folder has it"),
    Reason("options", r"eval |_BURN_IMPORT", "changes the shell alone"),
    Reason("deployment", r"python -m zipfile", "unpacks what pip downloads"),
    Reason("deployment", r"pyinstaller ", "needs PyInstaller"),
    Reason("cuda|runtime", r"import burn\n.*\n(.*\n)*?.*burn.Cuda\(0\)", "needs a GPU"),
    Reason("training", r"from burn.distributed import Nccl", "needs two GPUs"),
    Reason(
        "training", r"from burn.distributed import Mpi|opt = optim.Zero", "needs MPI"
    ),
    Reason("/pytorch", r"program = torch|torch.jit.save", "needs PyTorch"),
    Reason("torch-target", r"from app.net", "needs PyTorch"),
    Reason("/data", r"import albumentations", "needs albumentations"),
    Reason("/pytorch", r"count = self.count", "an excerpt of a method"),
    Reason("torch-target", r"@form", "that primitive has a form already"),
    Reason("models/README|examples", r"python models/fetch.py", "needs the network"),
    Reason("examples", r"(mpiexec -n 2 )?python examples/", "tests/examples runs it"),
    Reason("examples/service", r"curl ", "calls the service"),
    Reason(
        "fuzz|aten-rule|operator.md",
        r"python -m tests",
        "takes minutes, or writes a page",
    ),
    Reason("", r"python -m pytest|pytest |ruff ", "runs the tests"),
)


def reason_against(unit: Unit) -> str | None:
    """Return why a unit is not executed, or None if it is."""
    for row in REASONS:
        if re.search(row.pages, unit.page) and re.match(row.pattern, unit.text):
            return row.reason
    return None


def unused(units: list[Unit]) -> list[Reason]:
    """Return the rows that speak of no unit."""
    return [
        row
        for row in REASONS
        if not any(
            re.search(row.pages, unit.page) and re.match(row.pattern, unit.text)
            for unit in units
        )
    ]

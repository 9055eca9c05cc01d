"""Measures what the command takes for files that attack, lie or are damaged.

    python -m benchmarks.importer.hostile FOLDER ...

Each file below the folders is imported in a process of its own, from its start to its
end, Python's own start included. Those that take more than they may are listed: two
seconds of a processor, or 256 MiB of memory. Exit codes above 5 are no answer to a
file. Seconds of a processor are what other programs change least.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from benchmarks.cases import Children, print_table
from benchmarks.importer.records import spent

#: What a hostile file may take, in seconds and MiB, and the codes that answer one.
MOST_SECONDS, MOST_MEBIBYTES, ANSWERS = 2, 256, range(6)
COMMAND = """
import sys
from burn_import.cli import main
code = 0
try:
    main()
except SystemExit as error:
    code = error.code or 0
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print("\\n" + str(code), peak.split()[1])
"""
SUFFIXES = (
    *(".onnx", ".pt", ".pth", ".ckpt", ".bin", ".tar", ".pt2"),
    *(".safetensors", ".index.json", ".mpk", ".mpk.gz", ".bpk"),
)


class Answer(NamedTuple):
    """What became of a file: an exit code, processor seconds, the most MiB."""

    path: Path
    code: int
    seconds: float
    peak: float

    def is_too_much(self) -> bool:
        """Return whether the file took more than it may, or got no answer."""
        within = self.seconds < MOST_SECONDS and self.peak < MOST_MEBIBYTES
        return not within or self.code not in ANSWERS


def answers(folder: Path) -> Iterator[Answer]:
    """Return the command's messages about each file below a folder."""
    with TemporaryDirectory() as name:
        children, warm = Children(Path(name)), False
        paths = [p for p in sorted(folder.rglob("*")) if p.name.endswith(SUFFIXES)]
        for path in paths[:1] + paths:  # the first one again: it compiles the importer
            output = str(Path(name) / "net.py")
            start = spent()
            printed = children.printed(COMMAND, str(path), "-o", output, "--force")
            seconds = spent() - start
            code, peak = printed.splitlines()[-1].split()
            answer = Answer(path, int(code), seconds, int(peak) / 1024)
            if warm:
                yield answer
            warm = True


def main() -> None:
    """Print a table of the folders, and one of the files that take too much."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", type=Path, nargs="+")
    results = {folder: list(answers(folder)) for folder in parser.parse_args().folders}
    rows = []
    for folder, of in results.items():
        slowest = max(of, key=lambda answer: answer.seconds)
        largest = max(of, key=lambda answer: answer.peak)
        rows.append(
            (
                folder.name,
                str(sum(answer.code == 0 for answer in of)),
                str(sum(answer.code != 0 for answer in of)),
                f"{slowest.seconds:.2f} ({slowest.path.name})",
                f"{largest.peak:.0f} ({largest.path.name})",
            )
        )
    names = ("folder", "imported", "refused", "slowest, processor s", "largest, MiB")
    print_table(names, rows)
    print()
    too_much = [
        answer for of in results.values() for answer in of if answer.is_too_much()
    ]
    table = (
        (str(path.name), str(code), f"{seconds:.2f}", f"{peak:.0f}")
        for path, code, seconds, peak in too_much
    )
    print_table(("too much", "exit code", "seconds", "MiB"), table)


if __name__ == "__main__":
    main()

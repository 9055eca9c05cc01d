"""Measures what reading and converting files of weights takes.

    python -m benchmarks.importer.records [--gigabytes 5] [--formats safetensors ...]
        [--folder FOLDER] [--files FOLDER ...]

A checkpoint of zeros that takes no room on the disk becomes a record that does, beside
``cp --sparse=never`` and a flush of what it copied, since a record is on the disk when
its writer says so. ``cp`` does not read holes; with ``--written`` there are none.
Processor seconds are those of the processes, which other programs change less. A
checkpoint of 10 000 tensors is listed. Files below ``--files``
are read in a process each, hostile ones for instance: the slowest and the largest are
shown. Anonymous memory is sampled from ``/proc``: what the system cannot take back;
resident memory is the highest ever, pages of mapped files included.
"""

from __future__ import annotations

import argparse
import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, sleep
from typing import NamedTuple

from benchmarks.cases import Children, print_table
from benchmarks.importer.checkpoints import sparse_checkpoint, wide_checkpoint

CONVERT = "from burn_import.cli import main; main()"
LIST = """
import sys, time
from burn_import.pytorch import read
start = time.perf_counter()
found = read(sys.argv[1])
count = len([(name, tensor.dtype, tensor.shape) for name, tensor in found.items()])
print(f"{count} {time.perf_counter() - start}")
"""
READ = """
import sys, time
from burn.record import RecordError, read_record
from burn_import.pytorch import read
from burn_ir import ModelError
start = time.perf_counter()
path = sys.argv[1]
try:
    if path.endswith((".mpk", ".mpk.gz", ".bpk")):
        [array for array in read_record(path).values()]
    else:
        [tensor.array() for tensor in read(path).values()]
    word = "read"
except (ModelError, RecordError) as error:
    word = "refused"
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(word, time.perf_counter() - start, peak.split()[1])
"""
KINDS = ("safetensors", "bpk", "mpk", "bin")
SAMPLE_SECONDS = 0.005
SUFFIXES = (".pt", ".pth", ".bin", ".ckpt", ".tar", ".safetensors", ".index.json")


class Usage(NamedTuple):
    """Seconds from start to end and of processors, and the most memory in MiB."""

    seconds: float
    processor: float
    anonymous: float
    resident: float


def spent() -> float:
    """The processor seconds of this process and of those it started that ended."""
    return sum(os.times()[:4])


def watched(process: subprocess.Popen[str]) -> Usage:
    """Return the seconds and the memory of a process.

    Raises:
        RuntimeError: it fails.
    """
    start, before, idle = perf_counter(), spent(), os.times()[:2]
    anonymous = resident = 0
    while process.poll() is None:
        status = _status(process.pid)
        anonymous = max(anonymous, status.get("RssAnon", 0) + status.get("RssShmem", 0))
        resident = max(resident, status.get("VmHWM", 0))
        sleep(SAMPLE_SECONDS)
    seconds = perf_counter() - start
    output, errors = process.communicate()
    if process.returncode:
        raise RuntimeError(f"{process.args!r} failed: {output}{errors}")
    own = os.times()[:2]  # sampling takes time too
    processor = spent() - before - (sum(own) - sum(idle))
    return Usage(seconds, processor, anonymous / 1024, resident / 1024)


def _status(pid: int) -> dict[str, int]:
    """The sizes in KiB of a process by the kernel; empty if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return {}
    pairs = (line.split(":", 1) for line in lines)
    return {
        name: int(value.split()[0])
        for name, value in pairs
        if value.split()[1:] == ["kB"]
    }


def copied(source: Path, target: Path, keep: bool = False) -> Usage:
    """Return the seconds of ``cp`` and of writing the copy to disk."""
    start, before = perf_counter(), spent()
    subprocess.run(["cp", "--sparse=never", source, target], check=True)
    with open(target, "rb+") as file:
        os.fsync(file.fileno())
    usage = Usage(perf_counter() - start, spent() - before, 0, 0)
    if not keep:
        target.unlink()
    return usage


def conversions(
    children: Children,
    folder: Path,
    size: int,
    repetitions: int,
    kinds: Sequence[str],
    written: bool,
) -> Iterator[tuple[str, ...]]:
    """The rows of a table of formats, the copy first.

    The first conversion is not counted: it leaves the bytecode of the importer, and
    the source, where it fits, in the memory of the system. Copies and conversions take
    turns, as a disk and other programs change their pace.
    """
    source = sparse_checkpoint(folder / "net.pt", size)
    if written:
        copied(source, folder / "written.pt", keep=True)
        source = folder / "written.pt"
    places_of = {kind: (source, folder / f"net.{kind}") for kind in kinds}
    converted(children, *places_of[kinds[0]])
    usages: dict[str, list[Usage]] = {"cp": [], **{kind: [] for kind in kinds}}
    for _ in range(repetitions):
        usages["cp"].append(copied(source, folder / "copy"))
        for kind, places in places_of.items():
            usages[kind].append(converted(children, *places))
    best = min(usage.seconds for usage in usages["cp"])
    least = min(usage.processor for usage in usages["cp"])
    for kind, results in usages.items():
        seconds = [usage.seconds for usage in results]
        processor = min(usage.processor for usage in results)
        yield (
            f".pt to .{kind}" if kind != "cp" else "cp and flush",
            f"{min(seconds):.2f}",
            f"{max(seconds):.2f}",
            f"{min(seconds) / best:.2f}",
            f"{processor:.2f}",
            f"{processor / least:.2f}",
            f"{max(usage.anonymous for usage in results):.0f}",
            f"{max(usage.resident for usage in results):.0f}",
        )


def converted(children: Children, source: Path, target: Path) -> Usage:
    """Return the seconds of the command to write a record, which is removed."""
    usage = watched(children.start(CONVERT, str(source), "-o", str(target)))
    target.unlink()
    return usage


class Reading(NamedTuple):
    """What became of a file, in seconds and KiB."""

    path: Path
    word: str
    seconds: float
    peak: int


def of_each(children: Children, folders: list[Path]) -> Iterator[tuple[str, ...]]:
    """The rows of a table of files: how many, the slowest and the largest."""
    for folder in folders:
        results = []
        for path in sorted(folder.rglob("*")):
            if _is_read(path):
                word, seconds, peak = children.printed(READ, str(path)).split()
                results.append(Reading(path, word, float(seconds), int(peak)))
        if not results:
            continue
        slowest = max(results, key=lambda reading: reading.seconds)
        largest = max(results, key=lambda reading: reading.peak)
        refused = sum(reading.word == "refused" for reading in results)
        yield (
            folder.name,
            str(len(results) - refused),
            str(refused),
            f"{slowest.seconds:.2f} ({slowest.path.name})",
            f"{largest.peak / 1024:.0f} ({largest.path.name})",
        )


def _is_read(path: Path) -> bool:
    return path.is_file() and path.name.endswith((*SUFFIXES, ".bpk", ".mpk", ".mpk.gz"))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=5)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--written", action="store_true", help="no holes in the source")
    parser.add_argument("--formats", nargs="*", choices=KINDS)
    parser.add_argument(
        "--folder", type=Path, help="a disk with room for twice as much"
    )
    parser.add_argument("--files", type=Path, nargs="*", default=[])
    options = parser.parse_args()
    with TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        children = Children(folder)
        size = int(options.gigabytes * 1e9)
        kinds = options.formats or KINDS
        how = (options.repetitions, kinds, options.written)
        rows = conversions(children, folder, size, *how)
        memory = ("anonymous MiB", "resident MiB")
        print_table(
            (f"{size / 1e9:g} GB", "seconds", "longest", "of cp", *memory), rows
        )
        many = wide_checkpoint(folder / "many.pt", 10_000)
        listed = [children.printed(LIST, str(many)).split() for _ in range(5)]
        best = min(float(seconds) for _, seconds in listed)
        print(f"\n{listed[0][0]} tensors are listed in {best:.2f} seconds\n")
        if options.files:
            names = ("files", "read", "refused", "slowest, seconds", "largest, MiB")
            print_table(names, of_each(children, options.files))


if __name__ == "__main__":
    main()

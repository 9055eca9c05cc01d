"""What reading a file takes, in a process that has nothing else in it."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.pace import slowness

#: What a hostile file may take: seconds of a processor, and bytes of memory in all.
MOST_SECONDS, MOST_BYTES = 2, 256 * 2**20
ROOT = Path(__file__).parent.parent.parent
SOURCES = ("importer", "ir", "templates", "runtime")
#: Each file is read in a copy of a process that has imported the readers before.
CODE = """
import json, os, sys
from pathlib import Path
import burn_import.weights, burn_import.frontends.checkpoints.store, burn.record
from burn.record import RecordError
from burn_ir import ModelError

def outcome(path):
    try:
        for _, array in burn_import.weights.opened(Path(path)).weights:
            array.tobytes()
    except (ModelError, RecordError):
        return 0
    return 1

for path in json.load(sys.stdin):
    child = os.fork()
    if not child:
        os._exit(outcome(path))
    _, status, usage = os.wait4(child, 0)
    code = os.waitstatus_to_exitcode(status)
    print(json.dumps([code, usage.ru_utime + usage.ru_stime, usage.ru_maxrss]))
"""

#: The same for models: each is imported as a module, and nothing is written.
IMPORT = CODE.replace(
    "import burn_import.weights, burn_import.frontends.checkpoints.store, burn.record",
    "import black, burn_import.pipeline, burn_import.frontends.onnx\n"
    "import burn_import.codegen.gate.gate\n"
    "import burn_import.compiler, burn.record, resource\n"
    f"LIMITS = {(('RLIMIT_AS', 8 * 2**30), ('RLIMIT_CPU', 30))}",
).replace(
    """for _, array in burn_import.weights.opened(Path(path)).weights:
            array.tobytes()""",
    "burn_import.pipeline.import_model(path)",
)
#: A process that goes far beyond is ended before it harms the machine.
IMPORT = IMPORT.replace(
    "        os._exit(",
    "        for name, most in LIMITS:\n"
    "            resource.setrlimit(getattr(resource, name), (most, most))\n"
    "        os._exit(",
)


CONVERT = """
import sys
from burn_import.weights import convert
convert(*sys.argv[1:])
with open("/proc/self/status") as status:  # resource would tell of the parent too
    print(next(line for line in status if line.startswith("VmHWM")).split()[1])
"""


class Taken(NamedTuple):
    """1 for a file that was read and 0 for one that was refused; seconds; KiB."""

    code: int
    seconds: float
    peak: int


def started(code: str, *arguments: str, given: str = "") -> str:
    """Return what a process that runs ``code`` prints."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        input=given,
        env={"PYTHONPATH": ":".join(str(ROOT / name) for name in SOURCES)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def converting(source: Path, target: Path) -> int:
    """Return the most bytes, mapped ones included, that a conversion has in memory."""
    return 1024 * int(started(CONVERT, str(source), str(target)))


def taken(paths: Sequence[Path], code: str = CODE) -> list[Taken]:
    """Return what each file takes; a failure of another kind has its exit code."""
    printed = started(code, given=json.dumps([str(path) for path in paths]))
    return [Taken(*json.loads(line)) for line in printed.splitlines()]


def check(paths: Sequence[Path], code: str = CODE) -> str:
    """Return one line about all files, none of which takes more than it may."""
    results = dict(zip(paths, taken(paths, code), strict=True))
    slow = any(used.seconds >= MOST_SECONDS for used in results.values())
    most = MOST_SECONDS * (slowness() if slow else 1)
    wrong = [
        f"{path.name}: {used}"
        for path, used in results.items()
        if used.code not in (0, 1)
        or used.seconds >= most
        or used.peak * 1024 >= MOST_BYTES
    ]
    assert not wrong, "\n".join(wrong)
    slowest = max(results, key=lambda path: results[path].seconds)
    largest = max(results, key=lambda path: results[path].peak)
    return (
        f"{len(results)} files, {sum(used.code for used in results.values())} read; "
        f"the slowest {results[slowest].seconds:.2f} s ({slowest.name}), "
        f"the largest {results[largest].peak / 1024:.0f} MiB ({largest.name})"
    )

"""One forked process for each task, with limits on its time and memory.

The parent imports the libraries once and never computes anything: no threads run when
it forks, and oneDNN is not loaded yet.
"""

from __future__ import annotations

import gc
import os
import resource
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from tests.wild.entry import Task
from tests.wild.results import Row, row_from_json

if TYPE_CHECKING:
    from tests.wild.examine import Examination

#: The module and the class that examine a task.
EXAMINATION = "tests.wild.examine:Examination"
#: Modules that nearly every task needs, imported before the first fork.
WARM_MODULES = (
    *("torch", "torch.export", "torch.onnx", "onnx", "onnxruntime", "black", "jinja2"),
    *("torch._export.utils", "torch._export.verifier", "torch._export.serde.serialize"),
    *("torch.onnx._internal.exporter._core", "torch.onnx._internal.exporter._compat"),
    *("onnxscript", "onnxscript.optimizer", "onnxscript.version_converter"),
    *("torch.onnx._internal.torchscript_exporter.utils", "transformers"),
    *(
        "burn_import.pipeline",
        "burn_import.compiler",
        "burn_import.frontends.torch_export.reader",
    ),
    *("burn_import.frontends.torchscript.reader", "burn_import.frontends.onnx.reader"),
    *("tests.wild.examine", "transformers.modeling_utils"),
)
#: The stages that belong to PyTorch, an exporter or another runtime.
FOREIGN_STAGES = {
    "": "model failed",
    "build": "model failed",
    "torch": "model failed",
    "export": "exporter failed",
    "reference": "model failed",
    "second reference": "model failed",
}


@dataclass(frozen=True)
class Limits:
    """Limits of one task: seconds of processor time and bytes of memory.

    A machine that is busy with other work gives a process less than a second for each
    second that passes, so the time that passes is limited to ``patience`` times that.
    """

    seconds: float = 120.0
    memory: int = 8 << 30
    patience: float = 4.0


@dataclass
class Running:
    """A forked process, the task it works on and the folder it writes to."""

    task: Task
    folder: Path
    started: float = field(default_factory=time.monotonic)


def warm_up() -> None:
    """Import modules that tasks need, if they are installed."""
    for name in WARM_MODULES:
        if find_spec(name.partition(".")[0]) is None:
            continue
        try:
            import_module(name)
        except ImportError:
            continue
    gc.collect()
    gc.freeze()


def run_tasks(
    tasks: Sequence[Task],
    jobs: int,
    limits: Limits,
    report: Callable[[Row], None],
    budget: float | None = None,
    examination: str = EXAMINATION,
) -> None:
    """Run ``tasks`` in ``jobs`` processes at a time and report a row for each.

    ``examination`` is the module and the class whose ``run`` gives the row.

    After ``budget`` seconds nothing is started any more, and what still runs is
    stopped without a row.
    """
    deadline = time.monotonic() + budget if budget is not None else float("inf")
    waiting = list(reversed(tasks))
    running: dict[int, Running] = {}
    with tempfile.TemporaryDirectory(prefix="wild-") as root:
        try:
            while (waiting or running) and time.monotonic() < deadline:
                while waiting and len(running) < jobs:
                    task = waiting.pop()
                    running_task = Running(task, Path(tempfile.mkdtemp(dir=root)))
                    pid = _start(running_task, limits, examination)
                    running[pid] = running_task
                for row in _finished(running, limits):
                    report(row)
                time.sleep(0.02)
        finally:
            for pid in running:
                _kill(pid)


def _finished(running: dict[int, Running], limits: Limits) -> Iterator[Row]:
    """Yield the rows of processes that ended or ran out of time, and forget them."""
    for pid, state in list(running.items()):
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            yield _result(state, status)
        elif time.monotonic() - state.started > limits.seconds * limits.patience:
            _kill(pid)
            yield failed_row(state.task, _stage(state), "timeout", True)
        else:
            continue
        del running[pid]
        shutil.rmtree(state.folder, ignore_errors=True)


def _kill(pid: int) -> None:
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def _stage(state: Running) -> str:
    path = state.folder / "stage"
    return path.read_text("utf-8") if path.exists() else ""


def _result(state: Running, status: int) -> Row:
    path = state.folder / "row.json"
    if path.exists():
        return row_from_json(path.read_text("utf-8"))
    code = os.waitstatus_to_exitcode(status)
    if code == -signal.SIGXCPU:
        return failed_row(state.task, _stage(state), "timeout", True)
    cause = f"killed by signal {-code}" if code < 0 else f"exited with {code}"
    log = state.folder / "log"
    lines = (
        log.read_text("utf-8", "replace").strip().splitlines() if log.exists() else []
    )
    return failed_row(state.task, _stage(state), " ".join([cause, *lines[-1:]]), False)


def failed_row(task: Task, stage: str, cause: str, is_timeout: bool) -> Row:
    """Return the row of a task that ended without one, by the stage it was in."""
    entry = task.entry
    row = Row(task.key, entry.library, entry.family, entry.name, task.format)
    own = "timeout" if is_timeout else "internal error"
    row.outcome = FOREIGN_STAGES.get(stage, own)
    row.stage, row.cause = stage, cause
    return row


def _start(state: Running, limits: Limits, examination: str) -> int:
    """Fork a process for a task and return its id."""
    pid = os.fork()
    if pid:
        os.setpgid(pid, pid)  # here too, so that the group exists when this returns
        return pid
    code = 1
    try:
        os.setpgid(0, 0)
        _isolate(state.folder, limits)
        _work(state, examination)
        code = 0
    finally:
        os._exit(code)


def _isolate(folder: Path, limits: Limits) -> None:
    """Limit this process, and write its output to a log."""
    resource.setrlimit(resource.RLIMIT_DATA, (limits.memory, limits.memory))
    seconds = int(limits.seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)


def _work(state: Running, examination: str) -> None:
    import sys
    import traceback
    import warnings

    warnings.simplefilter("ignore")
    try:
        module, _, name = examination.partition(":")
        kind: type[Examination] = getattr(import_module(module), name)
        files = state.folder / "files"
        files.mkdir()
        stage = state.folder / "stage"

        def announce(name: str) -> None:
            stage.write_text(name, "utf-8")

        row = kind(state.task, files, announce).run()
        (state.folder / "row.part").write_text(row.to_json(), "utf-8")
        (state.folder / "row.part").rename(state.folder / "row.json")
    finally:
        if sys.exc_info()[0] is not None:
            traceback.print_exc()
        sys.stderr.flush()

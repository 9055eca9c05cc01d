"""Profiles of plans: the time and the engine of each step."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from inspect import currentframe
from time import perf_counter_ns
from typing import Any

import numpy as np

from burn.box import Box
from burn.plan.plan_ir import Origin, Read, Segment, Step
from burn.tensor import Tensor

_HEADER = ("ms", "share", "primitive", "result", "engine", "from", "why")
_PACKAGE = __name__.partition(".")[0]
# The number of warm-up runs (the first run of a branch binds it), the minimum number
# of timed runs, and the nanoseconds after which no more are added.
_WARM, _LEAST, _MOST, _ENOUGH = 2, 5, 50, 1_000_000_000
# How many runs of one plan follow each other.
_BLOCK = 5


@dataclass(frozen=True)
class ProfileRow:
    """A profile row: one step, or several that one generated kernel computes.

    ``primitives`` are in plan order, ``result`` is the type of the last result.
    ``module`` is the path of the calling module, ``line`` the file and line; both are
    empty if unknown. ``engines`` are some of ``"oneDNN"``, ``"LLVM"`` (generated
    kernels), ``"NumPy"`` and ``"check"`` (of magnitudes that the plan relies on),
    ``kernels`` the names of the kernels. ``share`` is the fraction of the time of all
    rows. ``reason`` says why no faster engine computes the step, if known.
    """

    primitives: tuple[str, ...]
    result: str
    module: str
    line: str
    engines: tuple[str, ...]
    kernels: tuple[str, ...]
    ms: float
    share: float
    reason: str


@dataclass(frozen=True)
class Profile:
    """The rows of a plan in execution order.

    ``total_ms`` is the time of whole calls without profiling, ``runs`` the number of
    runs. All times are means of the quickest quarter of the runs, so that they add up:
    the overhead of a call (inputs, results, Python) is the difference of ``total_ms``
    and the sum of the rows. ``str()`` lists the rows by time.
    """

    rows: tuple[ProfileRow, ...]
    total_ms: float
    runs: int

    @property
    def steps_ms(self) -> float:
        """The total time of all rows in milliseconds."""
        return sum(row.ms for row in self.rows)

    @property
    def by_time(self) -> list[ProfileRow]:
        """Return the rows, slowest first."""
        return sorted(self.rows, key=lambda row: -row.ms)

    @property
    def by_engine(self) -> dict[str, float]:
        """Return the milliseconds by engine, slowest first; ``+`` joins names."""
        totals: dict[str, float] = {}
        for row in self.by_time:
            name = " + ".join(row.engines)
            totals[name] = totals.get(name, 0.0) + row.ms
        return dict(sorted(totals.items(), key=lambda item: -item[1]))

    def to_json(self) -> dict[str, Any]:
        """Return the profile as dicts, lists, strings and numbers."""
        return {**asdict(self), "steps_ms": self.steps_ms, "by_engine": self.by_engine}

    def to_text(self, most: int | None = None) -> str:
        """Return the ``most`` slowest rows as a table, with the times of engines."""
        cells = [_HEADER, *map(_cells, self.by_time[:most])]
        widths = [max(len(row[i]) for row in cells) for i in range(len(_HEADER))]
        lines = [
            "  ".join(
                f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)
            )
            for row in cells
        ]
        engines = ", ".join(f"{name} {ms:.3f}" for name, ms in self.by_engine.items())
        lines.append(
            f"{len(self.rows)} steps: {self.steps_ms:.3f} ms ({engines or 'none'}); "
            f"a call: {self.total_ms:.3f} ms; means of the quickest quarter of "
            f"{self.runs} runs"
        )
        return "\n".join(line.rstrip() for line in lines)

    def __str__(self) -> str:
        return self.to_text()


def _cells(row: ProfileRow) -> tuple[str, ...]:
    engine = " + ".join(row.engines)
    kernels = ", ".join(row.kernels)
    source = " ".join(part for part in (row.module, row.line) if part)
    return (
        *(f"{row.ms:.3f}", f"{row.share:.1%}", ", ".join(row.primitives), row.result),
        *(f"{engine}: {kernels}" if kernels else engine, source, row.reason),
    )


@dataclass
class _Timing:
    """The calls of one row, and the nanoseconds of each by the number of the run."""

    steps: tuple[Step | Read, ...]
    engines: dict[str, None] = field(default_factory=dict)
    kernels: dict[str, None] = field(default_factory=dict)
    reasons: dict[str, None] = field(default_factory=dict)
    calls: list[dict[int, int]] = field(default_factory=list)

    def total(self, run: int) -> int:
        """Return the nanoseconds of one run."""
        return sum(times.get(run, 0) for times in self.calls)


class Profiler:
    """The timed calls of a plan, and the origins of its steps."""

    def __init__(self, function: Callable[..., Any]) -> None:
        owner = getattr(function, "__self__", function)
        listed = getattr(owner, "modules", None)
        modules = listed() if callable(listed) else ()
        self._paths = {id(module): path for path, module in modules}
        self._origins: dict[int, Origin] = {}
        self._timings: dict[tuple[int, ...], _Timing] = {}
        self._saved: dict[Box, Tensor] = {}
        self._runs = 0

    def origin(self) -> Origin:
        """Return the module and the line of the call that is being recorded."""
        module, line = None, ""
        frame = currentframe()
        while frame is not None and (module is None or not line):
            code = frame.f_code
            if module is None and code.co_varnames[:1] == ("self",):
                module = self._paths.get(id(frame.f_locals.get("self")))
            package = frame.f_globals.get("__name__", "").partition(".")[0]
            if not line and package != _PACKAGE:
                name = code.co_filename.replace("\\", "/").rpartition("/")[2]
                # Modules compiled in memory have no file.
                prefix = "line " if name.startswith("<") else f"{name}:"
                line = f"{prefix}{frame.f_lineno}"
            frame = frame.f_back
        return Origin(module or "", line)

    def trace_origins(self, recorded: Segment, lowered: Segment) -> None:
        """Propagate origins from recorded steps to the steps that passes made of them.

        A step that computes a recorded value has its origin, any other step that of a
        consumer. A value has the same place in both segments.
        """
        origins: dict[int, Origin] = {}
        for step in _steps(recorded):
            if isinstance(step, Step) and step.origin is not None:
                origins.update(dict.fromkeys(step.outputs, step.origin))
        for step in reversed(list(_steps(lowered))):
            if isinstance(step, Step):
                origins_of_outputs = (origins[p] for p in step.outputs if p in origins)
                origin = next(origins_of_outputs, Origin())
                self._origins[id(step)] = origin
                for slot in step.operand_places:
                    origins.setdefault(slot, origin)

    def save(self, box: Box, value: Tensor) -> None:
        """Save the value of a box before the function sets it, for :meth:`restore`."""
        self._saved.setdefault(box, value)

    def restore(self) -> None:
        """Restore the saved values of all boxes."""
        for box, value in self._saved.items():
            box.set(value.detach())

    def measured(
        self,
        call: Callable[..., Any],
        steps: tuple[Step | Read, ...],
        engine: str,
        kernel: str,
        reasons: Iterable[str] = (),
    ) -> Callable[..., Any]:
        """Return ``call`` with a timer that adds to the row of ``steps``."""
        timing = self._timings.setdefault(tuple(map(id, steps)), _Timing(steps))
        timing.engines[engine] = timing.kernels[kernel] = None
        timing.reasons.update(dict.fromkeys(reasons))
        times: dict[int, int] = {}
        timing.calls.append(times)

        def run(*args: Any) -> Any:
            start = perf_counter_ns()
            result = call(*args)
            times[self._runs] = perf_counter_ns() - start
            return result

        return run

    def start_run(self) -> None:
        """Begin a run: the next times are its own."""
        self._runs += 1

    def forget_times(self) -> None:
        """Discard the times so far, which include binding."""
        self._runs = 0
        for timing in self._timings.values():
            for times in timing.calls:
                times.clear()

    def profile(self, totals: list[int]) -> Profile:
        """Return the profile, with the nanoseconds of whole calls without profiling."""
        timings = list(self._timings.values())
        wholes = {
            run: sum(timing.total(run) for timing in timings)
            for run in range(1, self._runs + 1)
        }
        runs = _quickest(sorted(wholes, key=lambda run: wholes[run]))
        means = [np.mean([timing.total(run) for run in runs]) for timing in timings]
        whole = sum(means) or 1
        rows = tuple(
            self._row(timing, float(time), float(time / whole))
            for timing, time in zip(timings, means, strict=True)
            if time
        )
        total = np.mean(_quickest(sorted(totals)))
        return Profile(rows, float(total) / 1e6, len(totals))

    def _row(self, timing: _Timing, time: float, share: float) -> ProfileRow:
        last = timing.steps[-1] if timing.steps else None
        origin = self._origins.get(id(last), Origin())
        return ProfileRow(
            primitives=tuple(map(_name, timing.steps)),
            result=_result(last),
            module=origin.module,
            line=origin.line,
            engines=tuple(timing.engines),
            kernels=tuple(timing.kernels),
            ms=time / 1e6,
            share=share,
            reason="; ".join(timing.reasons),
        )


def _steps(segment: Segment) -> Iterator[Step | Read]:
    """Yield the steps of a segment and its successors."""
    yield from segment.steps
    for child in segment.children.values():
        yield from _steps(child)


def _quickest(runs: list[int]) -> list[int]:
    """Return the first quarter of the runs, which are sorted by time."""
    return runs[: (len(runs) + 3) // 4]


def _name(step: Step | Read) -> str:
    return step.primitive.name if isinstance(step, Step) else "read"


def _result(step: Step | Read | None) -> str:
    if not isinstance(step, Step) or not step.shapes:
        return ""
    return f"{step.dtypes[0]}{list(step.shapes[0])}"


def profile_calls(
    profiler: Profiler,
    call: Callable[[], Any],
    measured_call: Callable[[], Any],
    notes: Callable[[], list[str]],
) -> Profile:
    """Return the profile of ``measured_call``, in blocks that alternate with ``call``.

    Raises:
        ValueError: no step was timed; ``notes`` are part of the message.
    """
    measured_call()  # records and binds
    for _ in range(_WARM):
        call()
        measured_call()
    profiler.forget_times()
    totals: list[int] = []
    start = perf_counter_ns()
    while len(totals) < _LEAST or (
        len(totals) < _MOST and perf_counter_ns() - start < _ENOUGH
    ):
        # In blocks, since the first run of a plan copies the boxes that the other plan
        # set.
        for _ in range(_BLOCK):
            before = perf_counter_ns()
            call()
            totals.append(perf_counter_ns() - before)
        for _ in range(_BLOCK):
            profiler.start_run()
            measured_call()
    profile = profiler.profile(totals)
    if not profile.rows:
        why = "; ".join(notes()) or "the plan has no steps, or its device no profile"
        raise ValueError(f"expected a plan whose steps can be measured: {why}")
    return profile

"""Alignment of recorded runs to a program with symbolic dimensions."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from math import prod
from typing import Any

import numpy as np

from burn.box import Box
from burn.plan.plan_ir import Read, Slot, Step
from burn.plan.pytree import mapped
from burn.plan.recorder import RecordedValue, UnplannableError
from burn.tensor import Tensor, innermost
from burn_import.export.errors import ExportError, Source
from burn_import.export.recorder import ExportRecorder
from burn_ir.dim import Dim, bind, floor_div, maximum, minimum, symbol, unnamed

Sizes = Mapping[str, int]
#: The largest divisor that is tried.
_LARGEST = 128


def fit_dim(values: Sequence[int], runs: Sequence[Sizes]) -> Dim | None:
    """Return the formula that has ``values`` in ``runs``, or None."""
    if len(set(values)) == 1:
        return int(values[0])
    names = tuple(runs[0])
    for form in (_product, _linear, _extremum):
        candidate = form(values, runs, names)
        if candidate is not None:
            return candidate
    return _quotient(values, runs, names)


def _holds(dim: Dim, values: Sequence[int], runs: Sequence[Sizes]) -> bool:
    return all(bind(dim, run) == v for v, run in zip(values, runs, strict=True))


def _product(
    values: Sequence[int], runs: Sequence[Sizes], names: tuple[str, ...]
) -> Dim | None:
    """Return ``c * a * b``, or ``a * b // c`` where the division is exact."""
    for count in range(1, len(names) + 1):
        for chosen in combinations(names, count):
            total = prod((symbol(n) for n in chosen), start=1)
            base = [prod(run[name] for name in chosen) for run in runs]
            if all(v and b % v == 0 for v, b in zip(values, base, strict=True)):
                candidate = floor_div(total, base[0] // values[0])
            elif base[0] and values[0] % base[0] == 0:
                candidate = total * (values[0] // base[0])
            else:
                continue
            if _holds(candidate, values, runs):
                return candidate
    return None


def _linear(
    values: Sequence[int], runs: Sequence[Sizes], names: tuple[str, ...]
) -> Dim | None:
    """Return ``c + k * a + m * b``; the run n + 1 changes only the n-th name."""
    total: Dim = values[0]
    for number, name in enumerate(names, 1):
        change = runs[number][name] - runs[0][name]
        slope, rest = divmod(values[number] - values[0], change)
        if rest:
            return None
        total = total + (symbol(name) - runs[0][name]) * slope
    return total if _holds(total, values, runs) else None


def _extremum(
    values: Sequence[int], runs: Sequence[Sizes], names: tuple[str, ...]
) -> Dim | None:
    """Return ``max(a + c, d)`` or ``min(c - a, d)`` of an extent ``a``.

    Three runs must tell the sum, since the number is one of the values as well.
    """
    for name, sign in product(names, (1, -1)):
        sums = Counter(v - sign * r[name] for v, r in zip(values, runs, strict=True))
        offset, count = sums.most_common(1)[0]
        if count < min(3, len(values) - 1):
            continue
        total = symbol(name) * sign + offset
        for number, choose in product(sorted(set(values)), (maximum, minimum)):
            candidate = choose(total, number)
            if _holds(candidate, values, runs):
                return candidate
    return None


def _quotient(
    values: Sequence[int], runs: Sequence[Sizes], names: tuple[str, ...]
) -> Dim | None:
    """Return ``(a + r) // d * k``, the form of strided window counts."""
    for name in names:
        extent = symbol(name)
        for divisor in range(2, _LARGEST + 1):
            first = values[0] * divisor - runs[0][name]
            for rest in range(first, first + divisor):
                candidate = floor_div(extent + rest, divisor)
                if _holds(candidate, values, runs):
                    return candidate
    return None


@dataclass(frozen=True)
class Recording:
    """A recorded run: its recorder, the number of inputs, and the result's slots."""

    recorder: ExportRecorder
    inputs: tuple[tuple[tuple[int, ...], Any], ...]
    result: Any
    sizes: Sizes


@dataclass(frozen=True)
class ExportCall:
    """A call with symbolic dimensions in its arguments and result types."""

    step: Step
    args: tuple[Any, ...]
    static: dict[str, Any]
    shapes: tuple[tuple[Dim, ...], ...]
    source: Source


@dataclass
class Program:
    """The exported program: inputs, boxes, calls and the result.

    ``constants`` are the results of calls that are equal in all runs, by slot.
    """

    inputs: list[tuple[tuple[Dim, ...], Any]]
    reads: dict[int, Box] = field(default_factory=dict)
    calls: list[ExportCall] = field(default_factory=list)
    constants: dict[int, Any] = field(default_factory=dict)
    result: Any = None
    notes: list[str] = field(default_factory=list)


def record(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    named: Mapping[str, Any],
    recorder: ExportRecorder,
    sizes: Sizes,
) -> Recording:
    """Run ``function`` once and record it.

    Raises:
        ExportError: it reads tensor values, sets boxes, or returns a non-tensor.
    """
    inputs: list[Tensor] = []

    def place(leaf: Any) -> Any:
        if type(leaf) is not Tensor:
            return leaf
        moved = Tensor(recorder.device.import_tensor(innermost(leaf)), recorder.device)
        inputs.append(moved)
        return recorder.new(moved)

    arguments = mapped(place, (list(args), dict(named)))
    try:
        with recorder.undone_unless_planned(), recorder.active():
            result = function(*arguments[0], **arguments[1])
            slots = mapped(_result_leaf, result)
            _check_writes(function, recorder)
    except UnplannableError as error:
        raise ExportError(f"the function cannot be recorded: {error}") from error
    types = tuple((tensor.shape, tensor.dtype) for tensor in inputs)
    return Recording(recorder, types, slots, sizes)


def _check_writes(function: Any, recorder: ExportRecorder) -> None:
    if not recorder.writes:
        return
    names: dict[Box, str] = {}
    if hasattr(function, "boxes"):
        names = {box: name for name, box in function.boxes()}
    shown = sorted(names.get(box, type(box).__name__) for box in recorder.writes)
    raise ExportError(
        f"the module sets its state ({', '.join(shown)}), which a graph cannot; "
        "pass the state as an argument and return it, or export without training"
    )


def _result_leaf(leaf: Any) -> Any:
    if type(leaf) is not Tensor:
        if isinstance(leaf, Box):
            return _result_leaf(leaf.value)
        return leaf
    inner = innermost(leaf)
    return Slot(inner.data.place) if type(inner.data) is RecordedValue else inner


def align(recordings: Sequence[Recording]) -> Program:
    """Return the common program of all ``recordings``.

    Raises:
        ExportError: the runs differ in more than integers with a formula.
    """
    first = recordings[0]
    runs = [recording.sizes for recording in recordings]
    events = [recording.recorder.events for recording in recordings]
    merge = _Merge(runs)
    shapes = zip(*(recording.inputs for recording in recordings), strict=True)
    program = Program(
        [(merge.shape([t[0] for t in each]), each[0][1]) for each in shapes]
    )
    lines = sorted({str(source) for source in first.recorder.reads})
    program.notes = [f"{line}: the value is that of the example" for line in lines]
    for number, source in enumerate(first.recorder.sources):
        steps = [each[number] if number < len(each) else None for each in events]
        step = steps[0]
        if isinstance(step, Read):
            program.reads[step.place] = step.box
        elif isinstance(step, Step):
            _check_same(steps, source, runs)
            program.calls.append(merge.call(steps, source))
    for recorded, run in zip(events, runs, strict=True):
        if len(recorded) != len(events[0]):
            raise _other_calls(first.recorder.sources[-1], run)
    program.reads |= {
        e.place: e.box
        for e in events[0][len(first.recorder.sources) :]
        if isinstance(e, Read)
    }
    program.result = merge.value([r.result for r in recordings], Source())
    for slot, tensor in first.recorder.constants.items():
        others = [recording.recorder.constants.get(slot) for recording in recordings]
        if all(other is not None and _equal(tensor, other) for other in others):
            program.constants[slot] = tensor
    return program


def _check_same(steps: Sequence[Any], source: Source, runs: Sequence[Sizes]) -> None:
    first = steps[0]
    for other, run in zip(steps, runs, strict=True):
        if (
            not isinstance(other, Step)
            or other.primitive is not first.primitive
            or other.outputs != first.outputs
        ):
            raise _other_calls(source, run)


def _other_calls(source: Source, run: Sizes) -> ExportError:
    shown = ", ".join(f"{name}={size}" for name, size in run.items())
    shown = shown or "other data"
    return ExportError(
        f"{source}: with {shown} the module calls other operations than with "
        "the example (a loop or a branch of Python); leave this dimension fixed, or "
        "pass specialize=True (--specialize) for the operations that the example runs"
    )


def _equal(a: Any, b: Any) -> bool:
    left, right = a.numpy(), b.numpy()
    return bool(left.shape == right.shape and left.tobytes() == right.tobytes())


class _Merge:
    """Merging of the steps at one position in all runs."""

    def __init__(self, runs: Sequence[Sizes]) -> None:
        self.runs = runs

    def call(self, steps: Sequence[Any], source: Source) -> ExportCall:
        """Return the common call of all ``steps``."""
        args = tuple(
            self.value(list(each), source)
            for each in zip(*(s.args for s in steps), strict=True)
        )
        static = {
            name: self.value([s.static[name] for s in steps], source)
            for name in steps[0].static
        }
        shapes = tuple(
            self.shape(list(each))
            for each in zip(*(s.shapes for s in steps), strict=True)
        )
        return ExportCall(steps[0], args, static, shapes, source)

    def shape(self, shapes: Sequence[tuple[int, ...]]) -> tuple[Dim, ...]:
        """Return the symbolic shape; a dimension without a formula is unnamed."""
        dims = [fit_dim(sizes, self.runs) for sizes in zip(*shapes, strict=True)]
        return tuple(unnamed() if dim is None else dim for dim in dims)

    def value(self, values: list[Any], source: Source) -> Any:
        """Return the value with formulas for integers that differ between runs."""
        first = values[0]
        kind = type(first)
        if any(type(value) is not kind for value in values):
            raise self._differ(values, source)
        if kind is list or kind is tuple or (isinstance(first, tuple)):
            if len({len(value) for value in values}) > 1:
                raise self._differ(values, source)
            items = [
                self.value(list(each), source) for each in zip(*values, strict=True)
            ]
            return kind(*items) if hasattr(first, "_fields") else kind(items)
        if kind is dict:
            return {key: self.value([v[key] for v in values], source) for key in first}
        if kind is slice:
            parts = ("start", "stop", "step")
            bounds = [
                self.value([getattr(v, p) for v in values], source) for p in parts
            ]
            return slice(*bounds)
        return self._leaf(values, source)

    def _leaf(self, values: list[Any], source: Source) -> Any:
        first = values[0]
        if isinstance(first, Tensor | np.ndarray):
            arrays = [np.asarray(v.numpy() if type(v) is Tensor else v) for v in values]
            if all(_same_array(arrays[0], other) for other in arrays):
                return first
            return self._array(arrays, source)
        if type(first) is int:
            dim = fit_dim(values, self.runs)
            if dim is None:
                raise self._differ(values, source)
            return dim
        if not all(_is_equal(value, first) for value in values):
            raise self._differ(values, source)
        return first

    def _array(self, arrays: list[np.ndarray[Any, Any]], source: Source) -> Any:
        """Return a vector of formulas for integers computed from dimensions."""
        small = arrays[0].ndim <= 1 and arrays[0].dtype.kind == "i"
        if not small or len({a.shape for a in arrays}) > 1:
            raise self._differ(arrays, source)
        if arrays[0].ndim == 0:
            return self.value([int(a) for a in arrays], source)
        return self.value([tuple(map(int, a)) for a in arrays], source)

    def _differ(self, values: Sequence[Any], source: Source) -> ExportError:
        shown = ", ".join(_shown(value) for value in values)
        sizes = ", ".join(str(dict(run)) for run in self.runs)
        return ExportError(
            f"{source}: a value depends on data, or on dimensions by an unknown "
            f"formula ({shown} for {sizes}); leave a dimension fixed, or pass "
            "specialize=True (--specialize) for that of the example"
        )


def _is_equal(value: Any, other: Any) -> bool:
    """Return whether two values of Python are one, or equal; NaN equals NaN."""
    are_numbers = isinstance(value, float) and isinstance(other, float)
    is_nan = are_numbers and math.isnan(value) and math.isnan(other)
    return bool(is_nan or value is other or value == other)


def _same_array(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray | Tensor):
        return f"{value.dtype}{list(value.shape)}"
    return repr(value)[:40]

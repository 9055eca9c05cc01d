"""LLVM IR of a group of calls.

For each element of the result there are passes over the reduced elements.
Loop-invariant values are computed before a pass; values that two passes need are
computed in both.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from typing import Any, NamedTuple

import numpy as np

from burn.backend.cpu.jit.calls import COPY, SELECT
from burn.backend.cpu.jit.functions import (
    EXP_PLUS_ONE,
    FLOATS,
    TYPES,
    constant,
    converted,
    cost_of,
    write,
)
from burn.backend.cpu.jit.groups import Group, LoopValue, Place, Store, overlap
from burn.backend.cpu.jit.loops import (
    MIN_VECTOR_EXTENT,
    Axis,
    UnwritableError,
    axes_of,
    split_short_axis,
)
from burn.backend.cpu.jit.writer import LOOPS, LlvmWriter
from burn.structs import replace

#: The number of floats that are summed in float32 before the sum is added to a float64.
BLOCK = 4_096
_DOUBLE = np.dtype(np.float64)


class Kernel(NamedTuple):
    """The IR of a function, the memory of its arguments, and its work."""

    text: str
    places: tuple[Place, ...]
    #: The arguments after the addresses of the places.
    numbers: tuple[int, ...]
    #: The cost, in additions.
    work: int
    #: The maximum number of parallel parts.
    parts: int
    #: Whether it returns a status: if that is not 0, NumPy's functions are called
    #: instead.
    may_fail: bool = False
    #: Objects that must live as long as the kernel is called.
    owned: tuple[Any, ...] = ()
    #: Whether it adds or compares the elements of an axis.
    reduces: bool = False


def group_kernel(group: Group, stores: list[Store]) -> Kernel:
    """Return the function that computes a group.

    Raises:
        UnwritableError: an element would be read after it was overwritten, or all
            results are dead.
    """
    if not stores:
        raise UnwritableError("no result is read")
    return _Source(group, stores).kernel()


class _Source(LlvmWriter):
    def __init__(self, group: Group, stores: list[Store]) -> None:
        super().__init__()
        self.group, self.stores = group, stores
        self.places: dict[Place, int] = {}
        self.used: set[Place] = set()
        self.late: dict[Place, int] = {}
        self.extents: list[int] = []
        self.work = 0
        self._index: list[tuple[Axis, str]] = []
        self._row: dict[LoopValue, str] = {}
        self._loop: dict[LoopValue, str] = {}
        self._stage: int | None = None
        values = list(_dependencies(store.value for store in stores))
        self.values = values
        views = [v.place for v in values if v.place] + [s.place for s in stores]
        self.outer, self.inner = axes_of(group, list(dict.fromkeys(views)), stores)
        self.unrolled: Axis | None = None
        if group.axes is None:
            self.unrolled, self.outer, self.inner = split_short_axis(
                self.outer, self.inner, stores
            )
        # The trip count is a runtime value because batch sizes differ.
        whole = self.outer or (self.inner if group.axes is None else [])
        self.shared = whole[0] if whole else None

    def kernel(self) -> Kernel:
        with self._loops(self.outer):
            self._body()
        self._check()
        parts = self.shared.extent if self.shared else 1
        given = [("ptr", f"%p{n}") for n in range(len(self.places))]
        given += [("i64", f"%m{n}") for n in range(1, len(self.extents) + 1)]
        loads = [
            f"  %a{n} = getelementptr i64, ptr %data, i64 {n}\n"
            f"  {name} = load {kind}, ptr %a{n}"
            for n, (kind, name) in enumerate([*given, ("i64", "%parts")])
        ]
        text = LOOPS.format(
            params="".join(
                f"{kind}{' noalias' if kind == 'ptr' else ''} {name}, "
                for kind, name in given
            ),
            body="\n".join([*self.head, "  br label %start", "start:", *self.lines]),
            loads="\n".join(loads),
            given="".join(f"{kind} {name}, " for kind, name in given),
            notes="\n".join(self.notes),
        )
        extents = [axis.extent for axis in (*self.outer, *self.inner)]
        work = prod(extents) * self.work
        reduces = any(value.reduces for value in self.values)
        numbers = (*self.extents, parts)
        return Kernel(
            *(text, tuple(self.places), numbers, work, parts), reduces=reduces
        )

    def _body(self) -> None:
        """Emit the body of the loops over elements of the result."""
        last = max((store.value.stage for store in self.stores), default=0)
        for stage in range(last + 1):
            roots = [v for v in self.values if v.reduces and v.stage == stage + 1]
            full = [
                s for s in self.stores if not s.value.row and s.value.stage == stage
            ]
            if roots or full:
                self._pass(stage, roots, full)
        for store in self.stores:
            if store.value.row:
                self._write(store.place, self._row_value(store.value))

    def _pass(self, stage: int, roots: list[LoopValue], full: list[Store]) -> None:
        """Emit a pass over the reduced elements."""
        self._emit_invariants(
            [*(v.operands[0] for v in roots), *(s.value for s in full)]
        )
        totals = [self._started(root, _accumulator_dtype(root)) for root in roots]
        *outer, innermost = self.inner
        self._stage, self._loop = stage, {}
        with self._loops(outer), self._blocks(innermost if roots else None) as bounds:
            partial = [self._started(root, root.dtype) for root in roots]
            with self._loop_over(innermost, *bounds, vector=True):
                self._loop = {}
                for root, cell in zip(roots, partial, strict=True):
                    value = self._emit_operand(root.operands[0], root.types[0])
                    self.accumulate(root.name, cell, root.dtype, value)
                self._write_all(full)
            for root, cell, total in zip(roots, partial, totals, strict=True):
                part = converted(
                    self,
                    self.get(cell, root.dtype),
                    root.dtype,
                    _accumulator_dtype(root),
                )
                self.accumulate(
                    root.name, total, _accumulator_dtype(root), part, exact=True
                )
        self._stage = None
        for root, cell in zip(roots, totals, strict=True):
            wide = _accumulator_dtype(root)
            self._row[root] = converted(self, self.get(cell, wide), wide, root.dtype)

    def _write_all(self, full: list[Store]) -> None:
        """Emit the stores of an iteration of the innermost loop."""
        for number in range(self.unrolled.extent if self.unrolled else 1):
            if self.unrolled:
                self._loop = {}
                self._index.append((self.unrolled, str(number)))
            names = [self._loop_value(store.value) for store in full]
            for store, name in zip(full, names, strict=True):
                self._write(store.place, name)
            if self.unrolled:
                self._index.pop()

    def _started(self, root: LoopValue, dtype: np.dtype[Any]) -> str:
        """Return a variable with the initial value of a reduction."""
        cell = self.cell(dtype)
        self.set(cell, dtype, constant_of(root.name, dtype))
        return cell

    # Values.

    def _emit_invariants(self, roots: list[Any]) -> None:
        """Emit the loop-invariant values of a pass."""
        waiting, seen = list(roots), set()
        while waiting:
            value = waiting.pop()
            if not isinstance(value, LoopValue) or value in seen:
                continue
            seen.add(value)
            if value.row:
                self._row_value(value)
            else:
                waiting += value.operands

    def _row_value(self, value: LoopValue) -> str:
        if value not in self._row:
            self._row[value] = self._emit_value(value)
        return self._row[value]

    def _loop_value(self, value: LoopValue) -> str:
        if value.row:
            return self._row_value(value)
        if value not in self._loop:
            self._loop[value] = self._emit_value(value)
        return self._loop[value]

    def _emit_value(self, value: LoopValue) -> str:
        if value.place is not None:
            return self._load(value.place)
        value = _plus_one(value)
        args = [
            self._emit_operand(operand, dtype)
            for operand, dtype in zip(value.operands, value.types, strict=True)
        ]
        self.work += cost_of(value.name)
        if value.name == COPY:
            return args[0]
        if value.name == SELECT:
            kind = TYPES[value.dtype]
            return self.do(f"select i1 {args[0]}, {kind} {args[1]}, {kind} {args[2]}")
        return write(value.name, self, value.types[0], tuple(args))

    def _emit_operand(self, operand: Any, dtype: np.dtype[Any]) -> str:
        """Return an operand converted to ``dtype``."""
        if not isinstance(operand, LoopValue):
            return constant(operand, dtype)
        inside = self._stage is not None
        name = self._loop_value(operand) if inside else self._row_value(operand)
        return converted(self, name, operand.dtype, dtype)

    # Memory.

    def _load(self, view: Place) -> str:
        self.work += 1
        self.used.add(view)
        if self._stage is not None:
            self.late[view] = max(self.late.get(view, 0), self._stage)
        pointer = self._pointer(view)
        if view.dtype == np.bool_:
            return self.do(f"icmp ne i8 {self.do(f'load i8, ptr {pointer}')}, 0")
        return self.do(f"load {TYPES[view.dtype]}, ptr {pointer}")

    def _write(self, view: Place, value: str) -> None:
        self.work += 1
        kind = TYPES[view.dtype]
        if view.dtype == np.bool_:
            kind, value = "i8", self.do(f"zext i1 {value} to i8")
        self.lines.append(f"  store {kind} {value}, ptr {self._pointer(view)}")

    def _pointer(self, view: Place) -> str:
        number = self.places.setdefault(view, len(self.places))
        pointer = f"%p{number}"
        for axis, index in self._index:
            stride = axis.strides.get(view, 0)
            if stride:
                bytes_ = self.do(f"mul nsw i64 {index}, {stride}")
                pointer = self.do(
                    f"getelementptr inbounds i8, ptr {pointer}, i64 {bytes_}"
                )
        return pointer

    # Loops.

    @contextmanager
    def _loops(self, axes: list[Axis]) -> Iterator[None]:
        if not axes:
            yield
            return
        bounds = self._bounds(axes[0])
        with self._loop_over(axes[0], *bounds), self._loops(axes[1:]):
            yield

    def _bounds(self, axis: Axis) -> tuple[str, str]:
        return (
            ("%low", "%high") if axis is self.shared else ("0", self._trip_count(axis))
        )

    def _trip_count(self, axis: Axis) -> str:
        """Return the trip count of an axis; large counts are runtime values."""
        if axis.extent <= BLOCK:
            return str(axis.extent)
        self.extents.append(axis.extent)
        return f"%m{len(self.extents)}"

    @contextmanager
    def _blocks(self, axis: Axis | None) -> Iterator[tuple[str, str]]:
        """Yield the bounds of blocks of a long axis."""
        low, high = self._bounds(axis or self.inner[-1])
        if axis is None or axis.extent <= BLOCK:
            yield low, high
            return
        with self.counting(low, high, BLOCK) as first:
            end = self.do(f"add i64 {first}, {BLOCK}")
            yield first, self.do(f"call i64 @llvm.umin.i64(i64 {end}, i64 {high})")

    @contextmanager
    def _loop_over(
        self, axis: Axis, low: str, high: str, *, vector: bool = False
    ) -> Iterator[None]:
        hint = ""
        if self.inner[-1].extent >= MIN_VECTOR_EXTENT:
            # Loops around the innermost are not made vectors, which would gather.
            note = len(self.notes) + 2
            self.notes.append(f"!{note} = distinct !{{!{note}, !{0 if vector else 1}}}")
            hint = f", !llvm.loop !{note}"
        with self.counting(low, high, hint=hint) as index:
            self._index.append((axis, index))
            yield
            self._index.pop()

    def _check(self) -> None:
        """Check that no element is read after it was overwritten, unless intended.

        Raises:
            UnwritableError: an element is.
        """
        arrays = self.group.arrays
        for store in self.stores:
            view = store.place
            if self.late.get(view, 0) > store.value.stage and not store.value.row:
                raise UnwritableError(f"{view} is read in a later pass")
            others = {*self.used, *(s.place for s in self.stores)} - {view}
            if any(overlap(arrays[view], arrays[other]) for other in others):
                raise UnwritableError(f"{view} is a part of others")


def constant_of(name: str, dtype: np.dtype[Any]) -> str:
    """Return the initial value of a reduction."""
    if name == "add":
        return constant(0, dtype)
    sign = 1 if name == "minimum" else -1
    if dtype in FLOATS:
        return constant(sign * np.inf, dtype)
    limits = np.iinfo(dtype)
    return constant(int(limits.max if sign > 0 else limits.min), dtype)


def _plus_one(value: LoopValue) -> LoopValue:
    """Return the sum of an ``exp`` and 1 as one function, else the value.

    It is the denominator of sigmoid and SiLU.
    """
    if value.name != "add" or value.reduces or value.dtype != np.float32:
        return value
    for exp, one in (value.operands, value.operands[::-1]):
        is_exp = isinstance(exp, LoopValue) and exp.name == "exp"
        if is_exp and type(one) in (int, float) and one == 1:
            return replace(
                value, name=EXP_PLUS_ONE, operands=exp.operands, types=exp.types
            )
    return value


def _accumulator_dtype(root: LoopValue) -> np.dtype[Any]:
    """Return the dtype in which partial reductions are combined."""
    return _DOUBLE if root.name == "add" and root.dtype in FLOATS else root.dtype


def _dependencies(roots: Any) -> Iterator[LoopValue]:
    """Yield all values that roots depend on, once each, operands first."""
    seen: set[LoopValue] = set()
    waiting = [(root, False) for root in roots][::-1]
    while waiting:
        value, expanded = waiting.pop()
        if expanded:
            yield value
        elif isinstance(value, LoopValue) and value not in seen:
            seen.add(value)
            waiting.append((value, True))
            waiting += [(operand, False) for operand in value.operands]

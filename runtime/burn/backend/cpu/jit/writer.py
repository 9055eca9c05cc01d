"""A builder of LLVM IR with variables and loops."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from burn.backend.cpu.jit.functions import FLOATS, TYPES, write


class LlvmWriter:
    """Appends instructions; ``head`` are those of the entry block."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.head: list[str] = []
        self.notes: list[str] = []
        self._names = 0
        self._block = "start"

    def do(self, text: str) -> str:
        """Append an instruction and return the name of its result."""
        self._names += 1
        self.lines.append(f"  %v{self._names} = {text}")
        return f"%v{self._names}"

    def cell(self, dtype: np.dtype[Any]) -> str:
        """Return a new variable, which becomes a register."""
        self._names += 1
        self.head.append(f"  %c{self._names} = alloca {TYPES[dtype]}")
        return f"%c{self._names}"

    def set(self, cell: str, dtype: np.dtype[Any], value: str) -> None:
        """Set a variable."""
        self.lines.append(f"  store {TYPES[dtype]} {value}, ptr {cell}")

    def get(self, cell: str, dtype: np.dtype[Any]) -> str:
        """Return the value of a variable."""
        return self.do(f"load {TYPES[dtype]}, ptr {cell}")

    def accumulate(
        self,
        name: str,
        cell: str,
        dtype: np.dtype[Any],
        value: str,
        *,
        exact: bool = False,
    ) -> None:
        """Combine a value with a variable, sequentially if ``exact``."""
        before = self.get(cell, dtype)
        if name == "add" and dtype in FLOATS and not exact:
            # In any order: several sums at once, which also round less.
            total = self.do(f"fadd reassoc {TYPES[dtype]} {before}, {value}")
        else:
            total = write(name, self, dtype, (before, value))
        self.set(cell, dtype, total)

    @contextmanager
    def counting(
        self, low: str, high: str, step: int = 1, hint: str = ""
    ) -> Iterator[str]:
        """Emit a loop and yield its index; it runs at least once."""
        self._names += 1
        number, before = self._names, self._block
        index = f"%i{number}"
        self.lines += [f"  br label %l{number}", f"l{number}:"]
        self.lines.append(
            f"  {index} = phi i64 [ {low}, %{before} ], [ %n{number}, %e{number} ]"
        )
        self._block = f"l{number}"
        yield index
        self.lines += [f"  br label %e{number}", f"e{number}:"]
        self.lines.append(f"  %n{number} = add nuw nsw i64 {index}, {step}")
        self.lines.append(f"  %t{number} = icmp ult i64 %n{number}, {high}")
        self.lines.append(
            f"  br i1 %t{number}, label %l{number}, label %x{number}{hint}"
        )
        self.lines.append(f"x{number}:")
        self._block = f"x{number}"


class BranchWriter(LlvmWriter):
    """A builder with conditional blocks."""

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """Emit a block that runs if ``condition`` (i1) holds."""
        self._names += 1
        number = self._names
        self.lines.append(f"  br i1 {condition}, label %y{number}, label %z{number}")
        self.lines.append(f"y{number}:")
        self._block = f"y{number}"
        yield
        self.lines += [f"  br label %z{number}", f"z{number}:"]
        self._block = f"z{number}"

    def at(self, pointer: str, bytes_: str) -> str:
        """Return a pointer moved by some bytes."""
        return self.do(f"getelementptr i8, ptr {pointer}, i64 {bytes_}")

    def times(self, one: str, other: str) -> str:
        """Return a product of integers."""
        return self.do(f"mul i64 {one}, {other}")

    def limited(self, one: str, other: str, which: str) -> str:
        """Return the least or the largest of two integers (smin, smax)."""
        return self.do(f"call i64 @llvm.{which}.i64(i64 {one}, i64 {other})")


def part_source(
    words: tuple[tuple[str, ...], tuple[str, ...]],
    count: str,
    emit: Callable[[BranchWriter, str, tuple[str, str]], None],
) -> str:
    """Return the function ``@part``, whose data are the number of parts and ``words``.

    These are the names of pointers and of integers. ``emit`` writes the instructions of
    a part, which is a range of ``count``.
    """
    to, loads = BranchWriter(), ["  %all.parts = load i64, ptr %data"]
    pointers, integers = words
    for number, name in enumerate((*pointers, *integers), 1):
        kind = "ptr" if number <= len(pointers) else "i64"
        loads.append(f"  %{name}.at = getelementptr i64, ptr %data, i64 {number}")
        loads.append(f"  %{name} = load {kind}, ptr %{name}.at")
    with to.counting("%low", "%high") as part:
        first, last = (
            to.do(f"udiv i64 {to.times(number, count)}, %all.parts")
            for number in (part, to.do(f"add i64 {part}, 1"))
        )
        with to.when(to.do(f"icmp ult i64 {first}, {last}")):
            emit(to, part, (first, last))
    body = "\n".join([*loads, *to.head, "  br label %start", "start:", *to.lines])
    return _PART.format(body=body)


_PART = """\
define internal void @part(ptr %data, i64 %low, i64 %high) noinline {{
entry:
{body}
  ret void
}}
"""
#: The first line of a source without loops for LLVM to make vectors of: its passes only
#: take time.
EXPLICIT = "; vectors are explicit"
#: The functions of a kernel. ``loads`` read the arguments ``given`` to ``@part``, and
#: the number of parts, from the data.
ENTRIES = """\
define i32 @whole(ptr %data) {{
{loads}
  call void @part({given}i64 0, i64 %parts)
  ret i32 0
}}

define void @shared(ptr %data) {{
{loads}
  %t = call i32 @omp_get_thread_num()
  %n = call i32 @omp_get_num_threads()
  %t1 = zext i32 %t to i64
  %n1 = zext i32 %n to i64
  %t2 = add i64 %t1, 1
  %l = mul i64 %t1, %parts
  %h = mul i64 %t2, %parts
  %low = udiv i64 %l, %n1
  %high = udiv i64 %h, %n1
  %any = icmp ult i64 %low, %high
  br i1 %any, label %do, label %done
do:
  call void @part({given}i64 %low, i64 %high)
  br label %done
done:
  ret void
}}

define void @between(ptr %data, i64 %low, i64 %high) {{
{loads}
  call void @part({given}i64 %low, i64 %high)
  ret void
}}

declare i32 @omp_get_thread_num()
declare i32 @omp_get_num_threads()
"""


#: The module of a kernel whose body runs for parts of an outermost loop.
LOOPS = (
    """\
define internal void @part({params}i64 %low, i64 %high) noinline {{
entry:
{body}
  ret void
}}

"""
    + ENTRIES
    + """
!0 = !{{!"llvm.loop.unroll.disable"}}
!1 = !{{!"llvm.loop.vectorize.enable", i1 false}}
{notes}
"""
)

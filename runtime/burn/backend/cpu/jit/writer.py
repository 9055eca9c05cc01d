"""A builder of LLVM IR with variables and loops."""

from collections.abc import Iterator
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

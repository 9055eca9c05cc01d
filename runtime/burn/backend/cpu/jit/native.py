"""Functions of machine code with a status, for single calls of a plan.

Such a function reads a list of words (addresses and numbers), so that calls of other
shapes share its code.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from burn.backend.cpu.jit.functions import TYPES
from burn.backend.cpu.jit.source import Kernel
from burn.backend.cpu.jit.writer import LlvmWriter
from burn.backend.cpu.onednn.binding.memory import address

INT32, INT64 = np.dtype(np.int32), np.dtype(np.int64)


def kernel_of(text: str, numbers: tuple[int, ...], work: int, arrays: Any) -> Kernel:
    """Return the kernel of a source with the addresses of arrays and more words."""
    words = (*map(address, arrays), *numbers)
    return Kernel(text, (), words, work, 1, may_fail=True, owned=tuple(arrays))


class FunctionWriter(LlvmWriter):
    """The source of a function of words, which returns 0 unless it fails.

    A function that fails may have written anything to the memory of its results.
    """

    def __init__(self) -> None:
        super().__init__()
        self._words = 0
        self._status = self.cell(INT32)
        self.head.append(f"  store i32 0, ptr {self._status}")

    def word(self, kind: str = "i64") -> str:
        """Return the next word, in the entry block."""
        name = f"%w{self._words}"
        self.head += [
            f"  {name}.at = getelementptr i64, ptr %data, i64 {self._words}",
            f"  {name} = load {kind}, ptr {name}.at",
        ]
        self._words += 1
        return name

    def words(self, count: int) -> list[str]:
        """Return the next words."""
        return [self.word() for _ in range(count)]

    def offset(self, *terms: tuple[str, str]) -> str:
        """Return the sum of products of pairs of words."""
        total = "0"
        for index, stride in terms:
            part = self.do(f"mul nsw i64 {index}, {stride}")
            total = part if total == "0" else self.do(f"add nsw i64 {total}, {part}")
        return total

    def at(self, pointer: str, *terms: tuple[str, str]) -> str:
        """Return a pointer to the bytes at products of indices and strides."""
        bytes_ = self.offset(*terms)
        return self.do(f"getelementptr i8, ptr {pointer}, i64 {bytes_}")

    @contextmanager
    def nested(self, extents: Sequence[str]) -> Iterator[list[str]]:
        """Loops over all indices below ``extents``; the last one is the innermost."""
        with ExitStack() as loops:
            yield [loops.enter_context(self.counting("0", n)) for n in extents]

    def load(self, dtype: np.dtype[Any], pointer: str) -> str:
        """Return a number in memory."""
        return self.do(f"load {stored(dtype)}, ptr {pointer}")

    def store(self, dtype: np.dtype[Any], value: str, pointer: str) -> None:
        """Write a number to memory."""
        self.lines.append(f"  store {stored(dtype)} {value}, ptr {pointer}")

    def fail_if(self, condition: str) -> None:
        """Fail, after all that follows, if a condition (i1) holds."""
        before = self.get(self._status, INT32)
        now = self.do(f"zext i1 {condition} to i32")
        self.set(self._status, INT32, self.do(f"or i32 {before}, {now}"))

    def text(self) -> str:
        """Return the source."""
        status = self.get(self._status, INT32)
        self.lines.append(f"  ret i32 {status}")
        return _TEXT.format(head="\n".join(self.head), body="\n".join(self.lines))


def stored(dtype: np.dtype[Any]) -> str:
    """Return the LLVM type of numbers in memory."""
    return "i8" if dtype.kind == "b" else TYPES[dtype]


# It is never called by several threads.
_TEXT = """\
define i32 @whole(ptr %data) {{
entry:
{head}
  br label %start
start:
{body}
}}

define void @shared(ptr %data) {{
  %status = call i32 @whole(ptr %data)
  ret void
}}
"""

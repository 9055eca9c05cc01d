"""Consecutive calls of machine code in one call from Python.

A call from Python takes about half a microsecond, as long as the kernels of small
models compute. If the weights of layers displace the interpreter from the caches, it
takes one to three microseconds. Machine code can call every function that returns a
status.
"""

from collections.abc import Callable
from ctypes import CFUNCTYPE, PYFUNCTYPE, addressof, c_int, c_size_t, c_void_p, cast
from functools import partial
from typing import Any

from burn.backend.cpu.jit.entries import Native
from burn.backend.cpu.jit.machine import Machine, machine
from burn.backend.cpu.onednn.binding.api import OneDnnError
from burn.backend.cpu.onednn.binding.engine import loaded

#: The most arguments of a function, of the size of an address.
_ARGUMENTS = 4
# The words before the first row: the row to start from, and their number.
_HEAD = 2


def native_primitive(call: Callable[[], Any]) -> Native | None:
    """Return the function of a bound primitive's call."""
    session = loaded()
    if session is None or type(call) is not partial:
        return None
    if call.func is not session.api.execute_bare:
        return None
    function = cast(call.func, c_void_p).value or 0
    return Native(function, tuple(arg.value or 0 for arg in call.args))


class Batch:
    """A call of several functions; those that fail are replaced by calls of Python.

    ``has_engine`` tells whether one is oneDNN's: other threads of Python go on
    meanwhile.
    """

    __slots__ = ("_address", "_calls", "_data", "_owner", "_run")

    def __init__(
        self,
        natives: list[Native],
        calls: list[Callable[[], Any]],
        *,
        has_engine: bool,
    ) -> None:
        words = [0, len(natives)]
        for function, args in natives:
            words += [function, *args, *[0] * (_ARGUMENTS - len(args))]
        self._data = (c_size_t * len(words))(*words)
        self._address, self._calls = addressof(self._data), calls
        self._owner: Machine = machine()
        kind = CFUNCTYPE if has_engine else PYFUNCTYPE
        self._run = kind(c_int, c_void_p)(self._owner.code(_TEXT).whole)

    def __call__(self) -> None:
        if self._run(self._address):
            self._go_on()

    def _go_on(self) -> None:
        """Make the calls of Python where functions failed, and run the others.

        Raises:
            OneDnnError: a primitive fails again.
        """
        data = self._data
        try:
            while True:
                failed = data[0]
                if self._calls[failed]():
                    raise OneDnnError("primitive_execute", 5)
                data[0] = failed + 1
                if not self._run(self._address):
                    return
        finally:
            data[0] = 0


_ROW = 1 + _ARGUMENTS
_TEXT = f"""\
define i32 @whole(ptr %data) {{
entry:
  %count.at = getelementptr i64, ptr %data, i64 1
  %first = load i64, ptr %data
  %count = load i64, ptr %count.at
  br label %next
next:
  %row = phi i64 [ %first, %entry ], [ %row.next, %call ]
  %goes.on = icmp ult i64 %row, %count
  br i1 %goes.on, label %call, label %end
call:
  %offset = mul i64 %row, {_ROW}
  %start = add i64 %offset, {_HEAD}
  %function.at = getelementptr i64, ptr %data, i64 %start
  %a.at = getelementptr i64, ptr %function.at, i64 1
  %b.at = getelementptr i64, ptr %function.at, i64 2
  %c.at = getelementptr i64, ptr %function.at, i64 3
  %d.at = getelementptr i64, ptr %function.at, i64 4
  %function = load ptr, ptr %function.at
  %a = load i64, ptr %a.at
  %b = load i64, ptr %b.at
  %c = load i64, ptr %c.at
  %d = load i64, ptr %d.at
  %status = call i32 %function(i64 %a, i64 %b, i64 %c, i64 %d)
  %row.next = add i64 %row, 1
  %fails = icmp ne i32 %status, 0
  br i1 %fails, label %failed, label %next
failed:
  store i64 %row, ptr %data
  ret i32 1
end:
  ret i32 0
}}

define void @shared(ptr %data) {{
  %status = call i32 @whole(ptr %data)
  ret void
}}
"""

"""The CPU backend."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from burn.backend.arrays import ArrayBackend
from burn.defaults import register_defaults


class Cpu(ArrayBackend):
    """Tensors in host memory, computed by NumPy. A singleton: ``Cpu() is Cpu()``."""

    array_type = np.ndarray
    #: Loads the compiler of generated kernels, or raises ImportError.
    load_compiler: Callable[[], object]
    #: Limits the threads of the engine, as :meth:`limited_threads` does.
    thread_limiter: Callable[[int], AbstractContextManager[None]]
    #: Creates the backend of calls that are made once.
    one_time_caller: Callable[[], ArrayBackend]
    _only: "Cpu | None" = None

    def __new__(cls) -> "Cpu":
        if cls._only is None:
            cls._only = super().__new__(cls)
        return cls._only

    def call(self, primitive: Any, args: tuple[Any, ...], static: Any) -> Any:
        self.load_kernels()
        # Later calls find the inherited method, and pay for no check.
        setattr(Cpu, "call", ArrayBackend.call)  # noqa: B010  a method, to mypy
        return super().call(primitive, args, static)

    def one_time_calls(self) -> ArrayBackend:
        return type(self).one_time_caller()

    def from_numpy(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return np.asarray(array)

    def to_numpy(self, data: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return data

    def check_compile_options(self, *, generated: bool, threads: int | None) -> None:
        if generated:
            type(self).load_compiler()
        if threads is not None:
            with self.limited_threads(threads):
                pass

    def limited_threads(self, count: int) -> AbstractContextManager[None]:
        return type(self).thread_limiter(count)

    def as_data(self, result: Any) -> np.ndarray[Any, Any]:
        """Return the result as an array: ufuncs convert arrays of rank 0 to scalars."""
        return result if type(result) is np.ndarray else np.asarray(result)

    def __repr__(self) -> str:
        return "Cpu()"


class _Host(Cpu):
    """Host constants, such as ``ops.zeros``, before they meet a tensor of a device.

    Level 0, so that any device takes the call and copies the constant.
    """

    level = 0
    call = ArrayBackend.call  # constants are made by NumPy alone
    _only: "_Host | None" = None


HOST = _Host()
register_defaults(host=HOST, device=Cpu())

"""Kernels for calls that are made once, such as those of a call that records a plan.

oneDNN is loaded by its first call, and compiles code at the first call of each shape.
That pays when calls are repeated; the plan that is bound later has calls of its own.
"""

from math import prod
from typing import Any

import numpy as np

from burn.backend.arrays import ArrayBackend
from burn.backend.cpu.device import Cpu
from burn.tensor import Tensor

#: Nanoseconds that it takes to load oneDNN, and to compile the code of one shape.
LOADING, COMPILING = 15e6, 0.4e6
#: The nanoseconds that oneDNN saves in one call of a large model, which has many. A
#: model of some ten milliseconds may have one call of several.
LARGE = 6e6
#: The nanoseconds of one call whose loss is worth a warning if oneDNN is missing.
NOTICEABLE = 1e6
#: The share of NumPy's time that oneDNN saves.
SAVED = 0.7
#: The C library maps arrays of so many bytes, and returns them to the system when they
#: are freed. It does so above the size of the largest array that was freed before.
MAPPED = 128 << 10
#: How many times the largest result the arrays of a model take together, and up to
#: how many bytes the library reuses.
TOGETHER, REUSED = 4, 30 << 20


class OneTimeCalls(Cpu):
    """The CPU with NumPy's kernels, until oneDNN would have saved its own cost.

    A model with a large call is large: oneDNN is loaded at once. The choice depends on
    estimates alone, so that results are the same in every run.
    """

    def __new__(cls) -> "OneTimeCalls":
        return object.__new__(cls)  # it has a state, unlike the device

    def __init__(self) -> None:
        self._device, self._lost = Cpu(), 0.0
        self._device.load_kernels()
        self._seen = set[Any]()
        self._is_sought = False
        self._largest = MAPPED

    def call(self, primitive: Any, args: tuple[Any, ...], static: Any) -> Any:
        shapes = [arg.shape for arg in args if isinstance(arg, Tensor)]
        time = numpy_time(primitive, shapes, static)
        lost = time and self._loss(time, (primitive, *shapes))
        self._lost += LOADING if lost > LARGE else lost
        if not time or (lost and self._lost >= LOADING):
            return self._device.call(primitive, args, static)
        if lost > NOTICEABLE and not self._is_sought:
            self._is_sought = True
            _warn_if_missing()
        result = ArrayBackend.call(self, primitive, args, static)
        if type(result) is tuple:
            return tuple(map(self._on_device, result))
        if result.data.nbytes > self._largest:
            self._largest = result.data.nbytes
            reuse_freed(min(TOGETHER * self._largest, REUSED))
        return self._on_device(result)

    def import_tensor(self, tensor: Tensor) -> Any:
        return self._device.import_tensor(tensor)

    def _loss(self, time: float, key: Any) -> float:
        """Return by how much oneDNN would be faster, with the code that it compiles."""
        cost = 0 if key in self._seen else COMPILING
        self._seen.add(key)
        return max(SAVED * time - cost, 0)

    def _on_device(self, result: Tensor) -> Tensor:
        return Tensor(result.data, self._device) if result.backend is self else result


def reuse_freed(size: int) -> None:
    """Let later arrays of up to ``size`` bytes reuse memory of freed ones.

    The system clears each page of new memory when it is first touched, which takes
    longer than many operations on it. The pages of this array are not touched.
    """
    np.empty(size, np.uint8)


def _warn_if_missing() -> None:
    """Warn, as the engine does, if there is no file of oneDNN, which is not loaded."""
    from burn.backend.cpu.onednn.binding.search import library_files

    if next(library_files(), None) is None:
        from burn.backend.cpu.onednn.binding import engine

        engine.current(engine.LARGE)


def numpy_time(
    primitive: Any, shapes: list[tuple[int, ...]], static: dict[str, Any]
) -> float:
    """Return the estimated nanoseconds of NumPy's kernel for operands of ``shapes``.

    It is 0 if the primitive has no other kernel, or no time that can be estimated.
    """
    if Cpu not in primitive.device_kernels or not all(map(prod, shapes)):
        return 0
    time = primitive.numpy_time or 0
    if callable(time):
        return float(time(*shapes, **static)) if len(shapes) > 1 else 0
    return float(time) * max(map(prod, shapes), default=0)

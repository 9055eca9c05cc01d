"""The backend of CUDA devices."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from burn.backend.arrays import ArrayBackend


class Cuda(ArrayBackend):
    """Tensors on the CUDA device ``index``; needs the extra ``burn-runtime[cuda]``.

    ``Cuda(0) is Cuda(0)``. Nothing falls back to the host: an operation that has no
    device kernel raises.

    Attributes:
        tf32: whether convolutions and matrix products of float32 tensors may round
            their operands to TensorFloat-32 (10 bits of mantissa instead of 23), which
            tensor cores compute several times faster. False until it is set.
        tuning: whether the second call of a compiled function measures algorithms and
            takes the fastest ones. Without it the first ones that libraries propose
            are taken, which takes seconds less. True until it is set.

    Raises:
        ImportError: CuPy is not installed.
        RuntimeError: there is no such device.
    """

    _devices: "dict[int, Cuda]" = {}
    is_asynchronous = True
    index: int
    tf32: bool = False
    tuning: bool = True

    def __new__(cls, index: int = 0) -> "Cuda":
        device = cls._devices.get(index)
        if device is None:
            device = cls._devices[index] = cls._open(index)
        return device

    @classmethod
    def _open(cls, index: int) -> "Cuda":
        try:
            import cupy
        except ImportError as error:
            raise ImportError(
                "Cuda needs CuPy: pip install 'burn-runtime[cuda]'"
            ) from error
        try:
            count = cupy.cuda.runtime.getDeviceCount()
        except cupy.cuda.runtime.CUDARuntimeError as error:
            raise RuntimeError(f"no usable CUDA device: {error}") from error
        if not 0 <= index < count:
            raise RuntimeError(f"expected a device below {count}, got Cuda({index})")
        cls.load_kernels()
        device = super().__new__(cls)
        device.index = index
        device.cupy = cupy
        device.array_type = cupy.ndarray
        device._current = cupy.cuda.runtime.getDevice
        return device

    cupy: Any
    _current: Any

    def __reduce__(self) -> Any:
        return type(self), (self.index,)

    def call(self, primitive: Any, args: tuple[Any, ...], static: Any) -> Any:
        with self.current():
            return super().call(primitive, args, static)

    def current(self) -> AbstractContextManager[Any]:
        """Return a context in which this is CuPy's current device."""
        if self._current() == self.index:
            return nullcontext()
        context: AbstractContextManager[Any] = self.cupy.cuda.Device(self.index)
        return context

    def unwrap(self, arg: Any) -> Any:
        """Return the raw array of ``arg``; constants are copied to the device."""
        if type(arg) is np.ndarray:
            return self.from_numpy(arg)
        return super().unwrap(arg)

    def from_numpy(self, array: np.ndarray[Any, Any]) -> Any:
        """Return a copy of ``array`` on the device.

        Raises:
            TypeError: CuPy has no arrays of this dtype: numbers of 4 bits, float8 and
                text stay on the host.
        """
        try:
            with self.current():
                return self.cupy.asarray(array)
        except ValueError as error:
            if array.dtype == object:
                problem, remedy = "text", "it stays on Cpu()"
            else:
                problem = str(array.dtype)
                remedy = (
                    "cast numbers of 4 bits to int8 and float8 to float16, which "
                    "represent them exactly, or compute on Cpu()"
                )
            raise TypeError(
                f"{self} holds no tensors of {problem}; {remedy}"
            ) from error

    def to_numpy(self, data: Any) -> np.ndarray[Any, Any]:
        return np.asarray(self.cupy.asnumpy(data))

    def __repr__(self) -> str:
        return f"Cuda({self.index})"

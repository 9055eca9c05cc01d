"""CUDA devices: CuPy arrays, the generic array kernels and kernels of our own."""

from typing import Any

import numpy as np

from burn.backend.arrays import ArrayBackend


class Cuda(ArrayBackend):
    """Tensors on the CUDA device ``index``; needs the extra ``burn-import[cuda]``.

    ``Cuda(0) is Cuda(0)``. Nothing falls back to the host: an operation that has no
    device kernel raises.

    Raises:
        ImportError: CuPy is not installed.
        RuntimeError: there is no such device.
    """

    _devices: "dict[int, Cuda]" = {}
    index: int

    def __new__(cls, index: int = 0) -> "Cuda":
        known = cls._devices.get(index)
        if known is None:
            known = cls._devices[index] = cls._open(index)
        return known

    @classmethod
    def _open(cls, index: int) -> "Cuda":
        try:
            import cupy
        except ImportError as error:
            raise ImportError(
                "Cuda needs CuPy: pip install 'burn-import[cuda]'"
            ) from error
        try:
            count = cupy.cuda.runtime.getDeviceCount()
        except cupy.cuda.runtime.CUDARuntimeError as error:
            raise RuntimeError(f"no usable CUDA device: {error}") from error
        if not 0 <= index < count:
            raise RuntimeError(f"expected a device below {count}, got Cuda({index})")
        device = super().__new__(cls)
        device.index = index
        device.cupy = cupy
        return device

    cupy: Any

    def __reduce__(self) -> Any:
        return type(self), (self.index,)

    def call(self, primitive: Any, args: tuple[Any, ...], static: Any) -> Any:
        with self.cupy.cuda.Device(self.index):
            return super().call(primitive, args, static)

    def unwrap(self, arg: Any) -> Any:
        """As on the host, and constant arrays are copied to the device."""
        if type(arg) is np.ndarray:
            return self.from_numpy(arg)
        return super().unwrap(arg)

    def from_numpy(self, array: np.ndarray[Any, Any]) -> Any:
        with self.cupy.cuda.Device(self.index):
            return self.cupy.asarray(array)

    def to_numpy(self, data: Any) -> np.ndarray[Any, Any]:
        return np.asarray(self.cupy.asnumpy(data))

    def __repr__(self) -> str:
        return f"Cuda({self.index})"

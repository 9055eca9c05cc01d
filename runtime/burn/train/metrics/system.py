"""Metrics of the machine: processor time, memory, and those of a CUDA device."""

from __future__ import annotations

import importlib
import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from burn.train.metrics.metric import Array, Batch, Mean, Metric, ratio

MEBIBYTE = 2**20


class CpuUse(Metric):
    """The processor time of this process in percent of the time; 100 is one core.

    It is measured between the ends of batches, so the first batch of an epoch has no
    value. With several processes it is the mean over them.
    """

    def __init__(self, name: str = "cpu_percent") -> None:
        super().__init__(name)

    def reset(self) -> None:
        super().reset()
        self._last: tuple[float, float] | None = None

    def initial(self) -> dict[str, Array]:
        return {"busy": np.zeros(()), "seconds": np.zeros(())}

    def update(self, output: Any, batch: Batch) -> float | None:
        last, self._last = self._last, (time.process_time(), time.perf_counter())
        if last is None:
            return None
        busy, seconds = self._last[0] - last[0], self._last[1] - last[1]
        self.state["busy"] = self.state["busy"] + busy
        self.state["seconds"] = self.state["seconds"] + seconds
        return 100 * ratio(busy, seconds)

    def compute(self) -> float:
        return 100 * ratio(float(self.state["busy"]), float(self.state["seconds"]))


class _Peak(Metric):
    """The largest value that :meth:`measure` returned after a batch."""

    @abstractmethod
    def measure(self) -> float:
        """Return the value after a batch."""

    def initial(self) -> dict[str, Array]:
        return {"peak": np.full((), np.nan)}

    def merge(self, states: Sequence[Mapping[str, Any]]) -> None:
        """Keep the peak of the process with the largest one."""
        peaks = [np.asarray(state["peak"], np.float64) for state in states]
        self.load_state_dict({"peak": np.fmax.reduce(peaks)})

    def update(self, output: Any, batch: Batch) -> float:
        value = self.measure()
        self.state["peak"] = np.fmax(self.state["peak"], value)
        return value

    def compute(self) -> float:
        return float(self.state["peak"])


class MemoryUse(_Peak):
    """The resident memory of this process in MiB, the peak after batches of an epoch.

    Needs psutil: ``pip install 'burn-runtime[monitoring]'``.

    Raises:
        ImportError: psutil is not installed.
    """

    def __init__(self, name: str = "memory_mib") -> None:
        self._process = _import("psutil", "MemoryUse", "monitoring").Process()
        super().__init__(name)

    def measure(self) -> float:
        return float(self._process.memory_info().rss) / MEBIBYTE


class GpuMemoryUse(_Peak):
    """The memory in use on the current CUDA device in MiB, by all processes.

    It is the peak after batches of an epoch. Needs CuPy.

    Raises:
        ImportError: CuPy is not installed.
    """

    def __init__(self, name: str = "gpu_memory_mib") -> None:
        self._cuda = _import("cupy.cuda.runtime", "GpuMemoryUse", "cuda")
        super().__init__(name)

    def measure(self) -> float:
        free, total = self._cuda.memGetInfo()
        return float(total - free) / MEBIBYTE


class GpuUse(Mean):
    """The percentage of time in which a kernel ran on the current CUDA device.

    NVML measures it over the last second or a part of it, by all processes; the value
    of an epoch is the mean over its batches. Needs CuPy and nvidia-ml-py:
    ``pip install 'burn-runtime[cuda,monitoring]'``.

    Raises:
        ImportError: one of them is not installed.
    """

    def __init__(self, name: str = "gpu_percent") -> None:
        runtime = _import("cupy.cuda.runtime", "GpuUse", "cuda")
        self._nvml = _import("pynvml", "GpuUse", "monitoring")
        self._nvml.nvmlInit()
        # NVML counts all devices; CUDA those of CUDA_VISIBLE_DEVICES.
        bus = runtime.deviceGetPCIBusId(runtime.getDevice())
        self._handle = self._nvml.nvmlDeviceGetHandleByPciBusId(bus)
        super().__init__(name)

    def update(self, output: Any, batch: Batch) -> float:
        rates = self._nvml.nvmlDeviceGetUtilizationRates(self._handle)
        return self.add(float(rates.gpu), 1)


def _import(module: str, metric: str, extra: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise ImportError(
            f"{metric} needs {module.partition('.')[0]}: "
            f"pip install 'burn-runtime[{extra}]'"
        ) from None

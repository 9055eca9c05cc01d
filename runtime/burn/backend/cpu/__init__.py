"""The CPU backend: NumPy arrays, kernels of NumPy and oneDNN, and generated kernels.

Plan binding, oneDNN kernels and the kernel compiler are imported at their first use, so
that ``import burn`` does not load them.
"""

from typing import Any

from burn.backend.cpu.device import HOST, Cpu

__all__ = ["HOST", "Cpu"]


def _bind(plan: Any, device: Cpu) -> Any:
    from burn.backend.cpu.bind.executable import CpuExecutable

    return CpuExecutable(plan)


def _load_compiler() -> object:
    from burn.backend.cpu.jit.machine import machine

    return machine()


def _limited_threads(count: int) -> Any:
    from burn.backend.cpu.onednn.binding.thread_limit import limited_threads

    return limited_threads(count)


def _one_time_calls() -> Any:
    from burn.backend.cpu.limits import has_limits
    from burn.backend.cpu.one_time import OneTimeCalls

    return OneTimeCalls() if has_limits() else Cpu()


def _load_kernels() -> None:
    from burn.backend.cpu.onednn import kernels

    del kernels  # imported to register them


Cpu.binder = staticmethod(_bind)
Cpu.load_compiler = staticmethod(_load_compiler)
Cpu.thread_limiter = staticmethod(_limited_threads)
Cpu.one_time_caller = staticmethod(_one_time_calls)
Cpu.load_kernels = staticmethod(_load_kernels)

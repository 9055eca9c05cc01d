"""Which NumPy calls of a plan become generated kernels.

Binding a plan imports this module and not the compiler, which is imported when kernels
are made.
"""

from enum import Enum, auto
from functools import cache

#: The bytes of dead values that are held back for kernels at most, and those that
#: kernels of small plans may hold if ``generated`` is None.
MOST_HELD, LEAST_HELD = 64 << 20, 1 << 19
#: The first version of llvmlite with LLVM's new pass builder.
_OLDEST = (0, 45)


class KernelPolicy(Enum):
    """Which NumPy calls become generated kernels."""

    NONE = auto()
    #: Kernels whose estimated saving exceeds the time of their compilation.
    PROFITABLE = auto()
    ALL = auto()

    @property
    def is_generating(self) -> bool:
        return self is not KernelPolicy.NONE


@cache
def has_compiler() -> bool:
    """Return whether an llvmlite that generated kernels support is installed."""
    try:
        from llvmlite import __version__  # quicker than importlib.metadata
    except ImportError:
        return False
    return tuple(map(int, __version__.split(".")[:2])) >= _OLDEST


def held_bytes(policy: KernelPolicy, peak: int) -> int:
    """Return how much memory a plan of ``peak`` bytes holds back for fused kernels."""
    if policy is KernelPolicy.PROFITABLE:
        return min(max(peak, LEAST_HELD), MOST_HELD)
    return MOST_HELD if policy is KernelPolicy.ALL else 0

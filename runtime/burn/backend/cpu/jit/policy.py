"""Which NumPy calls of a plan become generated kernels.

Binding a plan imports this module and not the compiler, which is imported when kernels
are made.
"""

import platform
from enum import Enum, auto
from functools import cache

#: The bytes of dead values that are held back for kernels at most, and those that
#: kernels of small plans may hold if ``generated`` is None.
MOST_HELD, LEAST_HELD = 64 << 20, 1 << 19
#: The processors on which kernels of products take less time than BLAS does.
MEASURED = ("x86_64", "AMD64")
#: The fewest multiplications of an attention with a kernel, and the fewest rows: fewer
#: are not worth the time to pack the keys.
LEAST_ATTENTION, LEAST_ROWS = 1 << 20, 8
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


def has_products(policy: KernelPolicy) -> bool:
    """Return whether products with constant weights become generated kernels."""
    return policy.is_generating and platform.machine() in MEASURED


def held_bytes(policy: KernelPolicy, peak: int) -> int:
    """Return how much memory a plan of ``peak`` bytes holds back for fused kernels."""
    if policy is KernelPolicy.PROFITABLE:
        return min(max(peak, LEAST_HELD), MOST_HELD)
    return MOST_HELD if policy is KernelPolicy.ALL else 0


def has_attention_kernel(
    query: tuple[int, ...],
    key: tuple[int, ...],
    value: tuple[int, ...],
    mask: tuple[int, ...] | None,
) -> bool:
    """Return whether a kernel is generated for attention with operands of such shapes.

    Queries are ``[batch, heads, rows, size]``, and a mask has a number for each key.
    """
    work = query[0] * query[1] * query[2] * key[2] * (query[3] + value[3])
    is_large = query[2] >= LEAST_ROWS and work >= LEAST_ATTENTION
    has_keys = mask is None or mask[-1:] == key[2:3]
    return platform.machine() in MEASURED and is_large and has_keys

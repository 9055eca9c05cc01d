"""oneDNN implementations with wrong results, which convolutions avoid.

They were found by comparing random bfloat16 and int8 convolutions with float32, as
``tests/runtime/cpu/onednn/test_narrow_convolutions.py`` does. Implementations for
instruction sets other than AMX, and for float32, are correct.
"""

from collections.abc import Callable

from burn.ops.window import Windows

_AMX = "brgconv:avx512_core_amx"


def wrong_code(wins: Windows) -> Callable[[str], bool] | None:
    """Return a predicate for wrong implementations with these windows, or None.

    None if all is right. Two cases of code for AMX are wrong:

    - Kernels and strides that are even along the last axis, where the bytes of a pixel
      are no multiple of 64, but those of a row of the kernel are: pixels are mistaken.
    - Volumes with a stride beyond the kernel, where memory beside them is written.
    """
    is_even = wins.kernel[-1] % 2 == 0 and wins.stride[-1] % 2 == 0
    pairs = zip(wins.stride, wins.kernel, strict=True)
    has_gaps = len(wins.size) == 3 and any(step > extent for step, extent in pairs)
    return _AMX.__eq__ if is_even or has_gaps else None

"""oneDNN implementations that are faster than those that the library prefers.

Without AVX-512 the library prefers its newer code for products of matrices. Measured
on an AMD EPYC with AVX2 and one thread, its older code takes 0.61 to 1.00 of the time
for 27 pointwise convolutions, and 0.5 to 1.0 for 70 depthwise ones. The exceptions are
depthwise images beyond 3 MB with windows of 3 x 3: 0.6 to 1.4.

Where AVX-512 is executed in halves (AMD's Zen 4), with one thread:

- Code for AVX2 is faster for pointwise convolutions if it computes fewer channels that
  are padding. It takes 0.69 to 0.82 of the time for up to 24 outputs, 0.83 for 40, 0.93
  for 104 and 1.00 for 440.
- First convolutions with a stride of two take 0.74 to 0.88, without pairs of rows.
- The older depthwise code takes 0.64 to 0.92 for 18 layers, and 1.00 to 1.07 for three
  that take 0.03 ms or less.
"""

from collections.abc import Callable

from burn.backend.cpu.onednn.binding.processor import halves_wide_registers
from burn.ops.window import Windows

#: The replacement of an implementation, where the library has both.
FASTER = {
    "brgconv_1x1:avx2": "jit_1x1:avx2",
    "brdgmm_dw:avx2": "jit_dw:avx2",
}
#: Those with AVX-512 in halves.
DEPTHWISE = FASTER | {"brdgmm_dw:avx512_core": "jit_dw:avx512_core"}
NARROW = FASTER | {"brgconv_1x1:avx512_core": "jit_1x1:avx2"}
FIRST = FASTER | {"jit:avx512_core": "jit:avx2"}
# The floats of a register of AVX-512, and the channels of images.
_WIDE, _IMAGE = 16, (3, 4)


def faster_code(weight: tuple[int, ...], wins: Windows) -> Callable[[str], str | None]:
    """Return the map from implementations to faster ones.

    ``weight`` is the shape of the weights [O, I, *K], or [G, O, I, *K] in groups.
    """
    return (_in_halves(weight, wins) if halves_wide_registers() else FASTER).get


def _in_halves(weight: tuple[int, ...], wins: Windows) -> dict[str, str]:
    if len(weight) > 2 + len(wins.size):
        return DEPTHWISE
    outputs, inputs, *_ = weight
    if inputs in _IMAGE and outputs > _WIDE and {*wins.stride} == {2}:
        return FIRST
    has_padding = -outputs % _WIDE >= _WIDE // 2
    return NARROW if has_padding or outputs == _WIDE else FASTER

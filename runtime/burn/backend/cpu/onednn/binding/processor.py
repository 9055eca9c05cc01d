"""Properties of the processor that oneDNN does not report."""

from functools import cache
from pathlib import Path

#: Linux writes the vendor (2 is AMD) and the family of the first processor here.
MODEL = Path("/sys/devices/system/cpu/modalias")
#: AMD's Zen 4, and Zen 3, which has no AVX-512.
_HALVES = "ven0002fam0019"


@cache
def halves_wide_registers() -> bool:
    """Return whether instructions of AVX-512 are executed in two halves.

    Those of AVX2 then compute as many numbers in a cycle.
    """
    try:
        return _HALVES in MODEL.read_text()
    except OSError:
        return False

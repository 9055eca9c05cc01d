"""Precisions of plans, whose passes are imported where one is asked for.

A plan in float32 is recorded without any pass, so that a first call imports none.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from burn.plan.passes.graph import Pass

FULL = "float32"
#: The precisions for plans that set boxes. int8 is excluded: its calibration runs a
#: function several times, and boxes would change between these runs.
OF_UPDATES = frozenset({FULL, "bf16"})


def lowering_passes(precision: str) -> "tuple[Pass, ...]":
    """Return the passes that lower a plan to ``precision``, none for float32.

    Raises:
        ValueError: there is no such precision.
    """
    if precision == FULL:
        return ()
    from burn.plan.passes.precision.lowerings import LOWERINGS

    if precision not in LOWERINGS:
        names = ", ".join(map(repr, (FULL, *LOWERINGS)))
        raise ValueError(f"expected a precision of {names}: {precision!r}")
    return LOWERINGS[precision]

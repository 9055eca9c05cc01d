"""Dimensions of broadcast results."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from math import gcd

from burn_ir.dim import LARGEST, Poly, lower_bound, symbol

#: Prefix of symbols for broadcast dimensions.
JOINT = "?|"


def joint(dims: Sequence[Poly]) -> Poly:
    """Return the broadcast result of symbolic dimensions on one axis.

    It is the one that is never 1, or the common one. Otherwise it is a new symbol
    that does not depend on the order and grouping of ``dims``.
    """
    for dim in dims:
        if _is_never_one(dim):
            return dim
    if len(set(dims)) == 1:
        return dims[0]
    parts = {part for dim in dims for part in str(dim).removeprefix(JOINT).split("|")}
    text = "|".join(sorted(parts))
    if len(text) > LARGEST:  # unbounded names would take quadratic time in a chain
        text = sha256(text.encode()).hexdigest()
    return symbol(JOINT + text)


def _is_never_one(dim: Poly) -> bool:
    bound = lower_bound(dim)
    divisor = gcd(*(size for _, size in dim.terms))
    return divisor > 1 or (bound is not None and bound > 1)

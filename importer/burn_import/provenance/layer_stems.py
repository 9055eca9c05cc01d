"""What the names of the weights of one layer have in common."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

#: How names of weights end that are not dotted.
_WEIGHT = re.compile(r"(?i)[_/:.](w|weights?|kernel|filter)([_:]\d+)?$")


def common_stem(names: Sequence[str]) -> str:
    """What the names of a layer's weights share, without the word for a weight."""
    stem = os.path.commonprefix(list(names))
    if len(names) == 1:
        stem, found = _WEIGHT.subn("", stem)
        if not found:
            return ""
    elif any(name[len(stem) :][:1].isdigit() for name in names):
        stem = stem.rstrip("0123456789")  # of 10 and 11 the first digit says nothing
    return re.sub(r"[^0-9A-Za-z]+$", "", stem)

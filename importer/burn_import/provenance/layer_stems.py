"""Common stems of the names of a layer's weights."""

import os
import re
from collections.abc import Sequence

from burn_import.provenance.exporter_names import is_computed_by_paddle

#: Suffixes of weight names without dots.
_WEIGHT = re.compile(r"(?i)[_/:.](w|weights?|kernel|filter)([_:]\d+)?(_deepcopy_\d+)?$")


def common_stem(names: Sequence[str]) -> str:
    """Return the common stem of a layer's weight names, "" if they have none."""
    if any(map(is_computed_by_paddle, names)):
        return ""
    stem = os.path.commonprefix(list(names))
    if len(names) == 1:
        stem, removed = _WEIGHT.subn("", stem)
        if not removed:
            return ""
    elif any(name[len(stem) :][:1].isdigit() for name in names):
        stem = stem.rstrip("0123456789")  # do not share the first digit of 10 and 11
    return re.sub(r"[^0-9A-Za-z]+$", "", stem)

"""The element types of records that NumPy has."""

import numpy as np

from burn.record.dtypes import PLAIN, DType

DTYPES: dict[str, DType] = {tag: np.dtype(code) for tag, code in PLAIN.items()}

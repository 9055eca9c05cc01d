"""Conversions between the dtypes of NumPy."""

from burn.dtypes import DType

#: Dtypes of at most 8 bits that NumPy does not have itself.
_TINY: tuple[DType, ...] = ()

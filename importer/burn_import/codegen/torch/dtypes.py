"""Element types in PyTorch."""

from __future__ import annotations

from burn.dtypes import DType, bool_, float32, int64, name_of
from burn_ir.errors import UnsupportedModel

#: PyTorch dtypes that a generated module may use.
NAMES = frozenset(
    {"bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"}
    | {"float16", "bfloat16", "float32", "float64", "complex64", "complex128"}
    | {"float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"}
)
#: Default dtypes of ``torch.tensor`` for Python numbers.
NATURAL = (bool_, int64, float32)


def dtype_name(dtype: DType) -> str:
    """Return the name of a dtype in PyTorch: ``float32``, ``bool``.

    Raises:
        UnsupportedModel: PyTorch has no such dtype.
    """
    name = "bool" if dtype == bool_ else name_of(dtype)
    if name not in NAMES:
        raise UnsupportedModel(
            f"expected a dtype that PyTorch has, got {name}", "the target burn has it"
        )
    return name


def torch_dtype(dtype: DType) -> str:
    """Return the source of a dtype: ``torch.float32``."""
    return f"torch.{dtype_name(dtype)}"

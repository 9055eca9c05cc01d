"""Placeholders for names that the code declares without a value.

TorchScript writes a ``return`` within a loop or branch as a flag and a name for the
result, which is uninitialized and never read where the function continues.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from burn_import.frontends.torch_export.builder import Value, kind_of
from burn_import.frontends.torchscript.node_writer import NodeWriter
from burn_import.frontends.torchscript.values import (
    UNINITIALIZED,
    PyValue,
    TensorRef,
    rebuilt,
)


def like(obj: PyValue, writer: NodeWriter, others: Iterable[PyValue]) -> PyValue:
    """Return a placeholder of the structure and type of ``obj``, valid in ``writer``.

    A tensor becomes one of ``others`` with the same extents; UNINITIALIZED if none has
    them.
    """
    if isinstance(obj, list | tuple):
        others = list(others)
        return rebuilt(obj, (like(item, writer, others) for item in obj))
    value = obj.value if isinstance(obj, TensorRef) else obj
    if not isinstance(value, Value) or writer.has(value):
        return obj
    if value.is_number:
        return {0: False, 1: 0}.get(kind_of(value.dtype), 0.0)
    kind = value.dtype, value.dims
    for other in others:
        if (
            isinstance(other, TensorRef)
            and not other.stale
            and writer.has(other.current)
        ):
            candidate = other.current
            if (candidate.dtype, candidate.dims) == kind:
                return replace(candidate, is_number=False)
    return UNINITIALIZED

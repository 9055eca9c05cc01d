"""Tensors of numbers that a program computes, such as sizes that vary."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from burn.dtypes import DType
from burn_import.frontends.torch_export.aten import RULES
from burn_import.frontends.torch_export.builder import (
    BOOL,
    FLOAT32,
    INT64,
    Value,
    kind_of,
)
from burn_import.frontends.torchscript.operators.calls import OperatorCalls
from burn_import.frontends.torchscript.values import PyValue, TensorRef
from burn_ir.graph_builder import Origin


def has_computed_numbers(x: PyValue) -> bool:
    """Return whether a number, or one in nested lists, is known only at run time."""
    return any(isinstance(number, Value) for number in _numbers(x))


def computed_tensor(
    operators: OperatorCalls, x: Any, origin: Origin, dtype: DType | None
) -> TensorRef:
    """Return numbers as a tensor; ``dtype`` is by default that of PyTorch."""
    kind = dtype or _default_dtype(x)
    if isinstance(x, list | tuple):
        parts = [computed_tensor(operators, item, origin, kind) for item in x]
        stacked = operators.operator("stack", [parts], {}, origin)
        assert isinstance(stacked, TensorRef)
        return stacked
    if not isinstance(x, Value):
        return operators.tensor(x, origin, kind)
    result, named = Value("", kind, ()), {"self": x, "dtype": kind}
    (value,) = operators.writer.apply(RULES["aten.to.dtype"], origin, [result], named)
    assert value is not None
    return TensorRef(Value(value.name, kind, ()))


def _default_dtype(x: PyValue) -> DType:
    kinds = [
        kind_of(number.dtype) if isinstance(number, Value) else _KINDS[type(number)]
        for number in _numbers(x)
    ]
    return (BOOL, INT64, FLOAT32)[max(kinds)]


_KINDS = {bool: 0, int: 1, float: 2}


def _numbers(x: Any) -> Iterator[Any]:
    if isinstance(x, list | tuple):
        for item in x:
            yield from _numbers(item)
    else:
        yield x

"""The types of a program's inputs, which its code does not say.

``torch.jit.trace`` leaves the tensors that it was called with in the archive: dtypes,
and extents of one call. The first extent of each counts as one that varies, and so do
all of whole numbers (ids of tokens), as long as the program allows it. ``--shape`` says
otherwise, and what the archive does not have.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from burn_import.exported.builder import FLOAT32
from burn_import.exported.extents import AXES
from burn_import.options import Extents
from burn_import.pytorch.tensors import Tensor
from burn_import.pytorch.values import Value
from burn_ir import UnsupportedModel
from burn_ir.dim import Dim, symbol
from burn_ir.errors import Problem
from burn_ir.types import Type


def plans(
    parameters: Sequence[ast.arg],
    traced: Value,
    shapes: Mapping[str, Extents],
    defaults: int,
) -> Iterator[dict[str, Any]]:
    """Arguments of ``forward`` by name, from the most general to the most fixed.

    The last ``defaults`` parameters need not be given.

    Raises:
        UnsupportedModel: a shape is not known, with the option that gives it.
    """
    examples = dict(zip((p.arg for p in parameters), traced or (), strict=False))
    missing = [
        p
        for place, p in enumerate(parameters)
        if p.arg not in examples
        and p.arg not in shapes
        and (place < len(parameters) - defaults)
    ]
    if missing:
        raise UnsupportedModel([_asked(p) for p in missing])
    for opened in (_tokens, _batch, _nothing):
        symbols: dict[tuple[int, int], Dim] = {}
        yield {
            p.arg: _typed(p.arg, examples.get(p.arg), shapes, opened, symbols)
            for p in parameters
            if p.arg in examples or p.arg in shapes
        }


def _asked(parameter: ast.arg) -> Problem:
    name, kind = parameter.arg, ast.unparse(parameter.annotation or ast.Constant(None))
    if kind not in ("Tensor", "Optional[Tensor]"):
        return Problem(f"input {name!r}: expected a tensor, got {kind[:80]}")
    return Problem(
        f"input {name!r}: the archive does not say its shape",
        hint=f"give it, such as --shape {name}=batch,3,224,224",
    )


def _tokens(axis: int, dtype: Any) -> bool:
    return axis == 0 or dtype.kind in "iu"


def _batch(axis: int, dtype: Any) -> bool:
    return axis == 0


def _nothing(axis: int, dtype: Any) -> bool:
    return False


def _typed(
    name: str,
    example: Value,
    shapes: Mapping[str, Extents],
    opened: Any,
    symbols: dict[tuple[int, int], Dim],
) -> Any:
    """The type of an input, of each in a list or dict; or what is fixed."""
    if isinstance(example, list | tuple):
        parts = enumerate(example)
        return type(example)(
            _typed(f"{name}_{place}", item, shapes, opened, symbols)
            for place, item in parts
        )
    if isinstance(example, dict):
        return {
            key: _typed(f"{name}_{key}", item, shapes, opened, symbols)
            for key, item in example.items()
        }
    if name in shapes:
        dtype = example.dtype if isinstance(example, Tensor) else FLOAT32
        dims = (symbol(d) if isinstance(d, str) else d for d in shapes[name])
        return Type(dtype, tuple(dims))
    if not isinstance(example, Tensor):
        return example
    return Type(example.dtype, _extents(example, opened, symbols))


def _extents(
    example: Tensor, opened: Any, symbols: dict[tuple[int, int], Dim]
) -> tuple[Dim, ...]:
    """The extents of an example: those that vary have a name, equal ones the same."""
    names = AXES.get(len(example.shape), ())
    found: list[Dim] = []
    for axis, size in enumerate(example.shape):
        if not opened(axis, np.dtype(example.dtype)):
            found.append(size)
            continue
        if (axis, size) not in symbols:
            name = names[axis] if axis < len(names) else f"extent{axis}"
            taken = {str(dim) for dim in symbols.values()}
            unique, number = name, 1
            while unique in taken:
                number += 1
                unique = f"{name}{number}"
            symbols[axis, size] = symbol(unique)
        found.append(symbols[axis, size])
    return tuple(found)

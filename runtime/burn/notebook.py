"""HTML representations of tensors, modules and compiled functions for notebooks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

import numpy as np

from burn.dtypes import is_float, name_of

#: Rows and columns of a table of values, and characters of a cell.
_MOST_CELLS, _MOST_CHARACTERS = 8, 32
#: The maximum number of listed children of a module.
_MOST_CHILDREN = 100


def tensor_html(tensor: Any) -> str:
    """Return shape, dtype and device of a tensor, with its values if it has rank <= 2.

    Long axes show only the first and last values. A tensor of higher rank is not copied
    from its device.
    """
    kind = f"{name_of(tensor.dtype)}{list(tensor.shape)}"
    head = f"<div><b>Tensor</b> <code>{escape(f'{kind} {tensor.backend}')}</code></div>"
    if len(tensor.shape) > 2 or not tensor.size:
        return head
    array = tensor.numpy()
    rows = array.reshape(1, -1) if array.ndim < 2 else array
    lines = (_row(None if at is None else rows[at]) for at in _shown(len(rows)))
    return f"{head}<table>{''.join(lines)}</table>"


def _shown(count: int) -> list[int | None]:
    """Return the visible positions of an axis, with None for a gap."""
    if count <= _MOST_CELLS:
        return list(range(count))
    half = _MOST_CELLS // 2
    return [*range(half), None, *range(count - half, count)]


def _row(values: np.ndarray[Any, Any] | None) -> str:
    """Return a row of a table; a gap between rows has one cell."""
    cells: Sequence[str] = ["&#8942;"]
    if values is not None:
        positions = _shown(len(values))
        cells = ["&#8230;" if at is None else _cell(values[at]) for at in positions]
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _cell(value: Any) -> str:
    is_number = hasattr(value, "dtype") and is_float(value.dtype)
    text = f"{float(value):.4g}" if is_number else str(value)
    if len(text) > _MOST_CHARACTERS:
        text = f"{text[: _MOST_CHARACTERS - 3]}..."
    return escape(text)


def module_html(module: Any) -> str:
    """Return the tree of a module with parameter counts, collapsible by level."""
    return f"<div>{''.join(_tree('', module, is_open=True))}</div>"


def compiled_html(compiled: Any) -> str:
    """Return the name, precision and notes of a compiled function, and its module."""
    count = len(compiled.executables)
    plans = "1 plan" if count == 1 else f"{count} plans"
    head = f"<b>compiled</b> <code>{escape(compiled.name)}</code>"
    lines = [f"<div>{head} {escape(compiled.precision)}, {plans}</div>"]
    lines += [f"<div>{escape(note)}</div>" for note in compiled.notes]
    if hasattr(compiled.function, "children"):
        lines.append(module_html(compiled.function))
    return "".join(lines)


def _tree(name: str, module: Any, *, is_open: bool = False) -> Iterator[str]:
    label = escape(f"{type(module).__name__}({module.describe()})")
    prefix = f"{escape(name)}: " if name else ""
    count = module.num_parameters()
    plural = "" if count == 1 else "s"
    head = f"{prefix}<code>{label}</code> {count:,} parameter{plural}"
    inner = [(key, one) for key, one in module.children() if hasattr(one, "children")]
    if not inner:
        yield f"<div>{head}</div>"
        return
    yield f"<details{' open' * is_open}><summary>{head}</summary>"
    yield '<div style="margin-left:1.5em">'
    for key, child in inner[:_MOST_CHILDREN]:
        yield from _tree(key, child)
    if len(inner) > _MOST_CHILDREN:
        yield f"<div>and {len(inner) - _MOST_CHILDREN} more</div>"
    yield "</div></details>"

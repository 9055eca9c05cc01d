"""The options of an import as keys of a table in ``pyproject.toml``.

::

    class-name = "Net"
    flat = true
    simplify = ["all"]                   # or false
    dtype = "float16"
    shapes = { x = ["batch", 3, 224, 224] }
    inputs = ["x"]
    outputs = ["logits"]
    operators = ["app.operators"]
    standalone = true
    embed = true
dropout = true
    shard-size = "5GB"
    target = "torch"

and for weights alone::

    config = "config.json"
    top-level-key = "model"
    activation = "relu"
    padding = "same"
    pool = "max"
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from burn_import.options import (
    ACTIVATIONS,
    DTYPES,
    PADDINGS,
    POOLS,
    TARGETS,
    Extents,
    Hints,
    Options,
    is_extent,
)


def options_in(table: Mapping[str, Any]) -> Options:
    """Return the import options that a table sets.

    Raises:
        ValueError: a key is unknown or its value has the wrong type; names the key.
    """
    if unknown := sorted(table.keys() - _READERS.keys()):
        raise ValueError(f"expected keys among {sorted(_READERS)}, got {unknown}")
    chosen: dict[str, Any] = {}
    hints: dict[str, str] = {}
    for key, value in table.items():
        name, read = _READERS[key]
        try:
            (hints if key in _HINTS else chosen)[name] = read(value)
        except ValueError as error:
            raise ValueError(f"{key}: {error}") from None
    return Options(hints=Hints(**hints), **chosen)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"expected text, got {value!r}")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"expected true or false, got {value!r}")
    return value


def _names(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError(f"expected a list of text, got {value!r}")
    return tuple(_text(item) for item in value)


def _passes(value: Any) -> tuple[str, ...] | None:
    if isinstance(value, bool):
        return None if value else ()
    return _names(value)


def _one_of(words: Sequence[str]) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if value not in words:
            raise ValueError(f"expected one of {', '.join(words)}, got {value!r}")
        return _text(value)

    return read


def _shapes(value: Any) -> dict[str, Extents]:
    if not isinstance(value, Mapping):
        raise ValueError(f"expected a table of lists by input, got {value!r}")
    shapes: dict[str, Extents] = {}
    for name, extents in value.items():
        if not isinstance(extents, list) or not all(map(is_extent, extents)):
            raise ValueError(
                f"{name}: expected a list of numbers and names, got {extents!r}"
            )
        shapes[name] = tuple(extents)
    return shapes


def _size(value: Any) -> int:
    from burn.record import parse_size

    if not isinstance(value, str | int):
        raise ValueError(f"expected a size as text or a number, got {value!r}")
    return parse_size(value)


_HINTS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "activation": ("activation", _one_of(ACTIVATIONS)),
    "config": ("config", _text),
    "padding": ("padding", _one_of(PADDINGS)),
    "pool": ("pool", _one_of(POOLS)),
    "top-level-key": ("top_level_key", _text),
}
_READERS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    **_HINTS,
    "class-name": ("class_name", _text),
    "dropout": ("dropout", _flag),
    "embed": ("embed", _flag),
    "dtype": ("dtype", _one_of(DTYPES)),
    "flat": ("flat", _flag),
    "inputs": ("inputs", _names),
    "operators": ("operators", _names),
    "outputs": ("outputs", _names),
    "shard-size": ("shard_size", _size),
    "shapes": ("shapes", _shapes),
    "simplify": ("passes", _passes),
    "standalone": ("standalone", _flag),
    "target": ("target", _one_of(TARGETS)),
}

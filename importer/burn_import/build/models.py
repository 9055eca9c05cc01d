"""Models declared in ``pyproject.toml``, and whether their modules are current."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
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
from burn_import.output import (
    Digests,
    OutputRefused,
    check_module_path,
    has_digest,
    read_header,
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


_PATHS = ("input", "output")
#: Digest of the options in a module's first line; see ``Options.mark``.
_MARK = re.compile(r"[(] *(?:opset \d+, )?options ([0-9a-f]{8})[,)]")


@dataclass(frozen=True)
class Model:
    """One entry of the table, with paths below ``root``, the project's folder."""

    input: Path
    output: Path
    options: Options
    root: Path

    @property
    def record(self) -> Path | None:
        """Path of the record beside the module; None if it is embedded."""
        return None if self.options.embed else self.output.with_suffix(".safetensors")

    @property
    def files(self) -> list[Path]:
        """Paths of the module and its record, which may be in shards.

        Raises:
            RecordError: the index of the shards is damaged, or one is missing.
        """
        from burn.record import record_files

        return [self.output, *(record_files(self.record) if self.record else ())]


def configured(table: Mapping[str, Any], root: Path) -> list[Model]:
    """Return the models of a ``burn-import`` table in ``pyproject.toml``.

    Raises:
        ValueError: a key is missing, unknown or of the wrong type, or an output is
            outside the project.
        OutputRefused: an output is not a valid module name.
    """
    entries = table.get("models")
    if not isinstance(entries, list) or not entries:
        raise ValueError("burn-import: expected a list of tables called 'models'")
    return [_model(entry, number, root) for number, entry in enumerate(entries)]


def _model(entry: Any, number: int, root: Path) -> Model:
    where = f"burn-import: models[{number}]"
    if not isinstance(entry, Mapping) or not {"input", "output"} <= entry.keys():
        raise ValueError(f"{where}: expected a table with 'input' and 'output'")
    try:
        options = options_in({k: v for k, v in entry.items() if k not in _PATHS})
        if not all(isinstance(entry[key], str) for key in _PATHS):
            raise ValueError("expected text as 'input' and 'output'")
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    output = root / entry["output"]
    if not output.resolve().is_relative_to(root.resolve()) or ".." in output.parts:
        raise ValueError(f"{where}: expected an output inside the project")
    check_module_path(output)
    hints = options.hints
    if hints.config is not None:
        hints = replace(hints, config=str(root / hints.config))
    options = replace(options, stem=output.stem, hints=hints)
    return Model(root / entry["input"], output, options, root)


def bring_up_to_date(model: Model) -> list[str]:
    """Import ``model`` unless its outputs are current; return warnings.

    The outputs are left alone if their digests match, if the module was edited, or
    if the model file does not exist (a source distribution without it).

    Raises:
        burn_ir.ModelError: the model cannot be imported.
        burn_import.output.OutputRefused: a file from another source is in the way, or
            the record is damaged and the model file does not exist.
    """
    from burn_import.operators import importable_from
    from burn_import.pipeline import import_model, write_model

    name = model.output.name
    digests = read_header(model.output) if model.output.is_file() else None
    complete = digests is not None and _is_complete(model)
    if digests is not None and complete:
        if digests.body != digests.actual:
            return [f"{name} was edited since it was written, and is left unchanged"]
        is_intact = _has_intact_record(model, digests)
        if not model.input.exists():
            return _prebuilt(model, is_intact)
        if is_intact and _is_current(model, digests.source):
            return []
    with importable_from(model.root, model.options.operators):
        compiled = import_model(model.input, model.options)
    model.output.parent.mkdir(parents=True, exist_ok=True)
    write_model(compiled, model.output)
    return []


def _is_complete(model: Model) -> bool:
    """Return whether the module and all files of its record exist."""
    from burn.record import RecordError

    try:
        return all(path.is_file() for path in model.files)
    except RecordError:
        return False


def _has_intact_record(model: Model, digests: Digests) -> bool:
    """Return whether the record has its digest; an embedded one is part of the body."""
    if model.record is None or digests.record is None:
        return True
    return has_digest(model.record, digests.record)


def _prebuilt(model: Model, is_intact: bool) -> list[str]:
    """Accept prebuilt outputs whose model file does not exist; return no warnings."""
    if is_intact:
        return []
    raise OutputRefused(
        f"{model.output.stem}.safetensors does not have the SHA-256 in the header of "
        f"{model.output.name}: it is damaged or of another model. "
        f"Expected it intact, or the model {model.input.name} to write it again"
    )


def _is_current(model: Model, digest: str) -> bool:
    """Return whether this version made a module from this input and options."""
    from burn_import.model_files import source_sha256
    from burn_import.version import VERSION

    text = model.output.read_text("ascii")
    if not text.startswith(f"# Imported by burn-import {VERSION} "):
        return False
    name = model.options.class_name
    if name and f"\nclass {name}(" not in text:
        return False
    mark = _MARK.search(text.partition("\n")[0])
    if (mark[1] if mark else "") != model.options.mark:
        return False
    return source_sha256(model.input, model.options.hints.config) == digest

"""The files that a model consists of, and their digest."""

import os
from pathlib import Path

from burn.digests import file_sha256_of, sha256
from burn_import.file_kinds import INDEX, FileKind, file_kind


def model_files(model: str | Path, config: str | None = None) -> list[Path]:
    """Return the file of a model and the existing files that are imported with it.

    These are the external data of an ONNX model in its folder, the shards of an index,
    and the ``config.json`` of weights: ``config``, or the one beside them. A file that
    cannot be read refers to none; the import says why.
    """
    path = Path(model)
    others: list[Path] = []
    if path.name.endswith(INDEX):
        others = _shards(path)
    elif file_kind(path) is FileKind.ONNX:
        others = _external_data(path)
    if file_kind(path) is FileKind.WEIGHTS:
        from burn_import.frontends.recipes.config import config_path

        others.append(config_path(path, config))
    return [path, *(other for other in others if other.is_file())]


def source_sha256(model: str | Path, config: str | None = None) -> str:
    """Return the SHA-256 (hex) of a model's file.

    Of a model in several files (:func:`model_files`) it is that of the lines
    ``DIGEST  NAME``, as sha256sum prints them.

    Raises:
        OSError: a file cannot be read.
    """
    first, *others = model_files(model, config)
    if not others:
        return _sha256(first)
    lines = [f"{_sha256(file)}  {file.name}\n" for file in (first, *others)]
    return sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return file_sha256_of(file)


def _shards(index: Path) -> list[Path]:
    from burn.record import RecordError
    from burn.record.shards import read_index

    try:
        return list(dict.fromkeys(read_index(index, require=False).files.values()))
    except (RecordError, OSError):
        return []


def _external_data(path: Path) -> list[Path]:
    from burn.record.shards import lies_in
    from burn_import.frontends.onnx.reader import external_locations
    from burn_ir import ModelError

    try:
        locations = external_locations(path)
    except ModelError:
        return []
    folder = Path(os.path.realpath(path.parent))
    files = [path.parent / name for name in locations if "\0" not in name]
    return [file for file in files if lies_in(Path(os.path.realpath(file)), folder)]

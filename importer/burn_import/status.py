"""The check that generated files are unedited and match the current model."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from burn_import.output import Digests


#: The command in the header of modules that ``quantize`` wrote.
QUANTIZED_TO = "quantize --to "


@dataclass(frozen=True)
class Status:
    """A generated module and its problems (none if empty)."""

    module: Path
    problems: tuple[str, ...]


def generated_modules(path: Path) -> list[Path]:
    """Return the modules in a folder that burn-import wrote, or ``path``, a file."""
    from burn_import.output import read_header

    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.rglob("*.py") if file.is_file())
    return [file for file in files if read_header(file) is not None]


def status_of(
    module: Path, model: Path | None = None, config: str | None = None
) -> Status:
    """Return whether ``module`` and its record are as they were written.

    The record must be that of the model with the SHA-256 in the module's header.
    With ``model`` the digest in the header must be that of this file and of the files
    that are imported with it, one of which may be ``config``.
    """
    from burn_import.model_files import source_sha256
    from burn_import.output import read_header

    if not module.is_file():
        return Status(module, ("there is no such file",))
    digests = read_header(module)
    if digests is None:
        is_model = module.suffix != ".py"
        hint = f"; pass the module, and --model {module.name}" if is_model else ""
        return Status(module, (f"not written by burn-import{hint}",))
    problems = []
    if digests.body != digests.actual:
        problems.append("edited since it was written")
    if model is not None:
        if not model.is_file():
            problems.append(f"there is no model {model}")
        elif source_sha256(model, config) != digests.source:
            problems.append(f"stale: {model.name} changed since{_remedy(module)}")
    return Status(module, (*problems, *_record_problems(module, digests)))


def _remedy(module: Path) -> str:
    """Return how a stale module is made anew where an import is not enough."""
    with module.open("rb") as file:
        is_quantized = f"({QUANTIZED_TO}".encode() in file.readline()
    return (
        "; quantize it again, by the command in its docstring and the same samples"
        if is_quantized
        else ""
    )


def _record_problems(module: Path, digests: Digests) -> list[str]:
    from burn.record import RecordError, file_sha256, open_stored
    from burn.record.shards import stored_at
    from burn_import.embedding import embedded_record
    from burn_import.fingerprint import SOURCE, is_unchanged

    try:
        embedded = embedded_record(module)
    except ValueError as error:
        return [f"its embedded record is damaged: {error}"]
    if embedded is not None:
        is_intact = hashlib.sha256(embedded).hexdigest() == digests.record
        return [] if is_intact else ["its embedded record was changed since"]
    record = module.with_suffix(".safetensors")
    record = stored_at(record)
    if not record.is_file():
        return [f"its record {record.name} does not exist"]
    try:
        origin = open_stored(record).metadata.get(SOURCE, digests.source)
        actual = file_sha256(record)
    except RecordError as error:
        return [f"{record.name} is damaged: {error}"]
    if origin != digests.source:
        return [f"{record.name} is of another model than {module.name}"]
    if digests.record is None:
        is_intact = is_unchanged(record)
    else:
        is_intact = actual == digests.record
    return [] if is_intact else [f"{record.name} was changed since"]

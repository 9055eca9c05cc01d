"""Writing of module and weights files, with a header that detects manual edits.

::

    # Imported by burn-import 0.1.0 from net.onnx (opset 18, pytorch 2.15.0).
    # source sha256 <of the model's file>
    # record sha256 <of the file of weights>
    # body   sha256 <of everything below this line>

The importer may replace a file whose body still matches its digest. Headers of the
first modules of version 0.1 have no line for the record.
"""

from __future__ import annotations

import errno
import hashlib
import keyword
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from burn_import.diff import Changes, changes
from burn_import.embedding import MAX_EMBEDDED, record_source
from burn_import.fingerprint import KEY, SOURCE, fingerprint, is_unchanged, same_array
from burn_import.version import VERSION

if TYPE_CHECKING:
    from burn_import.codegen.gate.allowed import Rules
    from burn_ir.types import Array

_HEADER = re.compile(
    rb"# Imported by burn-import [^\r\n]*\r?\n"
    rb"# source sha256 (?P<source>[0-9a-f]{64})\r?\n"
    rb"(?:# record sha256 (?P<record>[0-9a-f]{64})\r?\n)?"
    rb"# body   sha256 (?P<body>[0-9a-f]{64})\r?\n"
)
#: File names that Windows reserves, whatever the extension.
_DEVICES = {"con", "prn", "aux", "nul"} | {
    f"{port}{number}" for port in ("com", "lpt") for number in range(1, 10)
}
#: Packages that generated modules and the runtime import.
_PACKAGES = {"burn", "cupy", "llvmlite", "ml_dtypes", "numpy", "pil"}
_PACKAGES |= {"burn_import", "burn_ir", "burn_templates"}
#: Maximum width of the first line, as of all others.
_LINE = 88
#: Minimum number of file-name characters that a shortened first line keeps.
_SHORTEST_NAME = 12


class OutputRefused(ValueError):  # noqa: N818  named like the errors of readers
    """The output is an invalid module name or would replace a foreign file.

    ``hint`` is the remedy, "" if the message has it.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True)
class Written:
    """The written files, and whether they changed.

    ``weights`` is the record, or the index of its ``shards`` if there are several; None
    if it is embedded in the module. After a dry run, ``changes`` holds the differences
    that writing would make.
    """

    module: Path
    weights: Path | None
    changed: bool
    changes: Changes | None = None
    shards: tuple[Path, ...] = ()

    @property
    def files(self) -> tuple[Path, ...]:
        """Return the paths of the module and of its record."""
        record = () if self.weights is None else (self.weights, *self.shards)
        return self.module, *record


def write_module(
    module: Path,
    text: str,
    weights: Sequence[tuple[str, Array]],
    origin: tuple[str, str],
    rules: Rules,
    *,
    body: str | None = None,
    embed: str = "",
    shard_size: int | None = None,
    force: bool = False,
    dry_run: bool = False,
) -> Written:
    """Write the module and its weights; see :func:`burn_import.pipeline.write_model`.

    ``origin`` is the model's name with its versions, and the SHA-256 of its file;
    ``rules`` check ``text``; ``body``, which may contain parts of the runtime, is
    written in its place. ``embed`` names the class whose weights are written at the end
    of the module. Records larger than ``shard_size`` bytes are in several files.
    """
    from burn.record import atomic_write, record_sha256, write_record
    from burn_import.codegen.gate.gate import check

    check_module_path(module)
    about = record_metadata(weights, origin[1])
    end = _embedded(module, embed, weights, about) if embed else ""
    text, body = text + end, (text if body is None else body) + end
    name = module.with_suffix(".safetensors")
    record = None if embed else name
    digest = record_sha256(name, weights, about, shard_size=shard_size)
    check((header(*origin, digest, text) + text).encode("ascii"), rules)
    data = (header(*origin, digest, body) + body).encode("ascii")
    if not force:
        _check_replaceable(module, record, weights)
    is_current = record is None or has_digest(record, digest)
    changed = not (_same(module, data) and is_current)
    written = replace(_written(module, record, weights, shard_size), changed=changed)
    if dry_run:
        return replace(written, changes=changes(module, data.decode(), weights))
    if not changed:
        return _remove_stale(written)
    if record is not None:
        write_record(record, weights, about, shard_size=shard_size)
    atomic_write(module, data)
    return written


def _remove_stale(written: Written) -> Written:
    """Return ``written``, without temporary files of an import that was killed."""
    from burn.record.atomic import remove_stale

    for path in written.files:
        remove_stale(path)
    return written


def _written(
    module: Path,
    record: Path | None,
    weights: Sequence[tuple[str, Array]],
    shard_size: int | None,
) -> Written:
    """Return the files of a module and its record, as unchanged."""
    from burn.record import shard_names
    from burn.record.shards import written_files

    if record is None:
        return Written(module, None, changed=False)
    names = shard_names(record, weights, shard_size=shard_size)
    first, *shards = written_files(record, names)
    return Written(module, first, changed=False, shards=tuple(shards))


def _embedded(
    module: Path,
    class_name: str,
    weights: Sequence[tuple[str, Array]],
    about: Mapping[str, str],
) -> str:
    """Return the source of the weights of a class, which ends ``module``.

    Raises:
        OutputRefused: they are too large.
    """
    size = sum(array.nbytes for _, array in weights)
    if size > MAX_EMBEDDED:
        raise OutputRefused(
            f"--embed: expected weights of at most {MAX_EMBEDDED:,} bytes, got "
            f"{size:,} bytes in {len(weights)} tensors",
            f"Leave out --embed: they are written to {module.stem}.safetensors then.",
        )
    return record_source(class_name, weights, about)


def _check_replaceable(
    module: Path, record: Path | None, weights: Sequence[tuple[str, Array]]
) -> None:
    """Check that the files of a module may be replaced; ``record`` by ``weights``.

    Raises:
        OutputRefused: one was changed, or is not from burn-import.
    """
    from burn.record.shards import stored_at

    check_ours(module)
    is_there = record is not None and stored_at(record).exists()
    if record is not None and is_there and not same_record(record, weights):
        _check_record(record, module)


def record_metadata(
    weights: Sequence[tuple[str, Array]], source_sha256: str
) -> dict[str, str]:
    """Return metadata that identifies a record's weights and its model."""
    return {KEY: fingerprint(weights), SOURCE: source_sha256}


def header(origin: str, source_sha256: str, record_sha256: str, text: str) -> str:
    """Return the four header lines for ``text``, in ASCII whatever the model's name."""
    start = f"# Imported by burn-import {VERSION} from "
    shown = _shorten(re.sub(r"[^ -~]|coding[:=]", "?", origin), _LINE - len(start) - 1)
    return (
        f"{start}{shown}.\n"
        f"# source sha256 {source_sha256}\n"
        f"# record sha256 {record_sha256}\n"
        f"# body   sha256 {hashlib.sha256(text.encode('ascii')).hexdigest()}\n"
    )


def _shorten(origin: str, width: int) -> str:
    """Return ``origin`` in at most ``width`` columns, with the file name shortened."""
    if len(origin) <= width:
        return origin
    name, bracket, details = origin.rpartition(" (")
    length = width - len(bracket + details) - len("...")
    if length < _SHORTEST_NAME:
        return origin[: width - len("...")] + "..."
    return name[:length] + "..." + bracket + details


def check_module_path(module: Path) -> None:
    """Check that ``module`` is a path that Python can import.

    Raises:
        OutputRefused: it is not.
    """
    stem = module.stem
    if module.suffix != ".py":
        raise OutputRefused(
            f"expected an output that ends in .py, got {module.name!r}",
            (
                f"Pass -o {module.with_suffix('') / 'net.py'} or -o {stem}.py."
                if not module.suffix
                else f"Pass -o {module.with_suffix('.py')}."
            ),
        )
    if not stem.isidentifier() or not stem.isascii() or keyword.iskeyword(stem):
        name = re.sub(r"\W+", "_", stem, flags=re.ASCII).strip("_")
        name = name if name.isidentifier() and not keyword.iskeyword(name) else "net"
        raise OutputRefused(
            f"expected an identifier as module name, got {stem!r}",
            f"Pass -o {module.with_name(name + '.py')}: `import` needs the name.",
        )
    if hides_module(stem):
        is_stdlib = stem.lower() in sys.stdlib_module_names
        raise OutputRefused(
            f"expected a module name of your own, got {stem!r} of the standard library"
            if is_stdlib
            else f"expected a module name of your own, got {stem!r}, which hides the "
            "package of this name from programs that import it"
        )
    if stem.lower() in _DEVICES:
        raise OutputRefused(f"expected a file name, got {stem!r}, a device on Windows")


def hides_module(stem: str) -> bool:
    """Return whether a module of this name hides one that generated modules import."""
    return stem.lower() in sys.stdlib_module_names or stem.lower() in _PACKAGES


def make_parent(output: Path, *, dry_run: bool = False) -> list[Path]:
    """Create the directory of ``output``; with ``dry_run`` only check it.

    Returns the directories that did not exist, innermost first.

    Raises:
        OSError: a parent is not a directory, or cannot be created.
    """
    folder = output.parent
    chain = (folder, *folder.parents)
    missing = list(takewhile(lambda path: not path.exists(), chain))
    existing = chain[len(missing)]
    if not existing.is_dir():
        raise OSError(errno.ENOTDIR, "not a directory", str(existing))
    if dry_run:
        return []
    folder.mkdir(parents=True, exist_ok=True)
    return missing


def check_ours(module: Path) -> None:
    """Check that ``module`` may be replaced: it is missing or unedited.

    Raises:
        OutputRefused: it was edited, or is not from burn-import.
    """
    if not module.exists():
        return
    if not module.is_file():
        raise OutputRefused(f"expected a file, got {module.name!r}, which is none")
    digests = read_header(module)
    if digests is None:
        raise OutputRefused(f"{module.name} was not written by burn-import")
    if digests.body != digests.actual:
        raise OutputRefused(f"{module.name} was edited since burn-import wrote it")


def _check_record(record: Path, module: Path) -> None:
    """Check that ``record``, with other weights, may be replaced.

    Raises:
        OutputRefused: it has no module, was changed, or is not from burn-import.
    """
    if not module.exists():
        raise OutputRefused(f"{record.name} exists, but its module does not")
    if not (is_unchanged(record) or _has_own_shards(record, module)):
        raise OutputRefused(
            f"{record.name} holds weights that burn-import did not write, "
            "perhaps trained ones; move the file to keep them"
        )


def _has_own_shards(record: Path, module: Path) -> bool:
    """Return whether the existing shards of ``record`` are those of the header."""
    from burn.record import RecordError, file_sha256

    digests = read_header(module)
    try:
        actual = file_sha256(record, require=False)
    except (OSError, RecordError):
        return False
    return digests is not None and digests.record == actual


@dataclass(frozen=True)
class Digests:
    """The digests in a header, and that of the current body.

    ``record`` is None in a header from before records had digests.
    """

    source: str
    record: str | None
    body: str
    actual: str


def read_header(module: Path) -> Digests | None:
    """The digests of a generated module; None if it has no header."""
    data = module.read_bytes()
    match = _HEADER.match(data)
    if match is None:
        return None
    # git may have converted the line endings
    body = data[match.end() :].replace(b"\r\n", b"\n")
    actual = hashlib.sha256(body).hexdigest()
    record = match["record"].decode() if match["record"] else None
    return Digests(match["source"].decode(), record, match["body"].decode(), actual)


def has_digest(record: Path, sha256: str) -> bool:
    """Return whether the record, in one file or in shards, has this SHA-256 (hex)."""
    from burn.record import RecordError, file_sha256
    from burn.record.shards import stored_at

    try:
        return stored_at(record).is_file() and file_sha256(record) == sha256
    except RecordError:  # a shard is missing or damaged
        return False


def _same(path: Path, data: bytes) -> bool:
    return path.is_file() and path.read_bytes() == data


def same_record(path: Path, weights: Sequence[tuple[str, Array]]) -> bool:
    """Return whether the record at ``path`` holds exactly these weights."""
    from burn.record import RecordError, open_stored
    from burn.record.shards import stored_at

    if not stored_at(path).is_file():
        return False
    try:
        record = open_stored(path)
        if list(record) != [key for key, _ in weights]:
            return False
        return all(same_array(record[key], array) for key, array in weights)
    except RecordError:
        return False

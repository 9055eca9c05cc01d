"""Records inside zip files, such as programs made by ``zipapp``."""

from __future__ import annotations

import os
from io import BufferedReader, BytesIO
from pathlib import Path

from burn.record.errors import RecordError

#: The maximum decompressed size of an entry: a multiple of its size, and a minimum.
_TIMES, _LEAST = 20, 64 << 20


def archived_bytes(path: Path) -> bytes | None:
    """Return the bytes at a path inside a zip file; None for all other paths.

    Raises:
        FileNotFoundError: the zip file has no such entry.
        RecordError: the entry is damaged, or decompresses to too many bytes.
    """
    archive = next((parent for parent in path.parents if parent.is_file()), None)
    if archive is None:
        return None
    from zipfile import BadZipFile, ZipFile, is_zipfile  # few paths lead into one

    if not is_zipfile(archive):
        return None
    name = path.relative_to(archive).as_posix()
    try:
        with ZipFile(archive) as file:
            info = file.getinfo(name)
            if info.file_size > max(_LEAST, _TIMES * info.compress_size):
                raise RecordError(
                    f"{path}: expected at most {_TIMES} times {info.compress_size} "
                    f"bytes, got {info.file_size}; store it without compression"
                )
            return file.read(info)
    except KeyError:
        raise FileNotFoundError(
            2, f"no such entry in {archive.name}", str(path)
        ) from None
    except (BadZipFile, NotImplementedError) as error:
        raise RecordError(f"{path}: {error}") from None


def open_binary(path: str | os.PathLike[str]) -> BufferedReader | BytesIO:
    """Open the file at ``path``, which may be inside a zip file, for reading.

    Raises ``OSError`` if it does not exist, and errors of :func:`archived_bytes`.
    """
    data = archived_bytes(Path(path))
    return open(path, "rb") if data is None else BytesIO(data)

"""Machine code and results of tuning on disk, shared by the processes of one user.

It has object code of generated kernels, plans of cuDNN and the numbers of the fastest
algorithms. Loaded code is executed. The folder and its files must therefore belong to
the user, and no other user may have write access; otherwise the cache is not used.
"""

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import time

from burn.digests import sha256

#: The size of the files above which the least recently used ones are removed.
LIMIT = 256 << 20
#: A file is marked as used at most once in so many seconds.
_FRESH = 3_600
#: Temporary files of this age (in seconds) were left by processes that ended.
_STALE = 3_600
#: Written files between two checks of the total size.
_CHECK_EVERY = 32
_MAGIC = b"burn cache 1\n"
#: The size of a SHA-256.
_DIGEST = 32
_SUFFIX, _TEMPORARY = ".bin", ".tmp"
#: Write permissions of the group and of others.
_FOREIGN_WRITES = stat.S_IWGRP | stat.S_IWOTH
#: Owners and modes of files can be checked, relative to an open folder.
_IS_SUPPORTED = hasattr(os, "geteuid") and os.open in os.supports_dir_fd


def default_folder() -> Path | None:
    """Return the user's folder for the cache, None without a home folder."""
    chosen = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(chosen):  # the specification ignores other values
        return Path(chosen, "burn")
    home = os.path.expanduser("~")
    if not os.path.isabs(home):
        return None
    parts = ("Library", "Caches") if sys.platform == "darwin" else (".cache",)
    return Path(home, *parts, "burn")


class DiskCache:
    """A folder with one file for each key.

    Every method works without the folder: then nothing is found and nothing written,
    and ``refusal`` is the reason.
    """

    def __init__(self, folder: Path | None, limit: int = LIMIT) -> None:
        self.folder, self.limit = folder, limit
        #: Why the folder is not used, if it is not.
        self.refusal = None if folder else "switched off"
        self._written = 0

    def read(self, key: str) -> bytes | None:
        """Return the data of a key; None if it is not there, damaged or not safe."""
        with self._opened(create=False) as folder:
            if folder is None:
                return None
            try:
                data = _read_file(key + _SUFFIX, folder)
            except OSError:
                return None
        start = len(_MAGIC) + _DIGEST
        content = data[start:]
        header = _MAGIC + _digest(key, content)
        return content if data[:start] == header else None

    def write(self, key: str, content: bytes) -> None:
        """Write the data of a key, in one step for readers in other processes."""
        with self._opened(create=True) as folder:
            if folder is None:
                return
            temporary = f"{os.urandom(8).hex()}{_TEMPORARY}"
            data = _MAGIC + _digest(key, content) + content
            try:
                _write_file(temporary, data, folder)
                os.rename(
                    temporary, key + _SUFFIX, src_dir_fd=folder, dst_dir_fd=folder
                )
            except OSError as error:
                self.refusal = f"{self.folder}: {error.strerror}"
                with suppress(OSError):
                    os.unlink(temporary, dir_fd=folder)
                return
            if self._written % _CHECK_EVERY == 0:
                _evict(folder, self.limit)
            self._written += 1

    def size(self) -> int:
        """Return the bytes of the files."""
        with self._opened(create=False) as folder:
            return 0 if folder is None else sum(e[1] for e in _entries(folder))

    @contextmanager
    def _opened(self, *, create: bool) -> Iterator[int | None]:
        """Yield a descriptor of the folder, None if it is not there or not safe."""
        descriptor = None
        if self.folder is not None and self.refusal is None:
            try:
                descriptor = _open_folder(self.folder, create)
            except OSError as error:
                self.refusal = f"{self.folder}: {error.strerror}"
        try:
            yield descriptor
        finally:
            if descriptor is not None:
                os.close(descriptor)


_current: DiskCache | None = None


def kernel_cache() -> DiskCache:
    """Return the cache of this process for compiled kernels and results of tuning."""
    global _current
    if _current is None:
        _current = DiskCache(default_folder())
    return _current


def set_kernel_cache(folder: str | os.PathLike[str] | None) -> None:
    """Keep compiled kernels and results of tuning in ``folder``; None keeps no files.

    It applies to later compilations and tuning of this process. Without a call the
    folder is that of :func:`default_folder`.
    """
    global _current
    _current = DiskCache(None if folder is None else Path(folder).absolute())


def _open_folder(path: Path, create: bool) -> int | None:
    """Return a descriptor of a private folder, None if it does not exist.

    Raises:
        OSError: it cannot be opened or made, or other users may write to it.
    """
    if not _IS_SUPPORTED:
        raise OSError(0, "owners of files cannot be checked on this platform")
    if create:
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            path.mkdir(mode=0o700)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    try:
        _check_private(os.fstat(descriptor))
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _check_private(status: os.stat_result) -> None:
    """Raise OSError if other users may write to a file or own it."""
    if status.st_uid != os.geteuid():
        raise OSError(0, f"owned by user {status.st_uid}, expected {os.geteuid()}")
    if status.st_mode & _FOREIGN_WRITES:
        mode = stat.S_IMODE(status.st_mode)
        raise OSError(0, f"other users may write to it (mode {mode:04o})")


def _read_file(name: str, folder: int) -> bytes:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK  # nor wait for a named pipe
    with os.fdopen(os.open(name, flags, dir_fd=folder), "rb") as file:
        status = os.fstat(file.fileno())
        _check_private(status)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(0, "not a regular file")
        if time() - status.st_mtime > _FRESH:
            os.utime(file.fileno())
        return file.read()


def _write_file(name: str, data: bytes, folder: int) -> None:
    # Not synced to the disk: a file that a crash cuts short fails its checksum.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with os.fdopen(os.open(name, flags, 0o600, dir_fd=folder), "wb") as file:
        file.write(data)


def _digest(key: str, content: bytes) -> bytes:
    """Return a checksum of the content, which also tells a renamed file."""
    return sha256(key.encode() + content).digest()


def _entries(folder: int) -> list[tuple[float, int, str]]:
    """Return the last use, the size and the name of each file of the cache."""
    entries = []
    for name in os.listdir(folder):
        if name.endswith((_SUFFIX, _TEMPORARY)):
            with suppress(FileNotFoundError):
                status = os.stat(name, dir_fd=folder, follow_symlinks=False)
                entries.append((status.st_mtime, status.st_size, name))
    return entries


def _evict(folder: int, limit: int) -> None:
    """Remove stale temporary files and, above the limit, the files used longest ago."""
    entries = sorted(_entries(folder))
    excess = sum(size for _, size, _ in entries) - limit
    if excess > 0:
        excess += limit // 4  # so that the next file does not exceed it again
    for used, size, name in entries:
        is_stale = name.endswith(_TEMPORARY) and time() - used > _STALE
        if is_stale or (excess > 0 and name.endswith(_SUFFIX)):
            with suppress(OSError):  # another process removed it
                os.unlink(name, dir_fd=folder)
            excess -= size

"""Memory maps of a model's file and of the files of its external tensors.

Paths in a model are untrusted. An external file must lie in the directory of the model
or in the ``blobs`` directory of the Hugging Face cache whose snapshot holds the model
(its files are links to blobs). Links are resolved before the path is checked.
"""

import mmap
import os
import stat
from pathlib import Path

from burn.record import HEAD_SIZE, describe_foreign, files
from burn.record.shards import lies_in
from burn_import.foreign import SHARDED, folder_remedy, missing_remedy
from burn_ir import UnreadableFile


def map_file(path: Path) -> memoryview:
    """Map a regular file and return its content, read-only and not loaded into memory.

    Raises:
        UnreadableFile: the file does not exist or cannot be mapped.
    """
    if path.suffix == ".distcp" or (path / ".metadata").is_file():
        raise UnreadableFile(SHARDED)
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(path, flags)  # a pipe would block without O_NONBLOCK
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                is_folder = stat.S_ISDIR(status.st_mode)
                raise UnreadableFile(
                    f"expected a regular file, got {'the folder ' * is_folder}"
                    f"{str(path)!r}",
                    folder_remedy(path) if is_folder else "",
                )
            if status.st_size == 0:
                return memoryview(b"")
            return memoryview(mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ))
        finally:
            os.close(descriptor)
    except (OSError, ValueError) as error:  # ValueError: the path contains NUL
        if isinstance(error, UnreadableFile):
            raise
        reason = getattr(error, "strerror", None) or str(error)
        hint = missing_remedy(path) if isinstance(error, FileNotFoundError) else ""
        raise UnreadableFile(f"cannot read {str(path)!r}: {reason}", hint) from error


class ExternalFiles:
    """Files beside a model that its external tensors may refer to."""

    def __init__(self, model: Path) -> None:
        self.directory = Path(os.path.realpath(model.parent))
        self._maps: dict[Path, memoryview] = {}

    def open(self, location: str, tensor: str) -> memoryview:
        """Return the content of the external file at ``location``.

        Raises:
            UnreadableFile: the file does not exist, is outside the allowed
                directories, or is a pointer file, such as one of Git LFS.
        """
        where = f"tensor {tensor!r}, external file {location!r}"
        path = self._resolve(location, where)
        if path not in self._maps:
            try:
                content = map_file(path)
            except UnreadableFile as error:
                raise error.in_file(where) from error
            self._check(path, where)  # detects a link that was swapped after the check
            foreign = describe_foreign(bytes(content[:HEAD_SIZE]))
            if foreign in (files.ANNEX, files.LFS):
                message = f"{where}: expected weights, got this: {foreign.kind}"
                raise UnreadableFile(message, foreign.remedy)
            self._maps[path] = content
        return self._maps[path]

    def _resolve(self, location: str, where: str) -> Path:
        if not location or "\0" in location or Path(location).is_absolute():
            raise UnreadableFile(f"{where}: expected a path relative to the model")
        path = Path(os.path.realpath(self.directory / location))
        self._check(path, where)
        if not path.exists():
            raise UnreadableFile(
                f"{where}: there is no such file in {str(self.directory)!r}",
                "Copy it there: the exporter wrote it beside the model.",
            )
        return path

    def _check(self, path: Path, where: str) -> None:
        if not lies_in(path, self.directory):
            raise UnreadableFile(
                f"{where}: expected a file in the directory of the model, "
                "this one is outside",
                "Only files beside the model are read: move it there and write the "
                "model anew with onnx.save(..., save_as_external_data=True).",
            )

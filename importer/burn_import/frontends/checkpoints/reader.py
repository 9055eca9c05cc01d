"""Entry point for files of weights, recognized by content and not by suffix."""

import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np

import burn_import.frontends.checkpoints.torch_globals  # noqa: F401  its functions may be called
from burn.dtypes import DType
from burn.record import HEAD_SIZE, RecordError, describe_foreign, files, open_record
from burn.record.errors import shown
from burn.record.shards import read_index
from burn_import.foreign import kind_by_name
from burn_import.frontends.checkpoints.checkpoint import (
    LIGHTNING,
    Checkpoint,
    LazyTensor,
    RecordTensor,
)
from burn_import.frontends.checkpoints.legacy import (
    Content,
    nested_storage,
    read_archive,
    read_pickles,
)
from burn_import.frontends.checkpoints.limits import LIMITS, Limits
from burn_import.frontends.checkpoints.numpy_globals import CODES
from burn_import.frontends.checkpoints.pickle_globals import Context
from burn_import.frontends.checkpoints.tensor_names import find, select
from burn_import.frontends.onnx.files import map_file
from burn_ir import InvalidModel, ModelError, UnreadableFile, UnsupportedModel
from burn_ir.types import Array


def read_shards(path: Path, read: Callable[[Path], Checkpoint]) -> Checkpoint:
    """Return the tensors of all the files that the index at ``path`` names.

    Raises:
        UnreadableFile: the index is damaged, or names a file that is not beside it.
        InvalidModel: a tensor is missing from the file that the index names.
    """
    try:
        index = read_index(path)
    except RecordError as error:
        raise UnreadableFile(str(error)) from error
    shards: dict[Path, Checkpoint] = {}
    tensors: dict[str, LazyTensor] = {}
    for name, file in index.files.items():
        if file not in shards:
            shards[file] = read(file)
        if name not in shards[file]:
            raise InvalidModel(f"tensor {shown(name)}: not in {shown(file.name)}")
        tensors[name] = shards[file][name]
    skipped = {
        f"{name} in {file.name}": "a tensor that the index does not name"
        for file, shard in shards.items()
        for name in shard
        if index.files.get(name) != file
    }
    return Checkpoint(path, "sharded", tensors, index.metadata, skipped=skipped)


_SUFFIX = ".npy"
#: Errors of zipfile and NumPy about damaged, truncated and encrypted archives.
_DAMAGES = (zipfile.BadZipFile, zlib.error, ValueError, EOFError, RuntimeError)
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


@dataclass(frozen=True, eq=False, slots=True)
class ArchivedArray:
    """An array of an archive, which is read when its values are."""

    path: Path
    name: str
    dtype: DType
    shape: tuple[int, ...]
    quantization: None = None

    def array(self) -> Array:
        try:
            with np.load(self.path, allow_pickle=False) as archive:
                values = archive[f"{self.name}{_SUFFIX}"]
        except _DAMAGES as error:
            raise InvalidModel(f"array {shown(self.name)}: {error}") from error
        array: Array = values.astype(self.dtype, copy=False)
        array.flags.writeable = False
        return array


def read_arrays(
    path: Path, limits: Limits
) -> tuple[Mapping[str, ArchivedArray], Mapping[str, str]]:
    """Return the arrays of an archive by name, and why others are not read.

    Raises:
        UnreadableFile: the archive is damaged.
        UnsupportedModel: an array is larger than ``limits`` allow for compressed data.
    """
    arrays: dict[str, ArchivedArray] = {}
    skipped: dict[str, str] = {}
    try:
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                name = member.filename.removesuffix(_SUFFIX)
                if name == member.filename:
                    skipped[name] = "a file that is no array"
                    continue
                _check_size(name, member, limits)
                with archive.open(member) as file:
                    array = _described(path, name, file, member.file_size)
                if isinstance(array, str):
                    skipped[name] = array
                else:
                    arrays[name] = array
    except ModelError:
        raise
    except _DAMAGES as error:
        raise UnreadableFile(f"expected an archive of NumPy: {error}") from error
    return arrays, skipped


def _check_size(name: str, member: zipfile.ZipInfo, limits: Limits) -> None:
    is_stored = member.compress_type == zipfile.ZIP_STORED
    if not is_stored and member.file_size > limits.pickle:
        raise UnsupportedModel(
            f"array {shown(name)}: {member.file_size} bytes are compressed, more than "
            f"{limits.pickle}"
        )


def _described(
    path: Path, name: str, file: IO[bytes], size: int
) -> ArchivedArray | str:
    """Return the array that a header describes, or why it is not read.

    Raises:
        ValueError: the header is damaged, or the data do not have its size.
    """
    version = np.lib.format.read_magic(file)
    if version not in _HEADERS:
        return "an array of a structured dtype"
    header: Any = _HEADERS[version](file)
    shape, _, dtype = header
    if f"{dtype.kind}{dtype.itemsize}" not in CODES:
        return f"an array of NumPy of dtype {shown(dtype.str)}"
    expected, got = prod(shape) * dtype.itemsize, size - file.tell()
    if expected != got:
        raise ValueError(
            f"array {shown(name)} of shape {list(shape)}: expected {expected} bytes, "
            f"got {got}"
        )
    return ArchivedArray(path, name, dtype.newbyteorder("="), tuple(shape))


_PROTOCOL_0 = b"(c]}"


def read(
    path: str | Path, top_level_key: str | None = None, *, limits: Limits = LIMITS
) -> Checkpoint:
    """Return the tensors of a file of weights by name, read on demand.

    Reads ``.pt``, ``.pth``, ``.ckpt`` and ``.bin`` files that PyTorch 0.1.11 or newer
    wrote, TorchScript archives, pickled modules, safetensors files, the index of a
    sharded model (``*.index.json``), and archives of NumPy (``.npz``). Nothing in a
    file is executed or imported. Names are those of a ``state_dict``; in a checkpoint
    they begin with the keys of its dicts (``model.layer1.weight``). ``top_level_key``
    selects one dict and drops its prefix.

    Raises:
        UnreadableFile: the file is damaged, or of a format without tensors.
        UnsupportedModel: it calls a function that is refused, or nests or repeats more
            than ``limits`` allow.
        InvalidModel: a tensor does not fit its storage, or ``top_level_key`` is
            missing.
    """
    path = Path(path)
    try:
        return _read(path, top_level_key, limits)
    except ModelError as error:
        raise _with_remedy(error, path) from error


def _with_remedy(error: ModelError, path: Path) -> ModelError:
    """Return an error that names the file and its likely kind, by its suffix."""
    named = kind_by_name(path) if isinstance(error, UnreadableFile) else None
    if named is None or path.suffix == ".bin":  # a usual name of checkpoints
        return error.in_file(path.name)
    message = f"{path.name}: expected a checkpoint of PyTorch, got a {named.kind}"
    return UnreadableFile(message, named.remedy)


def _read(path: Path, top_level_key: str | None, limits: Limits) -> Checkpoint:
    data = map_file(path)
    head = bytes(data[:HEAD_SIZE])
    foreign = describe_foreign(head)
    kind = foreign.kind if foreign is not None else ""
    plain = kind in ("safetensors file", "JSON text", files.NPZ.kind)
    if plain and top_level_key is not None:
        raise InvalidModel("expected no top-level key for a file without nested dicts")
    if plain:
        return _read_plain(path, kind, limits)
    reader = _reader(kind, head, data)
    if reader is None:
        got = f"this: {kind}" if foreign else "something unknown"
        raise UnreadableFile(
            f"expected a file of PyTorch or safetensors, got {got}",
            foreign.remedy if foreign else "",
        )
    content = reader(data, Context(limits, nested_storage))
    return _checkpoint(path, content, top_level_key, limits)


def _read_plain(path: Path, kind: str, limits: Limits) -> Checkpoint:
    """Return the tensors of a file that contains nothing else."""
    if kind == "safetensors file":
        return _read_record(path)
    if kind == files.NPZ.kind:
        arrays, skipped = read_arrays(path, limits)
        return Checkpoint(path, "npz", arrays, skipped=skipped)
    return read_shards(path, lambda shard: read(shard, limits=limits))


def _checkpoint(
    path: Path, content: Content, top_level_key: str | None, limits: Limits
) -> Checkpoint:
    """Return the tensors in unpickled content, below a top-level key if given."""
    root, about = content.root, dict(content.about)
    if isinstance(root, dict) and isinstance(root.get(LIGHTNING), str):
        about[LIGHTNING] = root[LIGHTNING]
    if top_level_key is not None:
        root = select(root, top_level_key)
    stored = find(root, limits)
    constants = _constants(content, limits)
    return Checkpoint(
        path,
        content.format,
        stored.tensors,
        about,
        stored.scalars,
        stored.skipped,
        constants,
    )


def _constants(content: Content, limits: Limits) -> dict[str, LazyTensor]:
    if content.constants is None:
        return {}
    tensors = find(content.constants, limits).tensors
    return {f"c{name}": tensor for name, tensor in tensors.items()}


def _reader(
    kind: str, head: bytes, data: memoryview
) -> Callable[[memoryview, Context], Content] | None:
    if head[:4] == b"PK\3\4":
        return read_archive
    if "pickle" in kind or (head[:1] in _PROTOCOL_0 and bytes(data[-1:]) == b"."):
        return read_pickles
    return None


def _read_record(path: Path) -> Checkpoint:
    try:
        record = open_record(path)
    except RecordError as error:
        raise UnreadableFile(str(error).removeprefix(f"{path}: ")) from error
    tensors = {name: RecordTensor(record, name) for name in record}
    return Checkpoint(path, "safetensors", tensors, record.metadata)

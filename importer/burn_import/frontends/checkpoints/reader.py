"""Entry point for files of weights, recognized by content and not by suffix."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import burn_import.frontends.checkpoints.torch_globals  # noqa: F401  its functions may be called
from burn.record import (
    HEAD_SIZE,
    RecordError,
    describe_foreign,
    files,
    open_record,
)
from burn_import.foreign import kind_by_name
from burn_import.frontends.checkpoints.archive import Content, read_archive
from burn_import.frontends.checkpoints.checkpoint import (
    LIGHTNING,
    Checkpoint,
    LazyTensor,
    RecordTensor,
)
from burn_import.frontends.checkpoints.legacy import nested_storage, read_pickles
from burn_import.frontends.checkpoints.limits import LIMITS, Limits
from burn_import.frontends.checkpoints.numpy_archive import read_arrays
from burn_import.frontends.checkpoints.pickle_globals import Context
from burn_import.frontends.checkpoints.shards import read_shards
from burn_import.frontends.checkpoints.tensor_names import find, select
from burn_import.frontends.onnx.files import map_file
from burn_ir import InvalidModel, ModelError, UnreadableFile

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
    if kind == "safetensors file":
        return _read_record(path)
    if kind == files.NPZ.kind:
        arrays, skipped = read_arrays(path, limits)
        return Checkpoint(path, "npz", arrays, skipped=skipped)
    if kind == "JSON text":
        return read_shards(path, lambda shard: read(shard, limits=limits))
    reader = _reader(kind, head, data)
    if reader is None:
        got = f"this: {kind}" if foreign else "something unknown"
        raise UnreadableFile(
            f"expected a file of PyTorch or safetensors, got {got}",
            foreign.remedy if foreign else "",
        )
    content = reader(data, Context(limits, nested_storage))
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

"""Tar archives of PyTorch before 0.1.11: ``storages``, ``tensors`` and ``pickle``.

Some writers leave ``tensors`` out and refer to storages as later files do.
"""

from __future__ import annotations

import struct
from dataclasses import replace

from burn.record.errors import shown
from burn_import.pytorch.archive import Content, typed_storage
from burn_import.pytorch.calls import Context
from burn_import.pytorch.elements import STORAGE_MODULES, STORAGES
from burn_import.pytorch.legacy import counted_bytes
from burn_import.pytorch.machine import Machine
from burn_import.pytorch.tensors import Block, Storage, Tensor, tensor_in
from burn_import.pytorch.values import Global, Value, named
from burn_ir import InvalidModel, UnreadableFile

_BLOCK = 512
_MAGIC = slice(257, 262)
_COUNT, _RANK = struct.Struct("<q"), struct.Struct("<ii")


def is_tar(head: bytes) -> bool:
    """Whether a file that begins with ``head`` is a tar archive."""
    return head[_MAGIC] == b"ustar"


def read_tar(data: memoryview, context: Context) -> Content:
    """The content of a tar archive.

    Raises:
        UnreadableFile: it is damaged, or of no kind that PyTorch wrote.
        UnsupportedModel: it calls what is not allowed.
        InvalidModel: a tensor contradicts its storage.
    """
    members = _members(data)
    if not {"storages", "pickle"} <= members.keys():
        raise UnreadableFile("expected a tar of PyTorch with storages and pickle")
    tape = _Tape(context)
    tape.read_storages(members["storages"])
    if "tensors" in members:
        tape.read_tensors(members["tensors"])
    context = replace(context, described=tape.persistent)
    machine = Machine(members["pickle"], context, tape.persistent)
    return Content("tar", machine.run())


def _members(data: memoryview) -> dict[str, memoryview]:
    """The regular files of the archive by name."""
    members: dict[str, memoryview] = {}
    at = 0
    while at + _BLOCK <= len(data) and data[at]:
        header = bytes(data[at : at + _BLOCK])
        at += _BLOCK
        try:
            size = int(header[124:136].strip(b"\0 ") or b"0", 8)
            checksum = int(header[148:156].strip(b"\0 ") or b"0", 8)
        except ValueError:
            raise UnreadableFile("a tar archive with a damaged header") from None
        if checksum != sum(header[:148]) + sum(header[156:]) + 8 * ord(" "):
            raise UnreadableFile("a tar archive with a damaged header")
        if size < 0 or at + size > len(data):
            raise UnreadableFile("a tar archive that is cut off")
        if header[156:157] in (b"0", b"\0"):
            name = header[:100].rstrip(b"\0").decode("latin-1")
            if name in members:
                raise UnreadableFile(f"the archive has {shown(name)} twice")
            members[name] = data[at : at + size]
        at += -(-size // _BLOCK) * _BLOCK
    return members


class _Tape:
    """Storages and tensors by their keys, which the pickle refers to."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.found: dict[str, Storage | Tensor] = {}

    def read_storages(self, data: memoryview) -> None:
        count, at = self._number(data)
        for _ in range(count):
            machine = Machine(data, self.context, at=at)
            described = machine.run()
            if not isinstance(described, tuple) or len(described) != 3:
                raise InvalidModel(f"expected a storage, got {named(described)}")
            key, _, kind = described
            known = isinstance(kind, Global) and kind.module in STORAGE_MODULES
            if not known or kind.name not in STORAGES or machine.at + 8 > len(data):
                raise InvalidModel(f"expected a class of storages, got {named(kind)}")
            (size,) = _COUNT.unpack_from(data, machine.at)
            block = Block(f"storage {_shown_key(key)}")
            if size < 0:
                raise InvalidModel(f"{block.where}: expected a size, got {size}")
            storage = Storage(block, STORAGES[kind.name], size)
            at, raw = counted_bytes(data, machine.at, storage)
            block.place(raw)
            self._add(key, storage)
        if at < len(data):
            self._read_views(Machine(data, self.context, at=at).run())

    def _read_views(self, views: Value) -> None:
        """Storages that are parts of others."""
        if not isinstance(views, list):
            raise InvalidModel(f"expected views of storages, got {named(views)}")
        for view in views:
            fits = isinstance(view, tuple) and len(view) == 4
            if not fits or any(type(number) is not int for number in view[2:]):
                raise InvalidModel(f"expected a view of a storage, got {named(view)}")
            key, root, offset, count = view
            self._add(key, self._storage(root).part(offset, count))

    def read_tensors(self, data: memoryview) -> None:
        count, at = self._number(data)
        for _ in range(count):
            machine = Machine(data, self.context, at=at)
            described = machine.run()
            if not isinstance(described, tuple) or len(described) != 3:
                raise InvalidModel(f"expected a tensor, got {named(described)}")
            key, root, _ = described
            at, numbers = _numbers(data, machine.at)
            rank = len(numbers) // 2
            limits = self.context.limits
            size, stride = numbers[:rank], numbers[rank:-1]
            storage = self._storage(root)
            self._add(key, tensor_in(limits, storage, numbers[-1], size, stride))

    def persistent(self, pid: Value) -> Value:
        """What the pickle refers to: by key, or as a storage described in full."""
        if isinstance(pid, tuple) and pid[:1] == ("storage",):
            element, key, count = typed_storage(pid)
            storage = self._storage(key)
            if (storage.element, storage.count) != (element, count):
                raise InvalidModel(f"storage {shown(key)} has two sizes")
            return storage
        if isinstance(pid, tuple) and pid:
            return pid[0]  # a class, with its source beside it
        found = self.found.get(str(pid)) if isinstance(pid, str | int) else None
        if found is None:
            raise InvalidModel(f"expected the key of a tensor, got {named(pid)}")
        return found

    def _number(self, data: memoryview) -> tuple[int, int]:
        machine = Machine(data, self.context)
        count = machine.run()
        if type(count) is not int or count < 0:
            raise InvalidModel(f"expected a number of entries, got {named(count)}")
        return count, machine.at

    def _add(self, key: Value, found: Storage | Tensor) -> None:
        if not isinstance(key, str | int) or str(key) in self.found:
            raise InvalidModel(f"expected a new key, got {named(key)}")
        self.found[str(key)] = found

    def _storage(self, key: Value) -> Storage:
        found = self.found.get(str(key)) if isinstance(key, str | int) else None
        if not isinstance(found, Storage):
            raise InvalidModel(f"expected the key of a storage, got {named(key)}")
        return found


def _shown_key(key: Value) -> str:
    return shown(key) if isinstance(key, str | int) else named(key)


def _numbers(data: memoryview, at: int) -> tuple[int, list[int]]:
    """Where a tensor's numbers end, and they: sizes, strides and the offset."""
    if at + _RANK.size > len(data):
        raise UnreadableFile("a tensor that is cut off")
    rank, _ = _RANK.unpack_from(data, at)
    at += _RANK.size
    layout = struct.Struct(f"<{2 * rank + 1}q") if 0 <= rank <= 64 else None
    if layout is None or at + layout.size > len(data):
        raise UnreadableFile(f"a tensor of rank {rank} that is cut off")
    return at + layout.size, list(layout.unpack_from(data, at))

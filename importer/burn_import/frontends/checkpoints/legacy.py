"""Files of ``torch.save`` before 1.6 (consecutive pickles), and bare pickles.

The pickles are a magic number, a protocol, machine facts, the object, and the keys of
its storages. Then follows each storage: the number of elements and their bytes in
little-endian order.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from burn.record.errors import shown
from burn_import.frontends.checkpoints.element_types import (
    STORAGE_MODULES,
    STORAGES,
    Element,
)
from burn_import.frontends.checkpoints.pickle_globals import Context
from burn_import.frontends.checkpoints.pickle_values import Global, Value, named
from burn_import.frontends.checkpoints.tensors import Block, Storage
from burn_import.frontends.checkpoints.unpickler import Machine
from burn_import.frontends.checkpoints.zip_archive import Zip
from burn_ir import InvalidModel, UnreadableFile, UnsupportedModel

_TYPED = 5  # fields of a storage's persistent id


@dataclass(frozen=True)
class Content:
    """The root object of a file, TorchScript constants, and metadata."""

    format: str
    root: Value
    constants: Value = None
    about: dict[str, str] = field(default_factory=dict)


def read_archive(data: memoryview, context: Context) -> Content:
    """Return the content of a zip archive.

    Raises:
        UnreadableFile: the archive is damaged, or not of a kind that PyTorch writes.
        UnsupportedModel: it is an exported program, or calls a function that is
            refused.
        InvalidModel: a tensor contradicts its storage.
    """
    archive = Zip(data, context.limits)
    if not archive.entries:
        raise UnreadableFile("expected an archive of PyTorch, got an empty zip")
    folder = archive.folder()
    if f"{folder}/archive_format" in archive.entries:
        raise UnsupportedModel(
            "this is a PyTorch exported program (.pt2), which is no checkpoint"
        )
    if f"{folder}/data.pkl" not in archive.entries:
        raise UnreadableFile(
            f"expected an archive of PyTorch, got a zip without data.pkl in "
            f"{shown(folder)}"
        )
    about = _metadata(archive, folder)
    order = about.get("byteorder", "little")
    if order not in ("little", "big"):
        raise UnreadableFile(
            f"expected a byteorder of little or big, got {shown(order)}"
        )
    reader = _Storages(archive, f"{folder}/data/", order == "big")
    root = _unpickle(archive, f"{folder}/data.pkl", context, reader)
    if f"{folder}/constants.pkl" not in archive.entries:
        return Content("zip", root, about=about)
    reader = _Storages(archive, f"{folder}/constants/", order == "big")
    constants = _unpickle(archive, f"{folder}/constants.pkl", context, reader)
    return Content("torchscript", root, constants, about)


def _metadata(archive: Zip, folder: str) -> dict[str, str]:
    """Return the small entries that describe how the archive was written."""
    about = {}
    for name in ("version", "byteorder", ".format_version", ".data/version"):
        entry = archive.entries.get(f"{folder}/{name}")
        if entry is not None and entry.size <= 64:
            text = bytes(archive.read(entry.name)).decode("latin-1").strip()
            about[name.removeprefix(".data/")] = text
    return about


def _unpickle(archive: Zip, name: str, context: Context, reader: _Storages) -> Value:
    machine = Machine(archive.read(name), context, reader.storage)
    return machine.run()


class _Storages:
    """The storages of an archive, each an entry of raw bytes."""

    def __init__(self, archive: Zip, folder: str, is_big: bool) -> None:
        self.archive = archive
        self.folder = folder
        self.is_big = is_big
        self.blocks: dict[str, Block] = {}

    def storage(self, pid: Value) -> Storage:
        """Return the storage that a persistent id names.

        Raises:
            InvalidModel: the archive has no such entry, or one of another size.
        """
        element, key, count = typed_storage(pid)
        block = self.blocks.get(key)
        if block is None:
            block = self.blocks[key] = self._block(key, element)
        size = self.archive.entries[self.folder + key].size
        if size != count * element.size:
            raise InvalidModel(
                f"{block.where}: expected {count} elements of {element.name}, "
                f"{count * element.size} bytes, got {size}"
            )
        return Storage(block, element, count)

    def _block(self, key: str, element: Element) -> Block:
        name = self.folder + key
        if name not in self.archive.entries:
            raise InvalidModel(f"storage {shown(key)}: the archive has no such entry")
        block = Block(f"storage {shown(key)}", self.archive.stored(name))
        if self.is_big and element.size > 1:
            parts = 2 if element.name.startswith("complex") else 1
            block.swapped = element.size // parts
        return block


def typed_storage(pid: Value) -> tuple[Element, str, int]:
    """Return the element type, key and size of a storage's persistent id.

    Raises:
        UnsupportedModel: the id is not that of a storage.
        InvalidModel: a field is missing or has a wrong type.
    """
    if not isinstance(pid, tuple) or len(pid) < _TYPED or pid[0] != "storage":
        raise UnsupportedModel(f"expected the id of a storage, got {named(pid)}")
    _, kind, key, _, count = pid[:_TYPED]  # the fourth is the device
    if not isinstance(kind, Global) or kind.module not in STORAGE_MODULES:
        raise UnsupportedModel(f"expected a class of storages, got {named(kind)}")
    if kind.name not in STORAGES:
        raise UnsupportedModel(f"storages of {kind} are not known")
    if type(key) is int:
        key = str(key)
    if not isinstance(key, str) or type(count) is not int or not 0 <= count < 2**63:
        raise InvalidModel("expected the key and the size of a storage")
    return STORAGES[kind.name], key, count


MAGIC = 0x1950A86A20F9469CFC6C
PROTOCOL = 1001
_COUNT = struct.Struct("<q")


def read_pickles(data: memoryview, context: Context) -> Content:
    """Return the content of a file that begins with a pickle.

    Raises:
        UnreadableFile: the file is damaged.
        UnsupportedModel: it calls a function that is refused, or has another protocol.
        InvalidModel: a tensor contradicts its storage.
    """
    first = Machine(data, context)
    value = first.run()
    if type(value) is not int or value != MAGIC:
        return Content("pickle", value)
    root = _Legacy(data, context, first.at).read()
    return Content("legacy", root, about={"version": str(PROTOCOL)})


def nested_storage(data: memoryview, context: Context) -> Value:
    """Return the content of a pickle that is stored as bytes in another pickle."""
    return read_pickles(data, context).root


class _Legacy:
    """Reader of the pickles after the magic number, from byte ``at`` on."""

    def __init__(self, data: memoryview, context: Context, at: int) -> None:
        self.data = data
        self.context = context
        self.at = at
        self.roots: dict[str, Storage] = {}

    def read(self) -> Value:
        protocol = self._next()
        if protocol != PROTOCOL:
            got = shown(protocol) if type(protocol) is int else named(protocol)
            raise UnsupportedModel(f"expected protocol {PROTOCOL}, got {got}")
        self._next()  # the byte order of the numbers outside of the pickles
        root = self._next()
        keys = self._next()
        if not isinstance(keys, list):
            raise InvalidModel(f"expected the keys of storages, got {named(keys)}")
        for key in keys:
            self._place(str(key) if type(key) is int else key)
        for key, storage in self.roots.items():
            if not storage.block.placed:
                raise InvalidModel(
                    f"storage {shown(key)}: its bytes are not in the file"
                )
        return root

    def _next(self) -> Value:
        machine = Machine(self.data, self.context, self._persistent, self.at)
        value = machine.run()
        self.at = machine.at
        return value

    def _persistent(self, pid: Value) -> Value:
        """Return a storage, a view of one, or a class saved with its source."""
        if isinstance(pid, tuple) and len(pid) == 4 and pid[0] == "module":
            return pid[1]
        element, key, count = typed_storage(pid)
        root = self.roots.get(key)
        if root is None:
            block = Block(f"storage {shown(key)}")
            root = self.roots[key] = Storage(block, element, count)
        elif (root.element, root.count) != (element, count):
            raise InvalidModel(f"storage {shown(key)} has two sizes")
        view = pid[5] if len(pid) > 5 else None
        if view is None:
            return root
        numbers = view[1:] if isinstance(view, tuple) else ()
        if len(numbers) != 2 or any(type(number) is not int for number in numbers):
            raise InvalidModel(f"storage {shown(key)}: expected the place of a view")
        return root.part(*numbers)

    def _place(self, key: Value) -> None:
        """Assign the next bytes of the file to the storage of this key."""
        storage = self.roots.get(key) if isinstance(key, str) else None
        if storage is None or storage.block.placed:
            raise InvalidModel(f"expected the key of a storage, got {named(key)}")
        self.at, raw = counted_bytes(self.data, self.at, storage)
        storage.block.attach(raw)


def counted_bytes(
    data: memoryview, at: int, storage: Storage
) -> tuple[int, memoryview]:
    """Return the end of a storage whose size is at ``at``, and its bytes.

    Raises:
        InvalidModel: the size differs from that in the pickle.
        UnreadableFile: the file is truncated.
    """
    begin = at + _COUNT.size
    if begin > len(data):
        raise UnreadableFile(f"{storage.block.where} is cut off")
    (count,) = _COUNT.unpack_from(data, at)
    if count != storage.count:
        raise InvalidModel(
            f"{storage.block.where}: expected {storage.count} elements, got {count}"
        )
    end = begin + count * storage.element.size
    if end > len(data):
        raise UnreadableFile(f"{storage.block.where} is cut off")
    return end, data[begin:end]

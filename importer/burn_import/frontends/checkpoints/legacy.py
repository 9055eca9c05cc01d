"""Files of ``torch.save`` before 1.6 (consecutive pickles), and bare pickles.

The pickles are a magic number, a protocol, machine facts, the object, and the keys of
its storages. Then follows each storage: the number of elements and their bytes in
little-endian order.
"""

from __future__ import annotations

import struct

from burn.record.errors import shown
from burn_import.frontends.checkpoints.archive import Content, typed_storage
from burn_import.frontends.checkpoints.pickle_globals import Context
from burn_import.frontends.checkpoints.pickle_values import Value, named
from burn_import.frontends.checkpoints.tensors import Block, Storage
from burn_import.frontends.checkpoints.unpickler import Machine
from burn_ir import InvalidModel, UnreadableFile, UnsupportedModel

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

"""Files as PyTorch writes them, made without PyTorch, and files that it never would.

A value to pickle is data of Python and the four kinds of nodes below; what the pickle
says is written instruction by instruction, so that it can say anything.
"""

import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
#: The classes of storages, by the names of the dtypes of NumPy and ml_dtypes.
KINDS = {
    "float64": "Double",
    "float32": "Float",
    "float16": "Half",
    "bfloat16": "BFloat16",
    "int64": "Long",
    "int32": "Int",
    "int16": "Short",
    "int8": "Char",
    "uint8": "Byte",
    "bool": "Bool",
    "complex128": "ComplexDouble",
    "complex64": "ComplexFloat",
}
MAGIC = 0x1950A86A20F9469CFC6C


@dataclass(frozen=True)
class Name:
    """What is called ``name`` in a module."""

    module: str
    name: str


@dataclass(frozen=True, eq=False)
class Reduce:
    """What a call gives; ``state`` is then set on it."""

    function: Any
    args: Any = ()
    state: Any = None


@dataclass(frozen=True, eq=False)
class New:
    """An object of a class, of which ``__new__`` alone is called."""

    kind: Any
    args: Any = ()
    state: Any = None
    items: Any = None


@dataclass(frozen=True, eq=False)
class Stored:
    """A storage: ``data`` in little-endian, ``count`` elements of a ``kind``."""

    key: str
    kind: str
    data: bytes
    count: int
    device: str = "cpu"
    #: Where it is a part of another: the other, and the offset in it.
    root: Any = None
    offset: int = 0


@dataclass(frozen=True)
class Raw:
    """Instructions as they are."""

    code: bytes


@dataclass(frozen=True)
class Encoded:
    """Bytes, in the form that the protocol has for them."""

    data: bytes


ORDERED = Reduce(Name("collections", "OrderedDict"))
REBUILD = Name("torch._utils", "_rebuild_tensor_v2")


def storage(key: str, array: Array, device: str = "cpu") -> Stored:
    """Return the storage of an array."""
    name = array.dtype.name
    kind = f"{KINDS[name]}Storage" if name in KINDS else "UntypedStorage"
    count = array.size if name in KINDS else array.nbytes
    return Stored(key, kind, array.tobytes(), count, device)


def strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a shape in C order, in elements."""
    steps = [1]
    for dim in reversed(shape[1:]):
        steps.append(steps[-1] * dim)
    return tuple(reversed(steps[: len(shape)]))


def view(
    stored: Any, shape: Any, steps: Any = None, offset: Any = 0, *more: Any
) -> Reduce:
    """Return the call that rebuilds a tensor on a storage."""
    steps = strides(shape) if steps is None else steps
    args = (stored, offset, tuple(shape), tuple(steps), False, ORDERED, *more)
    return Reduce(REBUILD, args)


def tensor(key: str, array: Array) -> Reduce:
    """Return the call that rebuilds an array, on a storage of its own."""
    stored = storage(key, array)
    if array.dtype.name in KINDS:
        return view(stored, array.shape)
    args = (stored, 0, array.shape, strides(array.shape), False, ORDERED)
    dtype = Name("torch", array.dtype.name)
    return Reduce(Name("torch._utils", "_rebuild_tensor_v3"), (*args, dtype))


class PickleWriter:
    """The bytes of a pickle, and the storages it names."""

    def __init__(self, protocol: int = 2, style: str = "zip") -> None:
        self.protocol = protocol
        self.style = style
        self.stored: dict[str, Stored] = {}

    def dumps(self, value: Any) -> bytes:
        """Return the pickle of a value."""
        head = b"\x80" + bytes([self.protocol]) if self.protocol >= 2 else b""
        return head + self.code(value) + b"."

    def code(self, value: Any) -> bytes:
        """Return the instructions that push a value."""
        if isinstance(value, Name | Reduce | New | Stored | Raw):
            return self.node(value)
        if isinstance(value, dict):
            pairs = [self.code(k) + self.code(v) for k, v in value.items()]
            if self.protocol == 0:
                return b"(d" + b"".join(pair + b"s" for pair in pairs)
            return b"}(" + b"".join(pairs) + b"u"
        if isinstance(value, list):
            if self.protocol == 0:
                return b"(l" + b"".join(self.code(item) + b"a" for item in value)
            return b"](" + b"".join(map(self.code, value)) + b"e"
        if isinstance(value, tuple):
            return b"(" + b"".join(map(self.code, value)) + b"t"
        return self.scalar(value)

    def scalar(self, value: Any) -> bytes:
        """Return the instructions for a number, text or bytes."""
        if value is None:
            return b"N"
        if isinstance(value, bool):
            if self.protocol < 2:
                return b"I01\n" if value else b"I00\n"
            return b"\x88" if value else b"\x89"
        if isinstance(value, int):
            return self.integer(value)
        if isinstance(value, float):
            if self.protocol == 0:
                return f"F{value!r}\n".encode()
            return b"G" + struct.pack(">d", value)
        if isinstance(value, Encoded):
            return self.encoded(value.data)
        if isinstance(value, bytes):
            return b"B" + struct.pack("<I", len(value)) + value
        return self.text(value)

    def encoded(self, data: bytes) -> bytes:
        """Return the instructions for bytes, which older protocols lack."""
        if self.protocol >= 3:
            return b"B" + struct.pack("<I", len(data)) + data
        text = data.decode("latin-1")
        return self.code(Reduce(Name("_codecs", "encode"), (text, "latin1")))

    def text(self, value: str) -> bytes:
        """Return the instruction for text."""
        text = value.encode("utf-8", "surrogatepass")
        if self.protocol == 0:
            for char in "\\\0\n\r\x1a":
                value = value.replace(char, f"\\u{ord(char):04x}")
            return b"V" + value.encode("raw-unicode-escape") + b"\n"
        if self.protocol >= 4 and len(text) < 256:
            return b"\x8c" + bytes([len(text)]) + text
        return b"X" + struct.pack("<I", len(text)) + text

    def integer(self, value: int) -> bytes:
        """Return the instruction for an integer, the shortest of its protocol."""
        if self.protocol == 0:
            return f"L{value}L\n".encode()
        if 0 <= value < 256:
            return b"K" + bytes([value])
        if 0 <= value < 65536:
            return b"M" + struct.pack("<H", value)
        if -(2**31) <= value < 2**31:
            return b"J" + struct.pack("<i", value)
        size = value.bit_length() // 8 + 1
        return b"\x8a" + bytes([size]) + value.to_bytes(size, "little", signed=True)

    def node(self, value: Any) -> bytes:
        """Return the instructions for one of our kinds of nodes."""
        if isinstance(value, Raw):
            return value.code
        if isinstance(value, Name):
            if self.protocol >= 4:
                return self.code(value.module) + self.code(value.name) + b"\x93"
            return f"c{value.module}\n{value.name}\n".encode()
        if isinstance(value, Stored):
            return self.code(self.pid(value)) + b"Q"
        if isinstance(value, Reduce):
            code = self.code(value.function) + self.code(value.args) + b"R"
        else:
            code = self.code(value.kind) + self.code(value.args) + b"\x81"
            if value.items is not None:
                pairs = value.items.items()
                code += b"(" + b"".join(map(self.code, sum(pairs, ()))) + b"u"
        return code if value.state is None else code + self.code(value.state) + b"b"

    def pid(self, stored: Stored) -> Any:
        """Return the persistent id of a storage, in the form of its container."""
        root = stored.root or stored
        self.stored[root.key] = root
        kind = Name("torch", root.kind)
        pid = ("storage", kind, root.key, root.device, root.count)
        if self.style != "legacy":
            return pid
        is_part = stored.root is not None
        return (*pid, (stored.key, stored.offset, stored.count) if is_part else None)


@dataclass(frozen=True)
class Entry:
    """One entry of a zip. What stands before its bytes can be made to say other things
    than the list (``local``, ``local_name``)."""

    name: str
    data: bytes
    method: int = 0
    flags: int = 0
    crc: int | None = None
    size: int | None = None
    local: Mapping[str, int] = field(default_factory=dict)
    local_name: str | None = None
    #: Where the list says the entry is, if not where it is.
    at: int | None = None


def zipped(entries: Sequence[Entry], **end: int) -> bytes:
    """Return the archive of the entries; ``end`` changes fields of its last part."""
    body, listed = b"", b""
    for entry in entries:
        at = len(body) if entry.at is None else entry.at
        packed = entry.data
        if entry.method == 8:
            packer = zlib.compressobj(9, zlib.DEFLATED, -15)
            packed = packer.compress(entry.data) + packer.flush()
        crc = zlib.crc32(entry.data) if entry.crc is None else entry.crc
        size = len(entry.data) if entry.size is None else entry.size
        stored = size if entry.method == 0 else len(packed)
        fields = {"flags": entry.flags, "method": entry.method, "crc": crc}
        fields |= {"packed": stored, "size": size}
        said = fields | dict(entry.local)
        name = entry.name.encode()
        local = name if entry.local_name is None else entry.local_name.encode()
        head = struct.pack("<4s5H3I", b"PK\3\4", 20, *_words(said))
        pad = -(len(body) + len(head) + 4 + len(local) + 4) % 64
        extra = struct.pack("<2H", 0x4246, pad) + b"Z" * pad
        sizes = struct.pack("<2H", len(local), len(extra))
        body += head + sizes + local + extra + packed
        listed += struct.pack("<4s6H3I", b"PK\1\2", 20, 20, *_words(fields))
        listed += struct.pack("<5H2I", len(name), 0, 0, 0, 0, 0, at) + name
    count = end.get("count", len(entries))
    size, begin = end.get("size", len(listed)), end.get("begin", len(body))
    disk = end.get("disk", 0)
    tail = struct.pack("<4s4H2IH", b"PK\5\6", disk, disk, count, count, size, begin, 0)
    return body + listed + tail


def _words(fields: Mapping[str, int]) -> list[int]:
    times = [fields["flags"], fields["method"], 0, 0]
    return [*times, fields["crc"], fields["packed"], fields["size"]]


def entries_of(root: Any, protocol: int = 2, folder: str = "net") -> list[Entry]:
    """Return the entries that ``torch.save`` writes."""
    writer = PickleWriter(protocol)
    results = [Entry(f"{folder}/data.pkl", writer.dumps(root))]
    results.append(Entry(f"{folder}/byteorder", b"little"))
    for key, stored in writer.stored.items():
        results.append(Entry(f"{folder}/data/{key}", stored.data))
    return [*results, Entry(f"{folder}/version", b"3\n")]


def zip_file(root: Any, protocol: int = 2) -> bytes:
    """Return what ``torch.save`` writes."""
    return zipped(entries_of(root, protocol))


def following_file(root: Any, protocol: int = 2) -> bytes:
    """Return the same with sizes and checksums after each entry, as since 2.7."""
    moved = []
    unknown = {"crc": 0, "packed": 0, "size": 0}
    for entry in entries_of(root, protocol):
        moved.append(replace(entry, flags=0x0808, local=unknown))
    return zipped(moved)


def script_file(root: Any, constants: Any = (), protocol: int = 2) -> bytes:
    """Return what ``torch.jit.save`` writes, without a program."""
    writer = PickleWriter(protocol)
    result = entries_of(root, protocol)
    pickled = writer.dumps(constants)
    for key, stored in writer.stored.items():
        result.append(Entry(f"net/constants/{key}", stored.data))
    code = Entry("net/code/__torch__.py", b"class Net(Module):\n  pass\n" * 9, 8)
    return zipped([*result, Entry("net/constants.pkl", pickled), code])


def legacy_file(root: Any, protocol: int = 2) -> bytes:
    """Return what ``torch.save`` wrote before 1.6."""
    writer = PickleWriter(protocol, "legacy")
    facts = {"protocol_version": 1001, "little_endian": True, "type_sizes": {"int": 4}}
    parts = [writer.dumps(value) for value in (MAGIC, 1001, facts, root)]
    parts.append(writer.dumps(list(writer.stored)))
    for stored in writer.stored.values():
        parts.append(struct.pack("<q", stored.count) + stored.data)
    return b"".join(parts)


def bare_file(root: Any, protocol: int = 2) -> bytes:
    """Return a pickle alone, whose storages are files in bytes within it."""
    return Embedding(protocol).dumps(root)


class Embedding(PickleWriter):
    """Writes each storage as a call that loads it from bytes."""

    def node(self, value: Any) -> bytes:
        if not isinstance(value, Stored):
            return super().node(value)
        load = Name("torch.storage", "_load_from_bytes")
        return self.code(Reduce(load, (Encoded(legacy_file(value)),)))


def raw(code: str | bytes) -> Raw:
    """Return instructions as they are."""
    return Raw(code.encode("latin-1") if isinstance(code, str) else code)


CONTAINERS: dict[str, Callable[..., bytes]] = {
    "zip": zip_file,
    "following": following_file,
    "torchscript": script_file,
    "legacy": legacy_file,
    "pickle": bare_file,
}

"""Records as trees of named fields: Burn's named MessagePack and JSON.

A module is a map of its fields and a list of modules an array, so the path to a tensor
is its key. Fields that are not tensors are constants of a Rust program.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias, Union

import numpy as np

from burn.record import burn_formats, messagepack
from burn.record.burn_formats import id_text
from burn.record.cursor import MOST_NESTED, Blob, Cursor, Value
from burn.record.dtypes import Bytes
from burn.record.errors import RecordError, joined, shown
from burn.record.header import Entry, Header
from burn.record.precision import Precision
from burn.record.tensor_chunks import BytesLike, Piece

_TENSOR, _PARAM = {"bytes", "shape", "dtype"}, {"id", "param"}
_PHANTOM = "_b"
#: Objects take up to nine times the room of their text.
MOST_JSON = 24 * 2**20
#: And containers twenty times.
MOST_CONTAINERS = 500_000

Tree: TypeAlias = dict[str, Union["Tree", Piece]]


def parse_messagepack(data: Bytes) -> tuple[Header, Bytes]:
    """Return the header of a named MessagePack record, and the bytes of its entries.

    Raises:
        RecordError: the record is damaged, or not Burn's.
    """
    cursor = Cursor(data.data, "MessagePack")
    root = messagepack.decode(cursor)
    if cursor.at != len(data):
        raise cursor.problem(f"{len(data) - cursor.at} trailing bytes")
    return _header(root), data


def parse_json(data: Bytes) -> tuple[Header, Bytes]:
    """Return the same for a JSON record, whose bytes are lists of numbers."""
    text = _checked_text(data)
    parts: list[bytes] = []
    offset = [0]

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(items)
        if len(result) != len(items):
            raise RecordError(
                f"a key is there twice: {shown([key for key, _ in items])}"
            )
        if result.keys() == _TENSOR:
            result["bytes"] = _gathered(result["bytes"], parts, offset)
        return result

    try:
        root = json.loads(text, object_pairs_hook=pairs)
    except RecordError:
        raise
    except (ValueError, RecursionError) as error:
        raise RecordError(f"not JSON: {shown(str(error))}") from None
    return _header(root), np.frombuffer(b"".join(parts), np.uint8)


def _checked_text(data: Bytes) -> bytes:
    if len(data) > MOST_JSON:
        raise RecordError(_small(len(data)))
    text = data.tobytes()
    if sum(text.count(char) for char in (b"[", b"{")) > MOST_CONTAINERS:
        raise RecordError(f"more than {MOST_CONTAINERS} lists and objects")
    return text


def _small(size: int) -> str:
    return (
        f"{size} bytes of JSON, which is for small records: expected at most "
        f"{MOST_JSON}; choose another format"
    )


def _gathered(values: Any, parts: list[bytes], offset: list[int]) -> Blob:
    try:
        part = bytes(values) if isinstance(values, list) else None
    except (TypeError, ValueError):
        part = None
    if part is None:
        raise RecordError(f"expected bytes as a list of 0 to 255, got {shown(values)}")
    # Aligned for every dtype.
    parts.append(part + bytes(-len(part) % 16))
    start = offset[0]
    offset[0] += len(parts[-1])
    return Blob(start, start + len(part))


def _header(root: Value) -> Header:
    if not isinstance(root, dict) or "item" not in root:
        raise RecordError("expected a record of Burn: a map with metadata and item")
    about = root.get("metadata")
    about = about if isinstance(about, dict) else {}
    entries: dict[str, Entry] = {}
    problems: list[str] = []
    for name, value in _tensors(root["item"]):
        try:
            if name in entries:
                raise RecordError("its key is that of another tensor")
            entries[name] = _entry(value)
        except RecordError as problem:
            problems.append(f"tensor {shown(name)}: {problem}")
    if problems:
        raise RecordError(joined(problems))
    metadata = {key: text for key, text in about.items() if isinstance(text, str)}
    return Header(entries, metadata)


def _entry(value: dict[str, Value]) -> Entry:
    if value.keys() == {"value", "shape"}:
        raise RecordError(
            "a layout from before Burn 0.14; load it there (0.14 to 0.16 with "
            "record-backward-compat) and save it again"
        )
    return burn_formats.entry(value["dtype"], value["shape"], value["bytes"])


def _tensors(item: Value) -> Iterator[tuple[str, dict[str, Value]]]:
    """Yield the tensors below a value, by path, in order."""
    stack: list[tuple[tuple[str, ...], Value]] = [((), item)]
    while stack:
        path, value = stack.pop()
        if len(path) > MOST_NESTED:
            raise RecordError(f"nested deeper than {MOST_NESTED}")
        if isinstance(value, list):
            numbered = [((*path, str(n)), item) for n, item in enumerate(value)]
            stack += reversed(numbered)
        elif not isinstance(value, dict):
            continue
        elif value.keys() == _PARAM:
            stack.append((path, value["param"]))
        elif value.keys() in (_TENSOR, {"value", "shape"}):
            yield ".".join(path), value
        else:
            stack += reversed([((*path, key), item) for key, item in value.items()])


def tree_of(pieces: Mapping[str, Piece]) -> Tree:
    """Return the pieces as a tree, by the components of their keys.

    Raises:
        RecordError: a key is a prefix of another one, or has too many components.
    """
    root: Tree = {}
    for name, piece in pieces.items():
        *path, last = name.split(".")
        if len(path) > MOST_NESTED // 2:
            raise RecordError(f"tensor {shown(name)}: nested too deeply")
        node = root
        for part in path:
            child = node.setdefault(part, {})
            if isinstance(child, Piece):
                raise RecordError(f"tensor {shown(name)}: below {shown(child.name)}")
            node = child
        if last in node:
            raise RecordError(f"tensor {shown(name)}: others are below it")
        node[last] = piece
    return root


def is_list(tree: Tree) -> bool:
    """Return whether the keys are 0, 1, 2 and so on."""
    return bool(tree) and list(tree) == [str(n) for n in range(len(tree))]


def encode_messagepack(
    pieces: Mapping[str, Piece],
    metadata: Mapping[str, str],
    precision: Precision | None,
) -> Iterator[BytesLike]:
    """Yield the bytes of a named MessagePack record.

    Raises:
        RecordError: Burn does not have a dtype, or a tensor or key is too large.
    """
    for name, piece in pieces.items():
        burn_formats.dtype_of(piece.tag, name)
        if not messagepack.fits_blob(piece.length):
            raise RecordError(f"tensor {shown(name)}: 4 GiB or more in one tensor")
    about = burn_formats.metadata_of("NamedMpk", metadata, precision)
    return _packed_record(about, tree_of(pieces))


def _packed_record(about: Mapping[str, str], tree: Tree) -> Iterator[BytesLike]:
    yield messagepack.map_head(3) + messagepack.text("metadata")
    yield messagepack.map_head(len(about))
    for key, text in about.items():
        yield messagepack.text(key) + messagepack.text(text)
    yield messagepack.text("item")
    yield from _packed(tree)
    yield messagepack.text(_PHANTOM) + bytes([messagepack.NIL])


def _packed(node: Tree | Piece) -> Iterator[BytesLike]:
    if isinstance(node, Piece):
        yield from _packed_tensor(node)
    elif is_list(node):
        yield messagepack.list_head(len(node))
        for child in node.values():
            yield from _packed(child)
    else:
        yield messagepack.map_head(len(node))
        for key, child in node.items():
            yield messagepack.text(key)
            yield from _packed(child)


def _packed_tensor(piece: Piece) -> Iterator[BytesLike]:
    text, map_head = messagepack.text, messagepack.map_head
    yield map_head(2) + text("id") + text(id_text(piece.name)) + text("param")
    yield map_head(3) + text("bytes") + messagepack.blob_head(piece.length)
    yield from piece.chunks()
    dims = b"".join(map(messagepack.number, piece.shape))
    yield text("shape") + messagepack.list_head(len(piece.shape)) + dims
    dtype = burn_formats.dtype_of(piece.tag, piece.name)
    if isinstance(dtype, str):
        yield text("dtype") + text(dtype)
    else:
        ((name, detail),) = dtype.items()
        yield text("dtype") + map_head(1) + text(name) + text(detail)


def encode_json(
    pieces: Mapping[str, Piece],
    metadata: Mapping[str, str],
    precision: Precision | None,
) -> Iterator[BytesLike]:
    """Yield the bytes of a JSON record, with a field or the bytes of a tensor per line.

    Raises:
        RecordError: Burn does not have a dtype, or a key is a prefix of another one.
    """
    for name, piece in pieces.items():
        burn_formats.dtype_of(piece.tag, name)
    size = 4 * sum(piece.length for piece in pieces.values())
    if size > MOST_JSON:
        raise RecordError(_small(size))
    about = burn_formats.metadata_of("PrettyJson", metadata, precision)
    return _printed_record(about, tree_of(pieces))


def _printed_record(about: Mapping[str, str], tree: Tree) -> Iterator[bytes]:
    head = json.dumps(about, indent=2).replace("\n", "\n  ")
    yield f'{{\n  "metadata": {head},\n  "item": '.encode()
    yield from _printed(tree, "\n  ")
    yield f',\n  "{_PHANTOM}": null\n}}\n'.encode()


def _printed(node: Tree | Piece, line: str) -> Iterator[bytes]:
    """Yield the JSON of a node; ``line`` is a line break with its indentation."""
    if isinstance(node, Piece):
        yield from _printed_tensor(node, line)
        return
    opening, closing = ("[", "]") if is_list(node) else ("{", "}")
    yield opening.encode()
    for index, (key, child) in enumerate(node.items()):
        name = "" if opening == "[" else f"{json.dumps(key)}: "
        yield f"{',' * (index > 0)}{line}  {name}".encode()
        yield from _printed(child, f"{line}  ")
    yield f"{line * bool(node)}{closing}".encode()


def _printed_tensor(piece: Piece, line: str) -> Iterator[bytes]:
    inner = f"{line}    "
    head = f'{{{line}  "id": {json.dumps(id_text(piece.name))},{line}  "param": '
    yield f'{head}{{{inner}"bytes": ['.encode()
    comma = ""
    for chunk in piece.chunks():
        if len(chunk):
            yield (comma + ",".join(map(str, bytes(chunk)))).encode()
            comma = ","
    dtype = json.dumps(burn_formats.dtype_of(piece.tag, piece.name))
    shape = json.dumps(list(piece.shape))
    yield f'],{inner}"shape": {shape},{inner}"dtype": {dtype}'.encode()
    yield f"{line}  }}{line}}}".encode()

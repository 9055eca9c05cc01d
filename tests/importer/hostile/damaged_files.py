"""Strategies for files that are damaged or inconsistent.

Every choice is drawn by Hypothesis, so that a failing file shrinks to the few edits
that matter.
"""

import json
import re
import struct
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

import burn_import.frontends.checkpoints.torch_globals  # noqa: F401  for its functions
from burn.record import FORMATS, record_bytes
from burn_import.frontends.checkpoints.pickle_globals import FUNCTIONS
from tests.importer.branched_files import rich_program
from tests.importer.exported_files import TABLE, archive, table
from tests.importer.pytorch_files import (
    CONTAINERS,
    ORDERED,
    REBUILD,
    Entry,
    Name,
    New,
    PickleWriter,
    Raw,
    Reduce,
    bare_file,
    entries_of,
    legacy_file,
    storage,
    tensor,
    zip_file,
    zipped,
)
from tests.importer.script_files import CHANGING, net

RANDOM = np.random.default_rng(11)
W = RANDOM.normal(size=(2, 3, 5)).astype(np.float32)
V = RANDOM.integers(-9, 9, size=(4, 1, 3)).astype(np.int64)
ROOT = {"w": tensor("0", W), "n": [1, 2.5, None, True, "t", b"b"], "v": tensor("1", V)}
WHOLE = [
    write(ROOT, protocol) for write in CONTAINERS.values() for protocol in (0, 2, 4)
]
ENTRIES = entries_of(ROOT)
SIZES = st.sampled_from([0, 1, 2, 4, 8, 30])
NUMBERS = st.sampled_from([0, 1, 2, 3, -1, 2**31, 2**32 - 1, 2**62, 2**63, 10**40])
Writing = Callable[[Any, int], bytes]
WORDS = st.sampled_from(
    ["w", "", "x", "float32", "F32", "\ud800", "\0", "a.b", "../x", "cpu", "<f4"]
)


def pieces(source: bytes) -> st.SearchStrategy[bytes]:
    """Return bytes to insert into a file: random, numbers, or copies from the file."""
    ends = st.tuples(st.integers(0, len(source)), SIZES)
    return st.one_of(
        st.binary(max_size=8),
        NUMBERS.map(lambda number: struct.pack("<Q", number & (2**64 - 1))),
        NUMBERS.map(lambda number: struct.pack("<I", number & (2**32 - 1))),
        ends.map(lambda end: source[end[0] : end[0] + end[1]]),
    )


@st.composite
def edited(draw: st.DrawFn, data: bytes, most: int = 6) -> bytes:
    """Return bytes with changes, deletions, insertions and repetitions."""
    for _ in range(draw(st.integers(1, most))):
        at, cut = draw(st.integers(0, len(data))), draw(SIZES)
        data = data[:at] + draw(pieces(data)) + data[at + cut :]
    return data


LEAVES = st.one_of(
    NUMBERS,
    WORDS,
    st.sampled_from([2.5, float("nan"), None, True, b"x" * 9, W.tobytes()]),
    st.sampled_from([tensor("0", W), storage("0", W), storage("1", V), ORDERED]),
    st.sampled_from([Name("torch", "FloatStorage"), Name("os", "system")]),
    st.sampled_from([Name("torch", "int64"), Name("numpy", "ndarray"), REBUILD]),
)
#: Every function that a pickle may call, and classes of its objects.
CALLED = st.sampled_from([Name(*path.rsplit(".", 1)) for path in sorted(FUNCTIONS)])
CLASSES = st.sampled_from([Name("collections", "OrderedDict"), Name("mine", "Net")])


def _holding(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    tuples = st.lists(values, max_size=8).map(tuple)
    return st.one_of(
        tuples,
        st.lists(values, max_size=3),
        st.dictionaries(WORDS, values, max_size=3),
        st.builds(Reduce, CALLED, tuples, st.none() | values),
        st.builds(New, CLASSES, tuples, st.none() | values),
    )


#: Parts of a pickle, including calls with wrong arguments.
VALUES = st.recursive(LEAVES, _holding, max_leaves=12)
SCRAPS = [bytes([code]) for code in range(256)] + [
    PickleWriter().code(value)
    for value in (0, 3, -1, 2**63, "w", 2.5, b"x", [1], (2, 3), REBUILD, ORDERED)
]


@st.composite
def pickles(draw: st.DrawFn) -> bytes:
    """Return a file whose pickle is composed of fragments, calls or edits."""
    protocol = draw(st.sampled_from([0, 2, 4]))
    write: Writing = draw(st.sampled_from([zip_file, legacy_file, bare_file]))
    kind = draw(st.sampled_from(["calls", "scraps", "edits"]))
    if kind == "calls":
        return write([tensor("0", W), draw(VALUES)], protocol)
    code = PickleWriter(protocol).code(ROOT)
    if kind == "edits":
        return write([Raw(draw(edited(code)))], protocol)
    scraps = draw(st.lists(st.sampled_from(SCRAPS), min_size=1, max_size=40))
    at = draw(st.integers(0, len(code)))
    return write([Raw(code[:at] + b"".join(scraps) + code[at:])], protocol)


@st.composite
def archives(draw: st.DrawFn) -> bytes:
    """Return a container with edits anywhere, in its directory, or in its entries."""
    if draw(st.booleans()):
        return zipped(draw(st.lists(entries(), min_size=1, max_size=6)))
    data = draw(st.sampled_from(WHOLE))
    at = data.rfind(b"PK\1\2", 0, draw(st.integers(0, len(data))))
    if at >= 0 and draw(st.booleans()):
        return data[:at] + draw(edited(data[at : at + 60], 3)) + data[at + 60 :]
    return draw(edited(data))


@st.composite
def entries(draw: st.DrawFn) -> Entry:
    """Return an entry of an archive with some wrong fields."""
    entry = draw(st.sampled_from(ENTRIES))
    small = NUMBERS.map(lambda number: number % 2**32)
    fields = {
        "name": WORDS.map(lambda word: f"net/{word.encode('ascii', 'ignore')!r}"),
        "data": edited(entry.data),
        "method": st.sampled_from([0, 8, 12]),
        "flags": st.sampled_from([0, 1, 8, 0x0800, 0x0808]),
        "crc": small,
        "size": small,
        "local": st.dictionaries(st.sampled_from(["crc", "packed", "size"]), small),
        "at": st.sampled_from([0, 64, 2**31]),
    }
    for name in draw(st.lists(st.sampled_from(sorted(fields)), max_size=2)):
        changes: dict[str, Any] = {name: draw(fields[name])}
        entry = replace(entry, **changes)
    return entry


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, WORDS, st.just(1.5)),
    lambda of: (
        st.lists(of, max_size=3)
        | st.dictionaries(
            st.sampled_from(["dtype", "shape", "data_offsets", "as_int", "name"]), of
        )
    ),
    max_leaves=6,
)


def places(of: Any) -> list[tuple[Any, Any]]:
    """Return every location in JSON as its container and key."""
    results: list[tuple[Any, Any]] = []
    pairs = list(of.items()) if isinstance(of, dict) else list(enumerate(of))
    for key, value in pairs:
        results.append((of, key))
        if isinstance(value, dict | list):
            results += places(value)
    return results


@st.composite
def changed(draw: st.DrawFn, text: str, most: int = 3) -> Any:
    """Return JSON with values replaced, deleted, renamed, or moved."""
    tree = json.loads(text)
    for _ in range(draw(st.integers(1, most))):
        result = places(tree)
        if not result:
            break
        holder, key = draw(st.sampled_from(result))
        what = draw(st.sampled_from(["value", "other", "gone", "key"]))
        if what == "value":
            holder[key] = draw(JSON)
        elif what == "other":  # copied, since a cyclic value is no JSON
            other, index = draw(st.sampled_from(result))
            holder[key] = json.loads(json.dumps(other[index]))
        elif what == "gone":
            del holder[key]
        elif isinstance(holder, dict):
            name = draw(st.sampled_from(["x", "as_int", "as_tensor", ""]))
            holder[name] = holder.pop(key)
        else:
            holder.append(holder.pop(key))
    return tree


RECORDS = {
    kind: record_bytes(kind, [("a.0", W), ("a.1", V), ("b", W > 0)], {"by": "me"})
    for kind in FORMATS
}


@st.composite
def headers(draw: st.DrawFn) -> bytes:
    """Return a safetensors file whose header or bytes are wrong."""
    whole = RECORDS["safetensors"]
    size = int.from_bytes(whole[:8], "little")
    text, data = whole[8 : 8 + size], whole[8 + size :]
    if draw(st.booleans()):
        text = json.dumps(draw(changed(text.decode()))).encode()
    else:
        text = draw(edited(text))
    length = draw(st.sampled_from([len(text)] * 4 + [0, 7, 2**40, 2**63]))
    kept = draw(st.sampled_from([len(data), len(data), 5]))
    return length.to_bytes(8, "little") + text + data[:kept]


@st.composite
def records(draw: st.DrawFn) -> bytes:
    """Return a record of Burn's with edits, or compressed ones."""
    kind = draw(st.sampled_from(FORMATS))
    if not kind.endswith(".gz"):
        return draw(edited(RECORDS[kind]))
    plain = draw(edited(RECORDS[kind.removesuffix(".gz")]))
    packer = zlib.compressobj(wbits=31)
    data = packer.compress(plain) + packer.flush()
    return draw(st.just(data) | edited(data))


RICH, WEIGHTS = rich_program()
PROGRAM, LISTED = json.dumps(RICH), json.dumps(table(WEIGHTS))


@st.composite
def programs(draw: st.DrawFn) -> bytes:
    """Return an exported program whose JSON, or table of weights, is wrong."""
    if draw(st.integers(0, 5)):
        return archive(draw(changed(PROGRAM)), WEIGHTS)
    listed = json.dumps(draw(changed(LISTED))).encode()
    return archive(RICH, WEIGHTS, **{TABLE: listed})


CODE = re.findall(r'\w+(?:\.\w+)*|"[^"]*"|\s+|[^\w\s]', CHANGING)
OTHERS = (
    *("", "x", "y", "None", "True", "-1", "0", "1", "3", "2.5", "9223372036854775807"),
    *("[]", "[1, 2]", "[x]", '"a"', "self", "torch", "torch.size(x)", "{}", "inf"),
    *("uninitialized(Tensor)", "CONSTANTS.c0", "(x, y)", 'torch.device("cpu")'),
    *("bool(x)", "int(x)", "self.training", "ops.prim.dtype(x)", "range(2)", "x.y"),
    *("torch.topk(x, 1)", "torch.chunk(x, 2)", "torch.max(x, 1)", "torch.unbind(x)"),
    *("torch.where(x)", "torch.arange(x)", "torch.lstm(x, x)", "torch.item(x)"),
    *("torch.full([100000000], 1)", "torch.append(outs, x)", "return x", "raise x"),
)


@st.composite
def scripts(draw: st.DrawFn, inputs: Sequence[Any] = ()) -> bytes:
    """Return a TorchScript archive with replaced tokens in its code."""
    words: Sequence[str] = CODE
    for _ in range(draw(st.integers(1, 4))):
        at, cut = draw(st.integers(0, len(words) - 1)), draw(st.integers(0, 2))
        word = draw(st.sampled_from(OTHERS) | st.sampled_from(CODE))
        words = [*words[:at], word, *words[at + cut :]]
    return net("".join(words), *inputs).bytes()

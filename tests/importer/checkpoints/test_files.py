"""Files of PyTorch: every container, dtype and kind of view gives its values."""

import itertools
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from burn_import.frontends.checkpoints.tensors import Tensor
from burn_import.pytorch import Checkpoint, read
from burn_ir import InvalidModel, UnreadableFile
from tests.importer.pytorch_files import (
    CONTAINERS,
    KINDS,
    ORDERED,
    REBUILD,
    Array,
    Encoded,
    Entry,
    Name,
    New,
    Reduce,
    Stored,
    bare_file,
    entries_of,
    legacy_file,
    storage,
    tensor,
    view,
    zip_file,
    zipped,
)

RANDOM = np.random.default_rng(11)
W = RANDOM.normal(size=(2, 3, 5)).astype(np.float32)
V = RANDOM.integers(-9, 9, size=(4, 1, 3)).astype(np.int64)
DTYPES = (
    *(np.dtype(name) for name in KINDS if name != "bfloat16"),
    *(np.dtype(name) for name in ("uint16", "uint32", "uint64")),
    *(
        np.dtype(getattr(ml_dtypes, name))
        for name in (
            *("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz"),
            *("float8_e5m2fnuz", "float8_e8m0fnu"),
        )
    ),
)


def opened(folder: Path, content: bytes, key: str | None = None) -> Checkpoint:
    """Return the checkpoint in a file of this content."""
    path = folder / "net.pt"
    path.write_bytes(content)
    return read(path, key)


def same(actual: Array, expected: Array) -> None:
    """Return if two arrays are bit-identical, and the first is read-only."""
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    assert actual.tobytes() == expected.tobytes()
    assert not actual.flags.writeable


def numbers(dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    """Return random bytes as an array; zeros and ones as bool."""
    if dtype == np.bool_:
        return RANDOM.integers(0, 2, size=shape).astype(np.bool_)
    size = int(np.prod(shape)) * dtype.itemsize
    return np.frombuffer(RANDOM.bytes(size), dtype).reshape(shape)


PROTOCOLS = [
    (container, protocol)
    for container, protocol in itertools.product(CONTAINERS, range(6))
    if protocol >= 2 or container == "pickle"
]


@pytest.mark.parametrize(("container", "protocol"), PROTOCOLS)
def test_every_container_and_protocol(
    container: str, protocol: int, tmp_path: Path
) -> None:
    root = {"a.w": tensor("0", W), "b": [tensor("1", V), {"c": tensor("2", W[0])}]}
    actual = opened(tmp_path, CONTAINERS[container](root, protocol))
    assert list(actual) == ["a.w", "b.0", "b.1.c"]
    for array, name in ((W, "a.w"), (V, "b.0"), (W[0], "b.1.c")):
        assert (actual[name].dtype, actual[name].shape) == (array.dtype, array.shape)
        same(actual[name].array(), array)
    kind = {"following": "zip"}.get(container, container)
    assert (actual.format, actual.producer) == (kind, "pytorch")
    assert actual.skipped == {} and actual.scalars == {}


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("container", ["zip", "legacy"])
def test_every_dtype(container: str, dtype: np.dtype[Any], tmp_path: Path) -> None:
    array = numbers(dtype, (3, 2, 5))
    root = {"x": tensor("0", W), "y": tensor("1", array)}
    result = opened(tmp_path, CONTAINERS[container](root))
    same(result["y"].array(), array)


VIEWS: dict[str, tuple[tuple[int, ...], tuple[int, ...], int]] = {
    "transposed": ((5, 2, 3), (1, 15, 5), 0),
    "sliced": ((2, 2, 2), (15, 5, 2), 6),
    "expanded": ((4, 2, 5), (0, 15, 1), 5),
    "scalar": ((), (), 29),
    "one": ((1, 1), (2**60, 7), 3),
    "empty": ((0, 3), (3, 1), 30),
    "overlapping": ((3, 4, 2), (5, 2, 1), 0),
}


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("kind", VIEWS)
def test_strides_are_honored(container: str, kind: str, tmp_path: Path) -> None:
    shape, steps, offset = VIEWS[kind]
    root = [view(storage("7", W), shape, steps, offset)]
    result = opened(tmp_path, CONTAINERS[container](root))["0"]
    places = np.full(shape, offset)
    for axis, step in enumerate(steps):
        at = np.arange(shape[axis]) * step
        places = places + at.reshape(
            [-1 if n == axis else 1 for n in range(len(shape))]
        )
    same(result.array(), W.reshape(-1)[places].astype(np.float32))


@pytest.mark.parametrize("container", ["zip", "following", "torchscript", "legacy"])
def test_tensors_of_one_storage_share_it(container: str, tmp_path: Path) -> None:
    stored = storage("0", W)
    root = {
        "a": view(stored, W.shape),
        "b": view(stored, (5, 3), (1, 5), 15),
        "c": tensor("1", W),
    }
    actual = opened(tmp_path, CONTAINERS[container](root))
    a, b, c = (actual[name].array() for name in "abc")
    same(b, W[1].T)
    assert np.shares_memory(a, b) and np.shares_memory(a, actual["a"].array())
    assert not np.shares_memory(a, c)


def test_storages_are_mapped(tmp_path: Path) -> None:
    result = opened(tmp_path, zip_file({"w": tensor("0", W)}))
    array: Any = result["w"].array()
    while isinstance(array, np.ndarray):
        array = array.base
    assert isinstance(array, memoryview)
    assert type(array.obj).__name__ == "mmap"


@pytest.mark.parametrize("device", ["cuda:3", "mps", "xla:0", "privateuseone"])
@pytest.mark.parametrize("container", CONTAINERS)
def test_devices_are_ignored(container: str, device: str, tmp_path: Path) -> None:
    root = [view(storage("0", W, device), W.shape)]
    same(opened(tmp_path, CONTAINERS[container](root))["0"].array(), W)


def test_views_of_legacy_storages(tmp_path: Path) -> None:
    whole = storage("10", W)
    part = Stored("11", "FloatStorage", b"", 12, root=whole, offset=9)
    root = {"part": view(part, (2, 3), (6, 2), 1), "whole": view(whole, (30,))}
    actual = opened(tmp_path, legacy_file(root))
    same(actual["part"].array(), W.reshape(-1)[9:21].reshape(2, 6)[:, 1::2].copy())
    assert np.shares_memory(actual["part"].array(), actual["whole"].array())
    for count, offset in ((12, 19), (31, 0), (-1, 3), (2, -1)):
        bad = Stored("11", "FloatStorage", b"", count, root=whole, offset=offset)
        with pytest.raises(InvalidModel, match="a view within 30 elements"):
            opened(tmp_path, legacy_file([view(bad, (1,))]))


@pytest.mark.parametrize("dtype", ["float32", "int16", "complex64", "bfloat16", "bool"])
def test_big_endian_archives(dtype: str, tmp_path: Path) -> None:
    plain = np.dtype(getattr(ml_dtypes, dtype, dtype))
    array = numbers(plain, (3, 1, 4))
    size = plain.itemsize // (2 if dtype == "complex64" else 1)
    swapped = array.view(f"u{size}").byteswap().view(np.uint8).tobytes()
    entries = entries_of({"x": tensor("0", array)})
    content = {"net/byteorder": b"big", "net/data/0": swapped}
    changed = [Entry(e.name, content.get(e.name, e.data)) for e in entries]
    same(opened(tmp_path, zipped(changed))["x"].array(), array)


@pytest.mark.parametrize("mark", ["conj", "neg"])
def test_tensors_still_to_be_conjugated_or_negated(mark: str, tmp_path: Path) -> None:
    array = (W + 1j * W[::-1]).astype(np.complex64)
    root = [view(storage("0", array), array.shape, None, 0, {mark: True})]
    expected = np.conj(array) if mark == "conj" else -array
    same(opened(tmp_path, zip_file(root))["0"].array(), expected)


def test_quantized_tensors_are_their_integers(tmp_path: Path) -> None:
    integers = RANDOM.integers(-128, 128, size=(4, 3, 2)).astype(np.int8)
    stored = Stored("0", "QInt8Storage", integers.tobytes(), integers.size)
    scales, zeros = W[0, 0, :4].astype(np.float64), np.arange(4)
    whole = (Name("torch", "per_tensor_affine"), 0.25, 3)
    channels = (
        Name("torch", "per_channel_affine"),
        *(tensor("1", scales), tensor("2", zeros), 0),
    )
    rebuild = Name("torch._utils", "_rebuild_qtensor")
    root = {
        name: Reduce(rebuild, (stored, 0, (4, 3, 2), (6, 2, 1), how, False, ORDERED))
        for name, how in (("whole", whole), ("channels", channels), ("odd", (1, 2)))
    }
    actual = opened(tmp_path, zip_file(root))
    same(actual["whole"].array(), integers)
    same(actual["channels"].array(), integers)
    scaling = actual["whole"].quantization
    assert scaling is not None
    assert (scaling.scale, scaling.zero_point, scaling.axis) == (0.25, 3, None)
    scaling = actual["channels"].quantization
    assert scaling is not None and scaling.axis == 0
    assert isinstance(scaling.scale, Tensor) and isinstance(scaling.zero_point, Tensor)
    same(scaling.scale.array(), scales)
    same(scaling.zero_point.array(), zeros)
    assert actual.skipped == {"odd": "a tensor of an unknown quantization scheme"}


PARAMETER = Name("torch._utils", "_rebuild_parameter")
WRAPPED: dict[str, Callable[[Any], Any]] = {
    "parameter": lambda t: Reduce(PARAMETER, (t, True, ORDERED)),
    "parameter with state": lambda t: Reduce(
        Name("torch._utils", "_rebuild_parameter_with_state"),
        (t, True, ORDERED, {"tag": 1}),
    ),
    "subclass": lambda t: Reduce(
        Name("torch._tensor", "_rebuild_from_type_v2"),
        (t.function, Name("mine", "Special"), t.args, {}),
    ),
    "first form": lambda t: Reduce(Name("torch._utils", "_rebuild_tensor"), t.args[:4]),
    "other device": lambda t: Reduce(
        Name("torch._utils", "_rebuild_device_tensor_from_cpu_tensor"),
        (t, Name("torch", "float32"), "xla:0", False),
    ),
    "sized": lambda t: Reduce(
        REBUILD,
        (*t.args[:2], Reduce(Name("torch", "Size"), (t.args[2],)), *t.args[3:]),
    ),
}


@pytest.mark.parametrize("form", WRAPPED)
@pytest.mark.parametrize("container", CONTAINERS)
def test_forms_of_tensors(container: str, form: str, tmp_path: Path) -> None:
    root = Reduce(Name("collections", "OrderedDict"), state={"_metadata": {"": 1}})
    content = CONTAINERS[container]({"w": WRAPPED[form](tensor("0", W)), "m": root})
    same(opened(tmp_path, content)["w"].array(), W)


NUMPY = {
    "c": W,
    "fortran": np.asfortranarray(W),
    "big": V.astype(">i4"),
    "empty": W[:0],
    "flags": V > 0,
}


@pytest.mark.parametrize("name", NUMPY)
@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("core", ["numpy.core", "numpy._core"])
def test_arrays_of_numpy(name: str, protocol: int, core: str, tmp_path: Path) -> None:
    array = NUMPY[name]
    result = opened(tmp_path, bare_file({"x": numpy_array(array, core)}, protocol))
    same(result["x"].array(), array.astype(array.dtype.newbyteorder("=")))


def numpy_array(array: Array, core: str = "numpy.core") -> Reduce:
    """Return the call that rebuilds an array of NumPy."""
    code, order = array.dtype.str[1:], array.dtype.str[0]
    dtype = Reduce(
        Name("numpy", "dtype"),
        (code, False, True),
        (3, order, None, None, None, -1, -1, 0),
    )
    fortran = not array.flags.c_contiguous
    raw = Encoded(array.tobytes(order="A"))
    function = Name(f"{core}.multiarray", "_reconstruct")
    kind = Name("numpy", "ndarray")
    state = (1, array.shape, dtype, fortran, raw)
    return Reduce(function, (kind, (0,), b"b"), state)


def test_a_tensor_saved_as_an_array(tmp_path: Path) -> None:
    function = Name("torch._utils", "_rebuild_device_tensor_from_numpy")
    root = {
        name: Reduce(function, (numpy_array(W), Name("torch", dtype), "xla", False))
        for name, dtype in (("same", "float32"), ("other", "float16"))
    }
    actual = opened(tmp_path, bare_file(root, 4))
    same(actual["same"].array(), W)
    assert actual.skipped == {"other": "a tensor of torch.float16 saved as float32"}


def test_an_object_of_no_class_is_inert(tmp_path: Path) -> None:
    space = New(Name("argparse", "Namespace"), (), {"lr": 0.1, "w": tensor("1", V)})
    actual = opened(tmp_path, zip_file({"args": space, "w": tensor("0", W)}))
    assert list(actual) == ["w"]
    reason = "an object of argparse.Namespace, which is not built"
    assert actual.skipped == {"args": reason}


def wide(content: bytes) -> bytes:
    """Return an archive in zip64 format."""
    end = content.rindex(b"PK\5\6")
    count, size, begin = struct.unpack_from("<H2I", content, end + 10)
    listed, at = b"", begin
    while at < end:
        fields = list(struct.unpack_from("<4s6H3I5H2I", content, at))
        name = content[at + 46 : at + 46 + fields[10]]
        numbers = fields[9], fields[8], fields[16]
        fields[8] = fields[9] = fields[16] = 2**32 - 1
        other = struct.pack("<2HH", 0x7777, 2, 9)
        extra = other + struct.pack("<2H3Q", 1, 24, *numbers)
        fields[11] = len(extra)
        listed += struct.pack("<4s6H3I5H2I", *fields) + name + extra
        at += 46 + len(name)
    index = begin + len(listed)
    tail = struct.pack("<4sQ2H2I", b"PK\6\6", 44, 45, 45, 0, 0)
    tail += struct.pack("<4Q", count, count, len(listed), begin)
    tail += struct.pack("<4sIQI", b"PK\6\7", 0, index, 1)
    few = struct.pack(
        "<4s4H2IH", b"PK\5\6", 0, 0, *[2**16 - 1] * 2, *[2**32 - 1] * 2, 0
    )
    return content[:begin] + listed + tail + few


def test_archives_of_the_wide_form(tmp_path: Path) -> None:
    content = wide(zip_file({"w": tensor("0", W), "v": tensor("1", V)}))
    result = opened(tmp_path, content)
    same(result["w"].array(), W)
    same(result["v"].array(), V)
    for at, message in (
        (content.rindex(b"PK\6\6"), "damaged end record"),
        (content.rindex(b"PK\1\2"), "damaged central directory"),
        (content.rindex(struct.pack("<2H", 1, 24)), "the zip64 sizes of an entry"),
    ):
        broken = content[:at] + b"XX" + content[at + 2 :]
        with pytest.raises(UnreadableFile, match=message):
            opened(tmp_path, broken)

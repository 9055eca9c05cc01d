"""Tensors of ONNX files: dtypes, encodings, external files, and invalid ones."""

import os
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import SparseTensorProto, TensorProto, helper, numpy_helper

from burn_import.frontends.onnx import read
from burn_ir import InvalidModel, UnreadableFile, UnsupportedModel
from tests.importer.onnx_files import constant_model, graph, model, saved, stored

RNG = np.random.default_rng(5)
BITS = RNG.integers(0, 255, 105, dtype=np.uint8)  # odd, so that the last byte is padded

NUMBERS = [
    *("float16", "float32", "float64", "complex64", "complex128", "bool"),
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
]
EXTENDED = [
    *("bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2"),
    *("float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn"),
    *("int4", "uint4", "int2", "uint2"),
]


def sample(name: str) -> Any:
    """Return a random asymmetric array of rank three."""
    if name in NUMBERS:
        values = RNG.normal(0, 50, (3, 5, 7))
        if np.dtype(name).kind == "u":
            values = np.abs(values)
        return (values > 0) if name == "bool" else values.astype(name)
    dtype = np.dtype(getattr(ml_dtypes, name))
    return RNG.integers(0, 2, (3, 5, 7)).astype(np.float32).astype(dtype)


def first(path: Path) -> Any:
    """Return the only stored array."""
    (array,) = read(path).graph.constants.values()
    return array


@pytest.mark.parametrize("name", [*NUMBERS, *EXTENDED])
def test_raw_data(tmp_path: Path, name: str) -> None:
    array = sample(name)
    proto = numpy_helper.from_array(array, "w")
    actual = first(saved(tmp_path / "m.onnx", constant_model(proto)))
    assert actual.dtype == array.dtype and actual.shape == array.shape
    assert actual.tobytes() == array.tobytes() and not actual.flags.writeable


@pytest.mark.parametrize("name", [*NUMBERS, *EXTENDED])
def test_typed_data(tmp_path: Path, name: str) -> None:
    array = sample(name)
    code = helper.np_dtype_to_tensor_dtype(array.dtype)
    proto = helper.make_tensor("w", code, array.shape, array.ravel().tolist())
    assert not proto.HasField("raw_data")
    actual = first(saved(tmp_path / "m.onnx", constant_model(proto)))
    assert actual.dtype == array.dtype and actual.tobytes() == array.tobytes()


@pytest.mark.parametrize("name", EXTENDED[:6])
def test_every_bit_pattern_of_typed_data(tmp_path: Path, name: str) -> None:
    wide = name == "bfloat16"
    bits = np.arange(0, 65536, 7) if wide else np.arange(256)
    dtype = np.dtype(getattr(ml_dtypes, name))
    code = helper.np_dtype_to_tensor_dtype(dtype)
    proto = TensorProto(name="w", data_type=code, dims=bits.shape, int32_data=bits)
    actual = first(saved(tmp_path / "m.onnx", constant_model(proto)))
    np.testing.assert_array_equal(actual.view("u2" if wide else "u1"), bits)


def test_negative_numbers_of_few_bits(tmp_path: Path) -> None:
    for name, low in (("int4", -8), ("int2", -2)):
        numbers = np.arange(low, -low)
        array = numbers.astype(getattr(ml_dtypes, name))
        proto = numpy_helper.from_array(array, "w")
        actual = first(saved(tmp_path / "m.onnx", constant_model(proto)))
        np.testing.assert_array_equal(actual.astype(np.int64), numbers)


def test_weights_are_views_of_the_file(tmp_path: Path) -> None:
    big = RNG.normal(size=(50, 40)).astype(np.float32)
    nodes = [
        helper.make_node("Add", ["x", "a"], ["h"]),
        helper.make_node("Add", ["h", "b"], ["y"]),
    ]
    tensors = stored("a", big), stored("b", big)
    proto = model(graph(nodes, {"x": [50, 40]}, initializers=tensors))
    path = saved(tmp_path / "m.onnx", proto)
    result = read(path).graph.constants
    for array in result.values():
        np.testing.assert_array_equal(array, big)
        base = array
        while isinstance(base, np.ndarray) and base.base is not None:
            base = base.base
        assert isinstance(base, memoryview) and not array.flags.owndata


def test_strings(tmp_path: Path) -> None:
    texts = np.array([["a", "h\u00e9\0"], ["", "\U0001f600"]], object)
    data = [text.encode() for text in texts.ravel()]
    proto = TensorProto(name="w", data_type=8, dims=[2, 2], string_data=data)
    actual = first(saved(tmp_path / "m.onnx", constant_model(proto)))
    assert actual.dtype == object and actual.tolist() == texts.tolist()
    proto.string_data[1] = b"\xff"
    with pytest.raises(InvalidModel, match="UTF-8"):
        read(saved(tmp_path / "m.onnx", constant_model(proto)))


def test_bytes_of_booleans_other_than_one(tmp_path: Path) -> None:
    proto = TensorProto(name="w", data_type=9, dims=[4], raw_data=b"\0\1\2\xff")
    actual = first(saved(tmp_path / "m.onnx", constant_model(proto)))
    assert actual.tolist() == [False, True, True, True]
    assert actual.view(np.uint8).tolist() == [0, 1, 1, 1]


@pytest.mark.parametrize("linear", [True, False])
def test_sparse_initializers(tmp_path: Path, linear: bool) -> None:
    indices = [[0, 1, 3], [1, 2, 0]]
    flat = [0 * 12 + 1 * 4 + 3, 1 * 12 + 2 * 4 + 0]
    sparse = SparseTensorProto(
        values=stored("w", np.array([2.5, -1], np.float32)),
        indices=stored("", np.array(flat if linear else indices)),
        dims=[2, 3, 4],
    )
    node = helper.make_node("Add", ["x", "w"], ["y"])
    proto = model(graph([node], {"x": [2, 3, 4]}))
    proto.graph.sparse_initializer.append(sparse)
    expected = np.zeros((2, 3, 4), np.float32)
    expected[0, 1, 3], expected[1, 2, 0] = 2.5, -1
    actual = first(saved(tmp_path / "m.onnx", proto))
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize(
    ("dims", "index", "error"),
    [
        ([2, 3], 6, InvalidModel),
        ([2, 3], -1, InvalidModel),
        ([2**20, 2**20], 1, UnsupportedModel),
    ],
)
def test_sparse_tensors_that_do_not_fit(
    tmp_path: Path, dims: list[int], index: int, error: type[Exception]
) -> None:
    proto = model(graph([helper.make_node("Relu", ["x"], ["y"])]))
    proto.graph.sparse_initializer.append(
        SparseTensorProto(
            values=stored("w", np.array([1], np.float32)),
            indices=stored("", np.array([index])),
            dims=dims,
        )
    )
    with pytest.raises(error, match="sparse tensor 'w'"):
        read(saved(tmp_path / "m.onnx", proto))


def tensor(**fields: Any) -> TensorProto:
    """Return a tensor called w with the given, possibly wrong fields."""
    return TensorProto(**{"name": "w", "data_type": 1, "dims": [2], **fields})


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (tensor(raw_data=b"\0" * 12), "expected 8 bytes .* got 12"),
        (tensor(raw_data=b"\0" * 7), "expected 8 bytes .* got 7"),
        (tensor(float_data=[1.0]), "expected 2 elements .* got 1"),
        (tensor(dims=[-1, 4], raw_data=b"\0" * 16), "dims of 0 or more"),
        (tensor(dims=[2**31, 2**31]), "too large for memory"),
        (tensor(dims=[1] * 65, float_data=[1.0]), "too large for memory"),
        (tensor(data_type=99, raw_data=b"\0" * 8), "got number 99"),
        (tensor(data_type=0), "got number 0"),
        (tensor(float_data=[1, 2], raw_data=b"\0" * 8), "got float_data, raw_data"),
        (tensor(int64_data=[1, 2]), "got int64_data"),
        (tensor(data_type=14, float_data=[1, 2, 3]), "expected 2 elements .* got 3"),
        (tensor(data_type=8, raw_data=b"ab"), "in string_data, got raw_data"),
        (tensor(data_type=22, dims=[3], raw_data=b"\0"), "expected 2 bytes"),
    ],
)
def test_tensors_that_contradict_themselves(
    tmp_path: Path, wrong: TensorProto, message: str
) -> None:
    with pytest.raises(InvalidModel, match=f"tensor 'w'.*{message}"):
        read(saved(tmp_path / "m.onnx", constant_model(wrong)))


def external(tmp_path: Path, where: str = "m.onnx", **entries: str) -> Path:
    """Write a model whose weight is in another file."""
    proto = tensor(dims=[2, 3], data_location=TensorProto.EXTERNAL)
    for key, value in entries.items():
        proto.external_data.add(key=key, value=value)
    path = tmp_path / where
    path.parent.mkdir(parents=True, exist_ok=True)
    return saved(path, constant_model(proto))


WEIGHT = RNG.normal(size=(2, 3)).astype(np.float32)


def test_external_data(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(b"\0" * 8 + WEIGHT.tobytes() + b"rest")
    places = [{"offset": "8", "length": "24"}, {"offset": "8", "unknown": "x"}]
    for entries in places:
        path = external(tmp_path, location="w.bin", **entries)
        np.testing.assert_array_equal(first(path), WEIGHT)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"location": "../w.bin"}, "outside"),
        ({"location": "x/../../w.bin"}, "outside"),
        ({"location": "link.bin"}, "outside"),
        ({"location": "folder/w.bin"}, "outside"),
        ({"location": "/etc/hostname"}, "relative to the model"),
        ({"location": ""}, "relative to the model"),
        ({}, "relative to the model"),
        ({"location": "gone.bin"}, "'w'.*'gone.bin'.*no such file"),
        ({"location": "pipe"}, "regular file"),
        ({"location": "."}, "cannot read|regular file"),
        ({"location": "in.bin", "offset": "1"}, "bytes 1 to 25 .* has 24"),
        ({"location": "in.bin", "offset": str(2**63 - 1)}, "has 24"),
    ],
)
def test_external_files_that_are_refused(
    tmp_path: Path, entries: dict[str, str], message: str
) -> None:
    (tmp_path / "w.bin").write_bytes(WEIGHT.tobytes())
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "w.bin").write_bytes(WEIGHT.tobytes())
    path = external(tmp_path, "model/m.onnx", **entries)
    (path.parent / "in.bin").write_bytes(WEIGHT.tobytes())
    (path.parent / "link.bin").symlink_to(tmp_path / "w.bin")
    (path.parent / "folder").symlink_to(tmp_path / "other")
    os.mkfifo(path.parent / "pipe")
    with pytest.raises(UnreadableFile, match=message):
        read(path)


@pytest.mark.parametrize(
    "entry", [{"offset": "-1"}, {"length": "1e3"}, {"length": "8"}]
)
def test_external_numbers_that_are_refused(
    tmp_path: Path, entry: dict[str, str]
) -> None:
    (tmp_path / "w.bin").write_bytes(WEIGHT.tobytes())
    with pytest.raises(InvalidModel, match="tensor 'w'"):
        read(external(tmp_path, location="w.bin", **entry))


def test_the_cache_of_hugging_face(tmp_path: Path) -> None:
    blobs = tmp_path / "models--a--b" / "blobs"
    blobs.mkdir(parents=True)
    (blobs / "123").write_bytes(WEIGHT.tobytes())
    path = external(
        tmp_path, "models--a--b/snapshots/f00/onnx/m.onnx", location="w.bin"
    )
    (path.parent / "w.bin").symlink_to("../../../blobs/123")
    np.testing.assert_array_equal(first(path), WEIGHT)
    (path.parent / "w.bin").unlink()
    (blobs / "deep").mkdir()
    (blobs / "deep" / "1").write_bytes(WEIGHT.tobytes())
    (path.parent / "w.bin").symlink_to("../../../blobs/deep/1")
    with pytest.raises(UnreadableFile, match="outside"):
        read(path)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "empty file"),
        (b"version https://git-lfs.github.com/spec/v1\noid", "git lfs pull"),
        (b"<!DOCTYPE html><html>", "HTML page"),
        (b"PK\x03\x04" + b"\0" * 40, "zip archive"),
        (b"\x1f\x8b\x08", "gzip"),
        (b"\x89HDF\r\n\x1a\n", "HDF5"),
        (b"\x1c\0\0\0TFL3", "TFLite"),
        (b"\x02\0\0\0\0\0\0\0{}", "safetensors"),
        (b"\x80\x02}q\x00.", "pickle"),
        (b"plain text of no meaning", "damaged or cut off at byte"),
        (b"\x08\x07\x12\x04name", "no graph"),
    ],
)
def test_files_that_are_no_models(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(data)
    with pytest.raises(UnreadableFile, match=message) as caught:
        read(path)
    assert str(caught.value).startswith("m.onnx: ") and "\n" not in str(caught.value)


def test_every_cut_of_a_file_is_noticed(tmp_path: Path) -> None:
    data = constant_model(stored("w", WEIGHT)).SerializeToString()
    path = tmp_path / "m.onnx"
    for length in range(1, len(data) - 20, 7):
        path.write_bytes(data[:length])
        with pytest.raises(UnreadableFile):
            read(path)


@pytest.mark.parametrize("name", ["gone.onnx", ".", "n\0ul"])
def test_paths_that_cannot_be_read(tmp_path: Path, name: str) -> None:
    with pytest.raises(UnreadableFile):
        read(tmp_path / name)

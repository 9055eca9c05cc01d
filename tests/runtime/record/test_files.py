"""Foreign files: each is called by its name, with what to do about it."""

import gzip
import io
import pickle
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from burn.record import (
    Foreign,
    RecordError,
    describe_foreign,
    open_record,
    write_record as write,
)


def zipped(*entries: tuple[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in entries:
            archive.writestr(name, content)
    return buffer.getvalue()


def tarred(name: str, content: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def saved(save: Any, *arrays: Any) -> bytes:
    buffer = io.BytesIO()
    save(buffer, *arrays)
    return buffer.getvalue()


LEGACY = pickle.dumps(0x1950A86A20F9469CFC6C, 2)
#: Weights that are packed for a backend, as modules that PyTorch quantized have them.
PACKED = pickle.dumps("__torch__.torch.classes.quantized.LinearPackedParamsBase", 2)
SCRIPT = pickle.dumps("__torch__.Net", 2)
ONNX = b"\x08\x0a\x12\x07pytorch\x1a\x032.9:\x02\x12\x00"
ARRAY = np.arange(24).reshape(2, 3, 4)

FILES = {
    "empty file": (b"", "left nothing"),
    "Git LFS pointer": (
        b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n",
        "git lfs pull",
    ),
    "git-annex pointer": (b"/annex/objects/SHA256E-s9--00\n", "git annex get"),
    "HTML page": (b"\n <!DOCTYPE HTML>\n<html><title>Login", "Download the file"),
    "HTML page ": (b"\xef\xbb\xbf<html lang='en'>", "Download the file"),
    "JSON text": (b'{\n  "weight_map": {}}', "index of a sharded model"),
    "ONNX model (protobuf)": (ONNX, "burn-import"),
    "PyTorch checkpoint (zip)": (
        zipped(("net/data.pkl", b"\x80\x02}."), ("net/data/0", b"1234")),
        "safetensors.torch.save_file",
    ),
    "PyTorch checkpoint (zip) ": (
        zipped(("net/data.pkl", PACKED), ("net/data/0", b"1234")),
        "safetensors.torch.save_file",
    ),
    "TorchScript archive (zip)": (
        zipped(("net/data.pkl", SCRIPT), ("net/code/x.py", b"")),
        "burn-import",
    ),
    "TorchScript archive (zip) ": (
        zipped(("net/data/0", b"1234"), ("net/data.pkl", SCRIPT)),
        "burn-import",
    ),
    "PyTorch exported program (.pt2, zip)": (
        zipped(("net/archive_format", b"pt2"), ("net/models/model.json", b"{}")),
        "burn-import",
    ),
    "PyTorch exported program (.pt2, zip) ": (
        zipped(("net/data/weights/weight_0", b"1234")),
        "burn-import",
    ),
    "PyTorch checkpoint (pickle, before 1.6)": (LEGACY, "save it anew"),
    "pickle": (pickle.dumps({"w": ARRAY}), "loading a pickle runs code"),
    "pickle ": (pickle.dumps([1], 2), "loading a pickle runs code"),
    "NumPy array (.npy)": (saved(np.save, ARRAY), "numpy.load"),
    "NumPy archive (.npz)": (saved(np.savez, ARRAY), "numpy.load"),
    "zip archive": (zipped(("notes.txt", b"hi")), "Unpack it"),
    "zip archive ": (zipped(), "Unpack it"),
    "gzip file": (gzip.compress(b"weights"), "gzip -d"),
    "Zstandard file": (b"\x28\xb5\x2f\xfd\x20\x00", "zstd -d"),
    "HDF5 file": (b"\x89HDF\r\n\x1a\n\x00\x00", "h5py"),
    "TFLite model": (b"\x1c\x00\x00\x00TFL3\x14\x00", "tf2onnx"),
    "GGUF model": (b"GGUF\x03\x00\x00\x00", "safetensors"),
    "tar archive": (tarred("pickle", b"\x80\x02}."), "load it there and save"),
    "Burn record (.bpk)": (b"NRUB\x01\x00\x10\x00\x00\x00", "read_record"),
}


@pytest.mark.parametrize("kind", FILES)
def test_a_foreign_file_is_named_with_its_remedy(kind: str, tmp_path: Path) -> None:
    content, remedy = FILES[kind]
    actual = describe_foreign(content[:4096])
    assert actual is not None
    assert actual.kind == kind.strip()
    assert remedy in actual.remedy
    assert actual.remedy.endswith(".")
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    with pytest.raises(RecordError) as caught:
        open_record(path)
    assert str(caught.value) == (
        f"{path}: expected a safetensors file, got: {actual.kind}. {actual.remedy}"
    )


def test_a_record_is_a_safetensors_file(tmp_path: Path) -> None:
    write(tmp_path / "r", [("x", ARRAY)])
    actual = describe_foreign((tmp_path / "r").read_bytes())
    assert actual == Foreign(
        "safetensors file", "Open it with burn.record.open_record."
    )


@pytest.mark.parametrize("magic", [b"\x1f\x8b\x08", b"\x08\x0a\x12", b"\x80\x02\x01"])
def test_a_header_length_may_look_like_a_magic_number(
    magic: bytes, tmp_path: Path
) -> None:
    length = int.from_bytes(magic, "little")
    content = length.to_bytes(8, "little") + b"{}".ljust(length)
    (tmp_path / "r").write_bytes(content)
    assert len(open_record(tmp_path / "r")) == 0


@pytest.mark.parametrize("head", [b"abc", bytes(64), b"\x08", b"\x80\x09", b"hello {"])
def test_unknown_bytes_have_no_name(head: bytes) -> None:
    assert describe_foreign(head) is None

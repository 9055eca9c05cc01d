"""Kinds of files, whatever they are called."""

from pathlib import Path

import pytest

from burn.record import files
from burn_import.file_kinds import FileKind, described, file_kind, head_kind

JSON = b'{"weight_map": {}}'


@pytest.mark.parametrize(
    ("name", "content", "kind", "words"),
    [
        ("a.onnx", b"\x08\x07\x12\x00", FileKind.ONNX, ""),
        ("a.bin", b"anything", FileKind.ONNX, ""),
        ("a.json", JSON, FileKind.OTHER, "JSON text"),
        ("a.index.json", JSON, FileKind.WEIGHTS, "JSON text"),
        ("a.onnx", b"\x80\x02}q\x00.", FileKind.WEIGHTS, "pickle"),
        ("a.onnx", b"<html>", FileKind.OTHER, "HTML page"),
    ],
)
def test_the_first_bytes_decide(
    tmp_path: Path, name: str, content: bytes, kind: FileKind, words: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert file_kind(path) is kind
    assert described(path) == words


def test_a_missing_file_is_left_to_the_reader_of_onnx(tmp_path: Path) -> None:
    assert file_kind(tmp_path / "a.onnx") is FileKind.ONNX
    assert file_kind(tmp_path / "a.index.json") is FileKind.WEIGHTS
    assert described(tmp_path / "a.onnx") == ""


@pytest.mark.parametrize(
    ("foreign", "kind"),
    [
        (files.EXPORTED, FileKind.EXPORTED_PROGRAM),
        (files.TORCHSCRIPT, FileKind.TORCHSCRIPT),
        (files.TORCH, FileKind.WEIGHTS),
        (files.SAFETENSORS, FileKind.WEIGHTS),
        (files.GGUF, FileKind.OTHER),
    ],
)
def test_archives_have_a_reader(foreign: files.Foreign, kind: FileKind) -> None:
    assert head_kind(foreign) is kind

"""Datasets in files: SQLite, images, sounds, tables."""

import csv
import pickle
import sqlite3
import sys
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import burn
from burn import data
from tests.runtime.data.items import Squares, as_row


def test_sqlite_has_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "a #?%.db"
    items: list[dict[str, Any]] = [
        {"x": 1, "y": 0.5, 'odd "name"': "text", "z": np.eye(2, dtype=np.float32)},
        {"x": None, "y": np.float32(2), 'odd "name"': b"\0raw", "z": burn.tensor([3])},
    ]
    data.write_sqlite(path, items, 'a "table"')
    with pytest.raises(ValueError, match="exists already"):
        data.write_sqlite(path, items, 'a "table"')
    table = data.Sqlite(path, 'a "table"')
    assert table.columns == ["x", "y", 'odd "name"', "z"]
    first, second = table
    assert (first["x"], first["y"], first['odd "name"']) == (1, 0.5, "text")
    np.testing.assert_array_equal(first["z"], np.eye(2, dtype=np.float32), strict=True)
    assert (second["x"], second["y"], second['odd "name"']) == (None, 2.0, b"\0raw")
    assert second["z"].tolist() == [3]
    assert data.Sqlite(path, 'a "table"', ["y"])[1] == {"y": 2.0}
    with pytest.raises(ValueError, match="has no column 'w'"):
        data.Sqlite(path, 'a "table"', ["w"])
    with pytest.raises(
        ValueError, match=r"expected a table 'b', got \['a \"table\"'\]"
    ):
        data.Sqlite(path, "b")
    with pytest.raises(FileNotFoundError, match=r"no\.db: no such SQLite file"):
        data.Sqlite(tmp_path / "no.db")


def test_sqlite_skips_deleted_rows_and_workers_open_it_anew(tmp_path: Path) -> None:
    path = tmp_path / "squares.db"
    data.write_sqlite(path, data.Mapper(Squares(9), as_row))
    connection = sqlite3.connect(path)
    with connection:
        connection.execute('DELETE FROM items WHERE "index" IN (0, 4)')
    connection.close()
    table = data.Sqlite(path)
    assert [row["index"] for row in table] == [1, 2, 3, 5, 6, 7, 8]
    assert pickle.loads(pickle.dumps(table))[3]["square"] == 25
    with data.Loader(table, batch=7, workers=1) as loader:
        (batch,) = loader
    assert batch["array"].numpy()[:, 0].tolist() == [1, 2, 3, 5, 6, 7, 8]


def test_values_that_sqlite_cannot_hold_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="item 0: 'a': expected a number, .* got set"):
        data.write_sqlite(tmp_path / "a.db", [{"a": {1}}])
    with pytest.raises(TypeError, match="numbers in an array, got object"):
        data.write_sqlite(tmp_path / "a.db", [{"a": np.array([None])}])
    with pytest.raises(ValueError, match=r"item 1: expected keys \['a'\], got \['b'\]"):
        data.write_sqlite(tmp_path / "a.db", [{"a": 1}, {"b": 1}])
    with pytest.raises(ValueError, match="at least one item"):
        data.write_sqlite(tmp_path / "a.db", [])


def images(root: Path) -> Path:
    """Write two classes of images, and return their folder."""
    for label, name in enumerate(["cat", "dog"]):
        (root / name).mkdir()
        for number in range(2):
            array = np.full((4, 6, 3), 100 * label + number, np.uint8)
            Image.fromarray(array).save(root / name / f"{number}.png")
    (root / "dog" / "notes.txt").write_text("no image")
    return root


def test_images_of_folders(tmp_path: Path) -> None:
    folder = data.ImageFolder(images(tmp_path))
    assert folder.classes == ["cat", "dog"]
    assert [label for _, label in folder] == [0, 0, 1, 1]
    image, _ = folder[3]
    assert (image.dtype, image.shape, image.max()) == (np.uint8, (4, 6, 3), 101)
    small, _ = data.ImageFolder(tmp_path, size=(2, 3), mode="L")[2]
    assert small.shape == (2, 3, 1)
    assert small.max() == 100
    with data.Loader(folder, batch=4, workers=1) as loader:
        ((pixels, labels),) = loader
    assert pixels.shape == (4, 4, 6, 3)
    assert labels.tolist() == [0, 0, 1, 1]
    with pytest.raises(ValueError, match="a subfolder for each class"):
        data.ImageFolder(tmp_path / "cat")
    (tmp_path / "cat" / "empty").mkdir()
    with pytest.raises(ValueError, match="expected files"):
        data.ImageFolder(tmp_path / "cat")


def test_images_need_pillow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = images(tmp_path)
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImportError, match=r"burn-runtime\[images\]"):
        data.ImageFolder(root)


def test_channels_come_first() -> None:
    image = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    out = data.channels_first(image, mean=[0, 0.5, 0], std=[1, 1, 2])
    assert (out.dtype, out.shape) == (np.float32, (3, 2, 2))
    np.testing.assert_allclose(out[1, 1, 0], 7 / 255 - 0.5, rtol=1e-6)
    np.testing.assert_allclose(out[2, 0, 1], 5 / 255 / 2, rtol=1e-6)
    with pytest.raises(ValueError, match=r"expected an image .* got float32\[2\]"):
        data.channels_first(np.zeros(2, np.float32))


def write_wav(path: Path, frames: bytes, width: int, channels: int = 1) -> None:
    """Write samples of ``width`` bytes at 8 kHz."""
    with wave.open(str(path), "wb") as file:
        file.setparams((channels, width, 8000, 0, "NONE", ""))
        file.writeframes(frames)


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_sounds_of_all_widths(tmp_path: Path, width: int) -> None:
    scale = 2 ** (8 * width - 1)
    numbers = [-scale, scale // 2, 0, -(scale // 4)]
    offset = 128 if width == 1 else 0
    frames = b"".join(
        (number + offset).to_bytes(width, "little", signed=width > 1)
        for number in numbers
    )
    write_wav(tmp_path / "a.wav", frames, width, channels=2)
    samples, rate = data.Wav([tmp_path / "a.wav"])[0]
    assert (rate, samples.dtype) == (8000, np.float32)
    assert samples.tolist() == [[-1.0, 0.0], [0.5, -0.25]]


def test_sounds_of_folders(tmp_path: Path) -> None:
    for name in ("no", "yes"):
        (tmp_path / name).mkdir()
        write_wav(tmp_path / name / "0.WAV", bytes(8), 2)
    folder = data.WavFolder(tmp_path)
    assert [label for _, label in folder] == [0, 1]
    ((audio, labels),) = data.Loader(folder, batch=2)
    assert audio.samples.shape == (2, 1, 4)
    assert audio.rate.tolist() == [8000, 8000]
    assert labels.tolist() == [0, 1]


def test_damaged_sounds_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    write_wav(path, bytes(100), 2)
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(ValueError, match=r"a\.wav: expected 100 bytes of samples"):
        data.read_wav(path)
    path.write_bytes(b"RIFF")
    with pytest.raises(ValueError, match=r"a\.wav: not a WAV file"):
        data.read_wav(path)


def test_rows_of_csv(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    with open(path, "w", newline="", encoding="utf-8") as file:
        rows: list[list[Any]] = [
            ["n", "x", "text", "code"],
            [1, 0.5, 'a,"b"\n', "007"],
            [2, 3, "ü", "1"],
        ]
        csv.writer(file).writerows(rows)
    table = data.Csv(path, types={"code": str})
    assert table[0] == {"n": 1, "x": 0.5, "text": 'a,"b"\n', "code": "007"}
    assert table[1] == {"n": 2, "x": 3.0, "text": "ü", "code": "1"}
    ((batch),) = data.Loader(table, batch=2)
    assert batch["n"].tolist() == [1, 2]
    assert batch["text"] == ['a,"b"\n', "ü"]


@pytest.mark.parametrize(
    ("text", "types", "message"),
    [
        ("", None, "names that differ"),
        ("a,a\n1,2\n", None, "names that differ"),
        ("a,b\n1,2\n1\n", None, "line 3: expected 2 fields, got 1"),
        ("a\nx\n", {"a": int}, "'a', row 0: invalid literal"),
        ("a\nx\n", {"b": int}, r"expected columns of \['a'\], got \['b'\]"),
    ],
)
def test_wrong_csv_is_refused(
    tmp_path: Path, text: str, types: Any, message: str
) -> None:
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        data.Csv(tmp_path / "a.csv", types)


def test_rows_of_parquet(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = {
        "n": [1, 2, 3],
        "text": ["a", "b", None],
        "vector": [[0.5, 1.0], [2.0, 3.0], [4.0, 5.0]],
    }
    path = tmp_path / "a.parquet"
    parquet.write_table(arrow.table(columns), path, row_group_size=2)
    table = data.Parquet(path)
    assert len(table) == 3
    assert (table[2]["n"], table[2]["text"]) == (3, None)
    np.testing.assert_array_equal(table[2]["vector"], [4.0, 5.0])
    chosen = data.Parquet(path, ["vector", "n"])
    with data.Loader(chosen, batch=3, workers=1) as loader:
        (batch,) = loader
    assert batch["vector"].shape == (3, 2)
    with pytest.raises(ValueError, match="no column 'w', only"):
        data.Parquet(path, ["w"])


def test_parquet_needs_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"burn-runtime\[parquet\]"):
        data.Parquet(tmp_path / "a.parquet")


class Rows:
    """What of ``datasets.Dataset`` is used."""

    column_names = ["image", "label", "tokens"]

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> dict[str, Any]:
        image = Image.new("L", (3, 2), index)
        return {"image": image, "label": index, "tokens": [[1, 2], [3, index]]}


def test_rows_of_hugging_face() -> None:
    row = data.HuggingFace(Rows())[1]
    assert row["image"].tolist() == [[1, 1, 1], [1, 1, 1]]
    assert row["tokens"].tolist() == [[1, 2], [3, 1]]
    pairs = data.HuggingFace(Rows(), ["label", "tokens"])
    ((labels, tokens),) = data.Loader(pairs, batch=2)
    assert labels.tolist() == [0, 1]
    assert tokens.shape == (2, 2, 2)
    with pytest.raises(ValueError, match="no column 'w'"):
        data.HuggingFace(Rows(), ["w"])
    with pytest.raises(TypeError, match=r"expected a datasets\.Dataset.* got dict"):
        data.HuggingFace({"train": Rows()})  # type: ignore[arg-type]

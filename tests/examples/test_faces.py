"""Faces are found where they were drawn, by two detectors."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

Image: Any = pytest.importorskip("PIL.Image")


@pytest.mark.parametrize("example", ["faces"], indirect=True)
def test_drawn_faces_have_a_box_each(example: Any, tmp_path: Path) -> None:
    boxes = example.main([])
    corners = example.import_module("smileys").write_picture(tmp_path / "same.png")
    assert len(boxes) == len(corners) == 9
    distances = np.abs(boxes[:, None, :2] - np.array(corners)).max(-1)
    assert sorted(distances.argmin(1)) == list(range(9))
    assert distances.min(1).max() <= 2
    with Image.open(example.OUT / "faces.png") as picture:
        assert picture.size == (640, 480)
        assert (255, 45, 85) in {color for _, color in picture.getcolors(1 << 20)}


@pytest.mark.parametrize("example", ["faces"], indirect=True)
def test_ultraface_finds_a_face(
    example: Any, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    zoo: Path = request.config.getoption("--zoo")
    folder = zoo / "real" / "ultraface"
    if not (folder / "rfb_320.onnx").is_file():
        pytest.skip("no models (see --zoo): ultraface not checked")
    with np.load(folder / "rfb_320.golden.npz") as arrays:
        pixels = arrays["in:input"][0].transpose(1, 2, 0) * 128 + 127
    picture = tmp_path / "face.png"
    Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(picture)
    boxes = example.main([str(picture), "--model", str(folder / "rfb_320.onnx")])
    assert boxes.shape == (1, 4)
    assert np.abs(boxes[0] - [78, 33, 211, 208]).max() < 30  # the drawn head


@pytest.mark.parametrize("example", ["faces"], indirect=True)
def test_overlapping_boxes_give_way_to_the_best(example: Any) -> None:
    boxes = np.array([[0, 0, 10, 10], [1, 1, 11, 11], [20, 0, 30, 10]], np.float32)
    assert example.best_of_each(boxes, np.array([0.8, 0.9, 0.7])) == [1, 2]
    assert example.best_of_each(boxes[:0], np.zeros(0)) == []

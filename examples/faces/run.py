"""Finds faces in a picture, and draws a box around each.

``python examples/faces/run.py`` draws a picture and computes a detector to try it with.
With UltraFace's network and a picture of yours:

    python models/fetch.py ultraface
    python examples/faces/run.py --model models/.cache/ultraface.onnx photo.jpg

It prints the boxes, and writes ``generated/faces.png``. It needs Pillow.
"""

import argparse
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageOps

import burn
from burn_import import ModelGen, Options

HERE = Path(__file__).parent
OUT = HERE / "generated"
WIDTH, HEIGHT = 320, 240
THRESHOLD, OVERLAP = 0.7, 0.3

Boxes = NDArray[np.float32]


def load_detector(model: Path) -> Any:
    """Return the class generated from the ONNX file, as a plan."""
    options = Options(class_name="Detector")
    ModelGen().input(str(model)).out_dir(str(OUT)).options(options).run_from_script()
    sys.path.insert(0, str(OUT))
    return burn.compile(import_module(model.stem).Detector.load())


def detect(detector: Any, picture: Image.Image) -> tuple[Boxes, NDArray[np.float32]]:
    """Return float32[N, 4] boxes in pixels (left, top, right, bottom), and scores."""
    small = picture.resize((WIDTH, HEIGHT), Image.Resampling.BILINEAR)
    pixels = (np.asarray(small, np.float32) - 127) / 128
    image = np.ascontiguousarray(pixels.transpose(2, 0, 1)[None])
    scores, boxes = (x.numpy()[0] for x in detector(burn.tensor(image)))
    faces = scores[:, 1] > THRESHOLD
    kept = best_of_each(boxes[faces], scores[faces, 1])
    size = np.array(picture.size * 2, np.float32)
    return boxes[faces][kept] * size, scores[faces, 1][kept]


def best_of_each(boxes: Boxes, scores: NDArray[np.float32]) -> list[int]:
    """Return the boxes that overlap no better one (non-maximum suppression)."""
    kept: list[int] = []
    areas = (boxes[:, 2:] - boxes[:, :2]).prod(1)
    for index in np.argsort(-scores).tolist():
        low = np.maximum(boxes[kept, :2], boxes[index, :2])
        high = np.minimum(boxes[kept, 2:], boxes[index, 2:])
        shared = (high - low).clip(0).prod(1)
        if np.all(shared < OVERLAP * (areas[kept] + areas[index] - shared)):
            kept.append(index)
    return kept


def draw_boxes(picture: Image.Image, boxes: Boxes, scores: Any) -> Image.Image:
    """Return the picture, at least 640 pixels wide, with boxes and their scores."""
    factor = max(1, -(-640 // picture.width))
    large = picture.resize((picture.width * factor, picture.height * factor))
    draw = ImageDraw.Draw(large)
    for box, score in zip(boxes * factor, scores, strict=True):
        left, top, right, bottom = box.tolist()
        draw.rectangle((left, top, right, bottom), outline="#ff2d55", width=3)
        draw.rectangle((left, top - 14, left + 34, top), fill="#ff2d55")
        draw.text((left + 4, top - 13), f"{score:.0%}", "white")
    return large


def main(arguments: list[str] | None = None) -> Boxes:
    """Return the boxes of the faces; print and draw them."""
    parser = argparse.ArgumentParser(description="Finds faces in a picture.")
    parser.add_argument("picture", type=Path, nargs="?")
    parser.add_argument("--model", type=Path)
    given = parser.parse_args(arguments)
    OUT.mkdir(exist_ok=True)
    sys.path.insert(0, str(HERE))
    demo = import_module("smileys")
    if given.picture is None:
        demo.write_picture(OUT / "crowd.png")
    if given.model is None:
        demo.write_model(OUT / "smileys_detector.onnx")
    detector = load_detector(given.model or OUT / "smileys_detector.onnx")
    file = Image.open(given.picture or OUT / "crowd.png")
    picture = ImageOps.exif_transpose(file).convert("RGB")
    boxes, scores = detect(detector, picture)
    for box, score in zip(boxes, scores, strict=True):
        print(f"face {score:.0%} at", *(f"{edge:4.0f}" for edge in box))
    draw_boxes(picture, boxes, scores).save(OUT / "faces.png")
    return boxes


if __name__ == "__main__":
    main()

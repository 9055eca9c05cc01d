"""A picture with faces and a detector of them, to try the example with."""

from pathlib import Path

import numpy as np
import onnx.parser
from numpy.typing import NDArray
from onnx import numpy_helper
from PIL import Image, ImageDraw

WIDTH, HEIGHT, SIZE = 320, 240, 32
COLORS = ("#f4c542", "#8bd3c7", "#f2a0a0", "#b5c7f2", "#c9e4a7")
DETECTOR = """
<ir_version: 10, opset_import: ["": 20]>
smileys (float[1, 3, 240, 320] input)
    => (float[1, anchors, 2] scores, float[1, anchors, 4] boxes)
    <int64[1] axes = {1}, int64[3] row = {1, -1, 1}, float one = {1.0},
     float bar = {0.4}, float slope = {30.0}, float tiny = {0.01}>
{
    gray = ReduceMean(input, axes)
    similar = Conv<strides = [2, 2]>(gray, template)
    mean = Conv<strides = [2, 2]>(gray, window)
    square = Mul(gray, gray)
    power = Conv<strides = [2, 2]>(square, window)
    mean2 = Mul(mean, mean)
    variance = Sub(power, mean2)
    safe = Max(variance, tiny)
    deviation = Sqrt(safe)
    correlation = Div(similar, deviation)
    above = Sub(correlation, bar)
    logits = Mul(above, slope)
    grid = Sigmoid(logits)
    face = Reshape(grid, row)
    other = Sub(one, face)
    scores = Concat<axis = 2>(other, face)
    boxes = Identity(anchors)
}
"""


def draw_face(draw: ImageDraw.ImageDraw, left: int, top: int, color: str) -> None:
    """Draw a face of 32 x 32 pixels."""
    draw.ellipse((left, top, left + SIZE - 1, top + SIZE - 1), color)
    for eye in (left + 9, left + 18):
        draw.ellipse((eye, top + 9, eye + 4, top + 13), "black")
    mouth = (left + 8, top + 10, left + SIZE - 9, top + SIZE - 8)
    draw.arc(mouth, 20, 160, "black", 3)


def write_picture(path: Path) -> list[tuple[int, int]]:
    """Write a crowd of faces among discs; return the upper left corners."""
    rng = np.random.default_rng(3)
    picture = Image.new("RGB", (WIDTH, HEIGHT), "#44546a")
    draw = ImageDraw.Draw(picture)
    corners = []
    cells = rng.permutation([(x, y) for x in range(6) for y in range(4)])
    for number, (x, y) in enumerate(cells[:16]):
        left, top = (int(v) for v in (x * 52 + 6, y * 58 + 8) + rng.integers(-4, 14, 2))
        color = COLORS[number % len(COLORS)]
        if number < 9:
            draw_face(draw, left, top, color)
            corners.append((left, top))
        else:
            draw.ellipse((left, top, left + SIZE, top + SIZE), color)
    picture.save(path)
    return corners


def write_model(path: Path) -> None:
    """Write a detector with UltraFace's inputs and outputs.

    It looks for the eyes and the mouth of a drawn face in each window.
    """
    face = Image.new("L", (SIZE, SIZE), 0)
    draw_face(ImageDraw.Draw(face), 0, 0, "white")
    rows, columns = np.mgrid[:SIZE, :SIZE] - (SIZE - 1) / 2
    disc = np.hypot(rows, columns) < SIZE / 2 - 1
    dark = disc * (1 - np.asarray(face, np.float32) / 255)
    template = (dark.mean() / disc.mean() * disc - dark).astype(np.float32)
    template /= np.linalg.norm(template) * SIZE
    tops, lefts = np.mgrid[0 : HEIGHT - SIZE + 1 : 2, 0 : WIDTH - SIZE + 1 : 2]
    edges = [lefts, tops, lefts + SIZE, tops + SIZE]
    scale = np.array([WIDTH, HEIGHT, WIDTH, HEIGHT], np.float32)
    anchors = np.stack(edges, -1).reshape(1, -1, 4) / scale
    model = onnx.parser.parse_model(DETECTOR)
    stored: dict[str, NDArray[np.float32]] = {
        "template": template[None, None],
        "window": np.full((1, 1, SIZE, SIZE), 1 / template.size, np.float32),
        "anchors": anchors.astype(np.float32),
    }
    for name, array in stored.items():
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    onnx.save(model, path)

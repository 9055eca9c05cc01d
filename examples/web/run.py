"""Serves a page on which a generated module names digits that one draws or drops.

Run it as ``python examples/web/run.py [--port 8000]`` and open the address that it
prints. It needs Pillow (``pip install pillow``), and writes ``generated/`` beside
itself.
"""

import argparse
import io
import json
import sys
import warnings
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

import burn
from burn import ops
from burn_import import ModelGen

HERE = Path(__file__).parent
MODEL = HERE.parents[1] / "models" / "digits" / "digits.onnx"
OUT = HERE / "generated"
MOST_BYTES, MOST_PIXELS = 8 << 20, 1 << 24
#: The extent of the network's pictures, and how many pixels each of theirs counts.
SIZE, BLOCK = 8, 4

Gray = NDArray[np.float32]


def load_model() -> Callable[[burn.Tensor], burn.Tensor]:
    """Return the classifier generated from the ONNX file: images to probabilities."""
    ModelGen().input(str(MODEL)).out_dir(str(OUT)).run_from_script()
    sys.path.insert(0, str(OUT))
    model = import_module(MODEL.stem).Digits.load()

    @burn.compile
    def probabilities(images: burn.Tensor) -> burn.Tensor:
        return ops.softmax(model(images), axis=-1)

    return probabilities


def read_picture(data: bytes) -> Gray:
    """Return a picture as float32[height, width]: 1 where there is ink, 0 elsewhere.

    Raises:
        ValueError: it is no picture, too large, or of one color.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # of pictures that would fill the memory
            picture = Image.open(io.BytesIO(data))
            if picture.width * picture.height > MOST_PIXELS:
                raise ValueError(f"expected at most {MOST_PIXELS} pixels")
            gray = np.asarray(_on_white(picture).convert("L"), np.float32)
    except (UnidentifiedImageError, OSError, Warning) as error:
        raise ValueError(f"expected a picture: {error}") from None
    low, high = float(gray.min()), float(gray.max())
    if high - low < 32:
        raise ValueError("expected a digit, got a picture of one color")
    ink = (high - gray) / (high - low)
    edge = np.concatenate([ink[0], ink[-1], ink[:, 0], ink[:, -1]])
    return ink if edge.mean() < 0.5 else 1 - ink


def _on_white(picture: Image.Image) -> Image.Image:
    """Return a picture whose transparent parts are white."""
    colors = picture.convert("RGBA")
    white = Image.new("RGBA", colors.size, "white")
    return Image.alpha_composite(white, colors)


def shrink(ink: Gray) -> Gray:
    """Return float32[8, 8] in [0, 1]: the digit as those that the network learnt from.

    They fill their height and stand in the middle; a pixel is the share of ink in a
    block of 4 x 4.
    """
    rows, columns = np.nonzero(ink > 0.5)
    cut = ink[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
    full = SIZE * BLOCK
    scale = full / max(cut.shape)
    height, width = (max(1, round(scale * extent)) for extent in cut.shape)
    small = Image.fromarray((255 * cut).astype(np.uint8)).resize((width, height))
    canvas = np.zeros((full, full), np.float32)
    top, left = (full - height) // 2, (full - width) // 2
    canvas[top : top + height, left : left + width] = np.asarray(small) > 127
    shares: Gray = canvas.reshape(SIZE, BLOCK, SIZE, BLOCK).mean((1, 3))
    return shares


class Handler(BaseHTTPRequestHandler):
    """Answers for the page and for the pictures that it sends."""

    model: Callable[[burn.Tensor], burn.Tensor]

    def do_GET(self) -> None:
        """Send the page."""
        if self.path == "/":
            page = (HERE / "page.html").read_bytes()
            self._send(HTTPStatus.OK, page, "text/html; charset=utf-8")
        else:
            self._fail(HTTPStatus.NOT_FOUND, f"expected /, got {self.path}")

    def do_POST(self) -> None:
        """Send the network's scores of a picture."""
        length = int(self.headers.get("Content-Length", 0))
        if self.path != "/classify":
            self._fail(HTTPStatus.NOT_FOUND, f"expected /classify, got {self.path}")
        elif length > MOST_BYTES:
            message = f"expected at most {MOST_BYTES} bytes, got {length}"
            self._fail(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, message)
        else:
            try:
                self._json(HTTPStatus.OK, self._classified(self.rfile.read(length)))
            except ValueError as error:
                self._fail(HTTPStatus.BAD_REQUEST, str(error))

    def _classified(self, data: bytes) -> dict[str, Any]:
        pixels = shrink(read_picture(data))
        probabilities = type(self).model(burn.tensor(pixels[None, None])).numpy()[0]
        return {"probabilities": probabilities.tolist(), "pixels": pixels.tolist()}

    def _fail(self, status: HTTPStatus, message: str) -> None:
        self.close_connection = True  # what was sent may not have been read
        self._json(status, {"error": message})

    def _json(self, status: HTTPStatus, content: Any) -> None:
        self._send(status, json.dumps(content).encode(), "application/json")

    def _send(self, status: HTTPStatus, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing for a request."""


def main() -> None:
    """Serve until somebody interrupts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8000, help="0 takes a free one")
    port = parser.parse_args().port
    Handler.model = staticmethod(load_model())
    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        print(f"http://127.0.0.1:{server.server_port}", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()


if __name__ == "__main__":
    main()

"""Decoding of image files."""

import io
from typing import Any

import numpy as np

from burn.ops.support import Array, namespace
from burn.primitive import primitive

_FORMATS = ("BMP", "JPEG", "JPEG2000", "PNG", "PPM", "TIFF", "WEBP")
_MODES = {"RGB": "RGB", "BGR": "RGB", "Grayscale": "L"}


@primitive(no_gradient="bytes have no gradient")
def decode_image(data: Array, *, pixel_format: str = "RGB") -> Array:
    """Return the image in the file contents ``data``: uint8 [height, width, channels].

    BMP, JPEG, JPEG 2000, PNG, PNM, TIFF and WebP are decoded on the host by Pillow.
    ``pixel_format`` is ``"RGB"``, ``"BGR"`` or ``"Grayscale"`` (one channel). Other
    data result in an image without pixels.

    Raises:
        ImportError: Pillow is not installed.
        ValueError: ``pixel_format`` is unknown.
    """
    if pixel_format not in _MODES:
        raise ValueError(f"expected one of {', '.join(_MODES)}, got {pixel_format!r}")
    raw = data.get() if hasattr(data, "get") else data
    image = _decoded(np.ascontiguousarray(raw).tobytes(), _MODES[pixel_format])
    if pixel_format == "BGR":
        image = image[:, :, ::-1]
    return namespace(data).asarray(image)


def _decoded(content: bytes, mode: str) -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError(
            "decode_image needs Pillow, which the extra installs: "
            "pip install 'burn-runtime[images]'"
        ) from error
    channels = len(mode)
    try:
        with Image.open(io.BytesIO(content), formats=_FORMATS) as image:
            pixels = np.asarray(image.convert(mode))
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):
        return np.zeros((0, 0, channels), np.uint8)
    return pixels.reshape(*pixels.shape[:2], channels)

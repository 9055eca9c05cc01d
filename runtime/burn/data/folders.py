"""Datasets of image or audio files with a subfolder for each class."""

from __future__ import annotations

import wave
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from burn.data.dataset import Source

Array = np.ndarray[Any, Any]
IMAGES = (".bmp", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp")


class _Folder(Source[tuple[Any, int]]):
    """Files in subfolders, with the index of the subfolder as the class."""

    def __init__(self, root: str | Path, suffixes: Collection[str]) -> None:
        self.root = Path(root)
        folders = sorted(path for path in self.root.iterdir() if path.is_dir())
        if not folders:
            raise ValueError(f"{root}: expected a subfolder for each class, got none")
        #: Names of the classes: the subfolders in alphabetical order.
        self.classes = [folder.name for folder in folders]
        #: Every file with its class.
        self.files = [
            (path, label)
            for label, folder in enumerate(folders)
            for path in sorted(folder.rglob("*"))
            if path.suffix.lower() in suffixes and path.is_file()
        ]
        if not self.files:
            raise ValueError(f"{root}: expected files {sorted(suffixes)}, got none")

    def __len__(self) -> int:
        return len(self.files)


class ImageFolder(_Folder):
    """Images of subfolders: (uint8[H, W, C], class).

    Classes are numbered in the alphabetical order of their folders, see ``classes``.
    :func:`channels_first` converts an image to the input of a model.

    Args:
        root: a folder with a subfolder for each class.
        size: (height, width) to resize to, bilinearly; by default as in the file.
        mode: the mode of Pillow to convert to: ``"RGB"``, or ``"L"`` with one channel.

    Raises:
        ImportError: Pillow is not installed.
        ValueError: there is no subfolder or no image.
    """

    def __init__(
        self, root: str | Path, size: tuple[int, int] | None = None, mode: str = "RGB"
    ) -> None:
        super().__init__(root, IMAGES)
        self.size, self.mode = size, mode
        _pillow()

    def item(self, index: int) -> tuple[Array, int]:
        pillow = _pillow()
        path, label = self.files[index]
        with pillow.open(path) as file:
            image = file.convert(self.mode)
        if self.size is not None:
            height, width = self.size
            image = image.resize((width, height), pillow.Resampling.BILINEAR)
        array = np.asarray(image)
        return (array if array.ndim == 3 else array[:, :, None]), label


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError(
            "ImageFolder needs Pillow, which the extra installs: "
            "pip install 'burn-runtime[images]'"
        ) from error
    return Image


def channels_first(
    image: Array,
    mean: float | Iterable[float] = 0.0,
    std: float | Iterable[float] = 1.0,
) -> Array:
    """Return an image uint8[H, W, C] as normalized float32[C, H, W].

    Values are scaled to [0, 1], then ``mean`` is subtracted and the result is divided
    by ``std``; both are numbers or one number per channel.

    Raises:
        ValueError: the image is of another dtype or rank.
    """
    if image.dtype != np.uint8 or image.ndim != 3:
        raise ValueError(
            f"expected an image uint8[H, W, C], got {image.dtype}{list(image.shape)}"
        )
    scaled = image.astype(np.float32) / np.float32(255)
    shift, scale = (
        np.asarray(x if isinstance(x, int | float) else list(x), np.float32)
        for x in (mean, std)
    )
    return np.ascontiguousarray(((scaled - shift) / scale).transpose(2, 0, 1))


class Audio(NamedTuple):
    """Audio: float32[channels, frames] in [-1, 1), and the sample rate in Hz."""

    samples: Array
    rate: int


class Wav(Source[Audio]):
    """A dataset of WAV files, which are read on access, see :func:`read_wav`."""

    def __init__(self, files: Iterable[str | Path]) -> None:
        self.files = [Path(path) for path in files]

    def __len__(self) -> int:
        return len(self.files)

    def item(self, index: int) -> Audio:
        return read_wav(self.files[index])


class WavFolder(_Folder):
    """WAV files in class subfolders: (:class:`Audio`, class), as in ImageFolder."""

    def __init__(self, root: str | Path) -> None:
        super().__init__(root, (".wav",))

    def item(self, index: int) -> tuple[Audio, int]:
        path, label = self.files[index]
        return read_wav(path), label


def read_wav(path: str | Path) -> Audio:
    """Return the audio of a WAV file with PCM of 8, 16, 24 or 32 bits.

    Raises:
        ValueError: the file is not a WAV file, is truncated, or has another format.
    """
    try:
        with wave.open(str(path), "rb") as file:
            channels, width = file.getnchannels(), file.getsampwidth()
            rate, frames = file.getframerate(), file.getnframes()
            data = file.readframes(frames)
    except (wave.Error, EOFError) as error:
        raise ValueError(f"{path}: not a WAV file with PCM: {error}") from error
    if width not in (1, 2, 3, 4):
        raise ValueError(f"{path}: expected samples of 1 to 4 bytes, got {width}")
    if len(data) != channels * width * frames:
        raise ValueError(
            f"{path}: expected {channels * width * frames} bytes of samples, "
            f"got {len(data)}"
        )
    samples = _samples(np.frombuffer(data, np.uint8), width)
    return Audio(np.ascontiguousarray(samples.reshape(-1, channels).T), rate)


def _samples(data: Array, width: int) -> Array:
    """Return little-endian PCM (signed, except 8 bits) as float32."""
    if width == 1:
        return (data.astype(np.float32) - 128) / 128
    # In the upper bytes of 32 bits, the sign bit is at the right position.
    padded = np.zeros((data.size // width, 4), np.uint8)
    padded[:, 4 - width :] = data.reshape(-1, width)
    numbers = padded.view("<i4")[:, 0]
    return (numbers / 2.0**31).astype(np.float32)

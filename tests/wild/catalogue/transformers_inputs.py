"""Example inputs for models of transformers, by the parameters of ``forward``."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import torch

TEXT = ("input_ids", "attention_mask")
#: Sets of inputs that are tried in this order; the first that runs is used.
CANDIDATES: tuple[tuple[str, ...], ...] = (
    ("input_ids", "attention_mask", "bbox", "pixel_values"),
    ("input_ids", "attention_mask", "bbox"),
    ("input_ids", "attention_mask", "pixel_values", "decoder_input_ids"),
    ("input_ids", "attention_mask", "pixel_values"),
    ("input_ids", "attention_mask", "input_features"),
    ("input_ids", "attention_mask", "input_values"),
    ("input_ids", "attention_mask", "decoder_input_ids"),
    TEXT,
    ("input_ids", "pixel_values"),
    ("input_ids",),
    ("pixel_values", "decoder_input_ids"),
    ("pixel_values", "pixel_mask"),
    ("pixel_values",),
    ("pixel_values_videos",),
    ("input_features", "decoder_input_ids"),
    ("input_features", "attention_mask"),
    ("input_features",),
    ("input_values", "decoder_input_ids"),
    ("input_values",),
    ("audio_values",),
    ("past_values", "past_observed_mask"),
    ("past_values",),
    ("inputs_embeds", "attention_mask"),
    ("inputs_embeds",),
    ("hidden_states", "grid_thw"),
    ("hidden_states",),
    ("spectrogram",),
)


def input_sets(model: Any) -> Iterator[tuple[tuple[str, ...], list[dict[str, Any]]]]:
    """Yield names of inputs and the shapes to try for them, each for two sizes."""
    names = set(inspect.signature(model.forward).parameters)
    for candidate in CANDIDATES:
        if names.issuperset(candidate):
            yield candidate, [{"layout": k} for k in range(_layouts(candidate))]


def _layouts(candidate: tuple[str, ...]) -> int:
    shaped = ("pixel_values", "input_features", "input_values", "past_values")
    return 3 if any(name in shaped for name in candidate) else 1


def make_inputs(
    config: Any, names: tuple[str, ...], layout: int, size: int
) -> dict[str, Any]:
    """Return tensors by name for a batch of 2, or of 3 where ``size`` is 1.

    ``layout`` chooses between orders of axes: images or videos, channels first or last.
    """
    batch, length = (2, 8) if size == 0 else (3, 11)
    makers: dict[str, Any] = {
        "input_ids": lambda: torch.randint(3, 80, (batch, length)),
        "decoder_input_ids": lambda: torch.randint(3, 80, (batch, length - 3)),
        "attention_mask": lambda: _mask(batch, names, config, layout, size, length),
        "bbox": lambda: torch.randint(0, 40, (batch, length, 4)).cumsum(-1) // 4,
        "pixel_values": lambda: _images(config, batch, layout),
        "pixel_values_videos": lambda: torch.rand(batch, 4, 3, 32, 32),
        "pixel_mask": lambda: torch.ones(
            (batch, *_images(config, 1, layout).shape[-2:]), dtype=torch.int64
        ),
        "input_features": lambda: _features(config, batch, layout, size),
        "input_values": lambda: _sound(config, batch, layout, size),
        "audio_values": lambda: torch.randn(batch, 1, 1600 + 320 * size),
        "past_values": lambda: _series(config, batch, layout),
        "past_observed_mask": lambda: torch.ones_like(_series(config, batch, layout)),
        "inputs_embeds": lambda: torch.randn(batch, length, _width(config)),
        "hidden_states": lambda: (
            torch.randn(16, _patch_width(config))
            if "grid_thw" in names
            else torch.randn(batch, length, _width(config))
        ),
        "grid_thw": lambda: torch.tensor([[1, 4, 4]]),
        "spectrogram": lambda: torch.randn(batch, length, 80),
    }
    return {name: makers[name]() for name in names}


def field(config: Any, name: str, default: Any) -> Any:
    """Return a field of a configuration, or of the first inner one that has it."""
    value = getattr(config, name, None)
    if value is not None:
        return value
    for inner in vars(config).values():
        if hasattr(inner, "to_dict"):
            found = field(inner, name, None)
            if found is not None:
                return found
    return default


def _mask(
    batch: int, names: tuple[str, ...], config: Any, layout: int, size: int, length: int
) -> Any:
    """Return a mask in which the last row ends with two padded positions."""
    if "input_ids" not in names and "inputs_embeds" not in names:
        length = _features(config, batch, layout, size).shape[1]
    mask = torch.ones(batch, length, dtype=torch.int64)
    mask[-1, -2:] = 0
    return mask


def _side(config: Any) -> tuple[int, int]:
    side = field(config, "image_size", 64)
    if isinstance(side, Mapping):
        return int(side["height"]), int(side["width"])
    if isinstance(side, int):
        return side, side
    return int(side[-2]), int(side[-1])


def _images(config: Any, batch: int, layout: int) -> Any:
    """Return images, videos [n, frames, c, h, w], or flattened patches."""
    channels = int(field(config, "num_channels", 3))
    height, width = _side(config)
    if layout == 0:
        return torch.randn(batch, channels, height, width)
    if layout == 1:
        frames = int(field(config, "num_frames", 2))
        return torch.randn(batch, frames, channels, height, width)
    return torch.randn(batch, channels, 2 * height, 2 * width)


def _features(config: Any, batch: int, layout: int, size: int) -> Any:
    """Return spectrograms [n, bins, frames], [n, frames, bins] or [n, 1, ...]."""
    bins = int(field(config, "num_mel_bins", field(config, "feature_size", 80)))
    frames = 2 * int(field(config, "max_source_positions", 32))
    if layout == 0:
        return torch.randn(batch, bins, frames)
    if layout == 1:
        width = field(config, "input_feat_per_channel", None)
        width = width or field(config, "feature_projection_input_dim", bins)
        return torch.randn(batch, 40 + 8 * size, int(width))
    return torch.randn(batch, 1, 64, bins)


def _sound(config: Any, batch: int, layout: int, size: int) -> Any:
    """Return samples [n, t] or [n, 1, t], or a spectrogram [n, frames, bins]."""
    samples = 2000 + 640 * size
    if layout == 0:
        return torch.randn(batch, samples)
    if layout == 1:
        return torch.randn(batch, int(field(config, "audio_channels", 1)), samples)
    frames = int(field(config, "max_length", 64))
    return torch.randn(batch, frames, int(field(config, "num_mel_bins", 80)))


def _series(config: Any, batch: int, layout: int) -> Any:
    length = int(field(config, "context_length", 32))
    channels = int(field(config, "num_input_channels", 1))
    return (
        torch.randn(batch, length) if layout else torch.randn(batch, length, channels)
    )


def _patch_width(config: Any) -> int:
    """Return the number of values in one patch of a video."""
    patch, frames = field(config, "patch_size", 14), field(
        config, "temporal_patch_size", 1
    )
    channels = field(config, "in_channels", field(config, "num_channels", 3))
    return int(channels) * int(frames) * int(patch) ** 2


def _width(config: Any) -> int:
    for name in ("hidden_size", "d_model", "n_embd"):
        width = field(config, name, None)
        if isinstance(width, int):
            return width
    return 32

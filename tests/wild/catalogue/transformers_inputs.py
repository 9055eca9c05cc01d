"""Example inputs for models of transformers, by the parameters of ``forward``."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import torch

from tests.wild.catalogue.rare_inputs import (
    GRIDS,
    PATCHES,
    RARE_CANDIDATES,
    flat_patches,
    rare_makers,
)

PAST = ("past_values", "past_time_features", "past_observed_mask")
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
    ("pixel_values", "noise"),
    ("pixel_values",),
    ("pixel_values_videos",),
    ("input_features", "decoder_input_ids"),
    ("input_features", "attention_mask"),
    ("input_features",),
    ("input_values", "decoder_input_ids"),
    ("input_values",),
    ("audio_values",),
    (*PAST, "future_values", "future_time_features"),
    ("past_values", "past_observed_mask"),
    ("past_values",),
    ("inputs_embeds", "attention_mask"),
    ("inputs_embeds",),
    ("hidden_states", "grid_thw"),
    ("hidden_states",),
    ("spectrogram",),
)


POSITIONAL = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
)


def input_sets(model: Any) -> Iterator[tuple[tuple[str, ...], list[dict[str, Any]]]]:
    """Yield names of inputs and the shapes to try for them, each for two sizes."""
    parameters = inspect.signature(model.forward).parameters
    names = set(parameters)
    needed = tuple(
        name
        for name, parameter in parameters.items()
        if parameter.default is parameter.empty and parameter.kind in POSITIONAL
    )
    for candidate in dict.fromkeys((*CANDIDATES, *RARE_CANDIDATES, needed)):
        if candidate and names.issuperset(candidate):
            more = (name for name in needed if name not in candidate)
            candidate = (*candidate, *more)
            yield candidate, [{"layout": k} for k in range(_layouts(candidate))]


def _layouts(candidate: tuple[str, ...]) -> int:
    shaped = (
        "position_ids",
        "pixel_values",
        "input_features",
        "input_values",
        "past_values",
    )
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
        "pixel_values": lambda: _pixels(config, names, batch, layout),
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
    }
    makers |= _other_makers(config, names, layout, size, batch, length)
    return {name: makers[name]() for name in names}


def _other_makers(
    config: Any, names: tuple[str, ...], layout: int, size: int, batch: int, length: int
) -> dict[str, Any]:
    """Return functions that make the inputs that few models take, by name."""
    frames = max(_features(config, batch, layout, size).shape[1:])
    future = _future_length(config)
    makers: dict[str, Any] = {
        "hidden_states": lambda: (
            torch.randn(16 * batch, _patch_width(config))
            if "grid_thw" in names
            else torch.randn(batch, length, _width(config))
        ),
        "spectrogram": lambda: torch.randn(batch, length, 80),
        "past_time_features": lambda: torch.randn(batch, _past_length(config), 0),
        "future_values": lambda: torch.randn(batch, future),
        "future_time_features": lambda: torch.randn(batch, future, 0),
        "input_features_mask": lambda: torch.ones(batch, frames, dtype=torch.int64),
        "prompt_pixel_values": lambda: _images(config, batch, layout),
        "prompt_masks": lambda: _images(config, batch, layout),
    }
    makers |= rare_makers(partial(field, config), batch, length)
    if layout == 1:
        places = torch.arange(length).expand(3, batch, length)
        makers["position_ids"] = lambda: places.clone()
    makers["flattened_patches"] = lambda: flat_patches(partial(field, config), batch)
    return makers


def add_image_tokens(config: Any, inputs: dict[str, Any], count: int) -> dict[str, Any]:
    """Return inputs whose text begins with ``count`` tokens of an image.

    Raises:
        KeyError: the inputs have no text, or the configuration no such token.
    """
    token = field(config, "image_token_id", field(config, "image_token_index"))
    if token is None or count > 300:
        raise KeyError("image_token_id")
    batch = inputs["input_ids"].shape[0]
    images = torch.full((batch, count), int(token))
    result = inputs | {"input_ids": torch.cat([images, inputs["input_ids"]], dim=1)}
    if "attention_mask" in inputs:
        mask = [torch.ones_like(images), inputs["attention_mask"]]
        result["attention_mask"] = torch.cat(mask, dim=1)
    return result


def _pixels(config: Any, names: tuple[str, ...], batch: int, layout: int) -> Any:
    """Return images, or patches where another input tells how they are arranged."""
    if any(name in GRIDS for name in names):
        if layout == 1:
            side = int(field(config, "patch_size", 14))
            return torch.randn(16 * batch, 3, side, side)
        frames = 2 if layout == 2 else 1
        return torch.randn(16 * batch, frames * _patch_width(config))
    if any(name in PATCHES for name in names):
        return torch.randn(batch, 16, _patch_width(config))
    return _images(config, batch, layout)


def _past_length(config: Any) -> int:
    """Return how many past values a model of time series takes, lags included."""
    lags = field(config, "lags_sequence", [0])
    longest: int = max(lags)
    return int(field(config, "context_length", 16)) + longest


def _future_length(config: Any) -> int:
    return int(field(config, "prediction_length", 4))


def field(config: Any, name: str, default: Any = None) -> Any:
    """Return a field of a configuration, or of the first inner one that has it."""
    value = getattr(config, name, None)
    if value is not None:
        return value
    for inner in vars(config).values():
        if hasattr(inner, "to_dict"):
            result = field(inner, name, None)
            if result is not None:
                return result
    return default


def _mask(
    batch: int, names: tuple[str, ...], config: Any, layout: int, size: int, length: int
) -> Any:
    """Return a mask in which the last row ends with two padded positions."""
    if "input_features" in names and "input_ids" not in names:
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
    if getattr(config, "lags_sequence", None):
        return torch.rand(batch, _past_length(config))
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

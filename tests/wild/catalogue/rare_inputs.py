"""Inputs that few models of transformers take: patches, states, prompts and masks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

#: Sets of inputs of models of more than text, images or sound.
RARE_CANDIDATES: tuple[tuple[str, ...], ...] = (
    ("pixel_values", "grid_thw"),
    ("pixel_values", "image_grid_thw"),
    ("pixel_values", "pixel_attention_mask", "spatial_shapes"),
    ("pixel_values", "pixel_position_ids"),
    ("pixel_values", "image_position_ids"),
    ("pixel_values", "target_sizes"),
    ("pixel_values", "prompt_pixel_values", "prompt_masks"),
    ("pixel_values", "input_ids", "attention_mask", "qformer_input_ids"),
    ("states", "actions", "rewards", "returns_to_go", "timesteps", "attention_mask"),
    ("input_ids", "attention_mask", "visual_feats", "visual_pos"),
    ("input_ids", "attention_mask", "input_features", "is_longer"),
    ("flattened_patches", "decoder_input_ids"),
    ("query_embeds", "encoder_hidden_states"),
    ("input_features", "input_features_mask"),
    ("input_ids", "attention_mask", "position_ids"),
    ("input_ids", "position_ids"),
)
#: Inputs that say that ``pixel_values`` are rows of patches.
GRIDS = ("grid_thw", "image_grid_thw")
#: Inputs that say that ``pixel_values`` are patches [n, patches, values].
PATCHES = ("spatial_shapes", "pixel_position_ids", "image_position_ids")


def rare_makers(
    field: Callable[[str, Any], Any], batch: int, length: int
) -> dict[str, Callable[[], Any]]:
    """Return functions that make inputs, by name; images are 4 by 4 patches."""
    side, grid = 4, torch.tensor([[1, 4, 4]] * batch)
    places = torch.cartesian_prod(torch.arange(side), torch.arange(side))
    ids = lambda: torch.randint(3, 80, (batch, length))  # noqa: E731
    return {
        "grid_thw": lambda: grid,
        "image_grid_thw": lambda: grid,
        "merge_sizes": lambda: torch.ones(batch, dtype=torch.int64),
        "spatial_shapes": lambda: grid[:, 1:],
        "target_sizes": lambda: grid[:, 1:],
        "pixel_attention_mask": lambda: torch.ones(batch, side**2, dtype=torch.int64),
        "pixel_position_ids": lambda: places.expand(batch, -1, -1).clone(),
        "image_position_ids": lambda: places.expand(batch, -1, -1).clone(),
        "qformer_input_ids": ids,
        "states": lambda: torch.randn(batch, length, int(field("state_dim", 17))),
        "state": lambda: torch.randn(batch, int(field("max_state_dim", 32))),
        "actions": lambda: torch.randn(batch, length, int(field("act_dim", 4))),
        "rewards": lambda: torch.randn(batch, length, 1),
        "returns_to_go": lambda: torch.randn(batch, length, 1),
        "timesteps": lambda: torch.arange(length).expand(batch, length).clone(),
        "position_ids": lambda: torch.arange(length).expand(batch, length).clone(),
        "visual_feats": lambda: torch.randn(
            batch, 5, int(field("visual_feat_dim", 2048))
        ),
        "visual_pos": lambda: torch.rand(batch, 5, int(field("visual_pos_dim", 4))),
        "is_longer": lambda: torch.zeros(batch, 1, dtype=torch.bool),
        "query_embeds": lambda: torch.randn(batch, 4, int(field("hidden_size", 32))),
        "encoder_hidden_states": lambda: torch.randn(
            batch, 6, int(field("encoder_hidden_size", field("hidden_size", 32)))
        ),
        "noise": lambda: torch.rand(batch, side**2),
        "lang_ids": lambda: torch.zeros(batch, dtype=torch.int64),
    }


def flat_patches(field: Callable[[str, Any], Any], batch: int) -> Any:
    """Return images as indices and values of patches, [n, 16, 2 + values]."""
    patch = int(field("patch_size", 16))
    places = torch.cartesian_prod(torch.arange(4), torch.arange(4)).float() + 1
    values = torch.randn(batch, 16, 3 * patch**2)
    return torch.cat([places.expand(batch, -1, -1), values], dim=-1)

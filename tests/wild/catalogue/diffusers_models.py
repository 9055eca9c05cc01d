"""Models of diffusers with small configurations: UNets, autoencoders, transformers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import diffusers
import torch

from tests.wild.catalogue.wrappers import wrap_model
from tests.wild.entry import Case, Entry

Inputs = Callable[[int], dict[str, Any]]
Spec = tuple[str, dict[str, Any], Inputs]
BLOCKS: dict[str, Any] = {"block_out_channels": (16, 32), "norm_num_groups": 8}
UNET: dict[str, Any] = BLOCKS | {"sample_size": 16, "layers_per_block": 1}
CROSS: dict[str, Any] = UNET | {"cross_attention_dim": 16, "attention_head_dim": 8}
CODER: dict[str, Any] = BLOCKS | {
    "down_block_types": ("DownEncoderBlock2D",) * 2,
    "up_block_types": ("UpDecoderBlock2D",) * 2,
    "latent_channels": 4,
}
HEADS: dict[str, Any] = {"num_attention_heads": 2, "attention_head_dim": 8}


@dataclass(frozen=True)
class Model:
    """A class of diffusers, the arguments of its constructor, and its inputs.

    ``inputs`` takes 0 or 1, the size.
    """

    family: str
    kind: str
    arguments: Mapping[str, Any]
    inputs: Inputs


def images(channels: int, side: int, *more: str) -> Inputs:
    """Return a maker of images, and of a timestep and text if these are named."""

    def make(size: int) -> dict[str, Any]:
        batch = 1 + size
        values: dict[str, Any] = {}
        for name in more or ("sample",):
            if name == "timestep":
                values[name] = torch.randint(1, 900, (batch,)).float()
            elif name == "class_labels":
                values[name] = torch.randint(0, 8, (batch,))
            elif name == "encoder_hidden_states":
                values[name] = torch.randn(batch, 6 + size, 16)
            elif name == "pooled_projections":
                values[name] = torch.randn(batch, 16)
            else:
                values[name] = torch.randn(batch, channels, side, side)
        return values

    return make


def tensors(**shapes: tuple[int, ...]) -> Inputs:
    """Return a maker of normal tensors by name, whose first axis is the batch.

    A shape of one axis is a timestep.
    """

    def make(size: int) -> dict[str, Any]:
        return {
            name: (
                torch.rand(1 + size) * 900
                if len(shape) == 1
                else torch.randn(shape[0] + size, *shape[1:])
            )
            for name, shape in shapes.items()
        }

    return make


def _flux(size: int) -> dict[str, Any]:
    text, rows = 5 + size, 16
    return {
        "hidden_states": torch.randn(1, rows, 4),
        "encoder_hidden_states": torch.randn(1, text, 16),
        "pooled_projections": torch.randn(1, 16),
        "timestep": torch.rand(1),
        "img_ids": torch.arange(rows * 3).reshape(rows, 3).float() % 4,
        "txt_ids": torch.zeros(text, 3),
    }


def _aura_flow(size: int) -> dict[str, Any]:
    """Return tensors with a timestep in [0, 1], which the model multiplies by 1000."""
    inputs = tensors(**TEXT)(size)
    return inputs | {"timestep": inputs["timestep"] / 1000}


def _controlled(size: int) -> dict[str, Any]:
    make = images(4, 16, "sample", "timestep", "encoder_hidden_states")
    return make(size) | {"controlnet_cond": torch.rand(1 + size, 3, 32, 32)}


_STEP = ("sample", "timestep")
_TEXT = (*_STEP, "encoder_hidden_states")
_TOKENS = ("hidden_states", "encoder_hidden_states", "timestep")
_DOWN_UP = {
    "down_block_types": ("DownBlock2D", "AttnDownBlock2D"),
    "up_block_types": ("AttnUpBlock2D", "UpBlock2D"),
    "attention_head_dim": 8,
}
_CROSS_2D = {
    "down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D"),
    "up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D"),
}
_CROSS_3D = {
    "down_block_types": ("CrossAttnDownBlock3D", "DownBlock3D"),
    "up_block_types": ("UpBlock3D", "CrossAttnUpBlock3D"),
}


UNETS: list[Spec] = [
    ("UNet2DModel", UNET | _DOWN_UP, images(3, 16, *_STEP)),
    ("UNet2DConditionModel", CROSS | _CROSS_2D, images(4, 16, *_TEXT)),
    (
        "UNet3DConditionModel",
        CROSS | _CROSS_3D,
        tensors(
            sample=(1, 4, 2, 16, 16),
            timestep=(1,),
            encoder_hidden_states=(1, 6, 16),
        ),
    ),
    (
        "ControlNetModel",
        {**BLOCKS, "layers_per_block": 1, "cross_attention_dim": 16}
        | {"down_block_types": _CROSS_2D["down_block_types"]}
        | {"attention_head_dim": 8, "conditioning_embedding_out_channels": (8, 16)},
        _controlled,
    ),
    (
        "UVit2DModel",
        {"hidden_size": 32, "cond_embed_dim": 16, "encoder_hidden_size": 16}
        | {"block_out_channels": 32, "num_hidden_layers": 1, "sample_size": 16}
        | {"num_attention_heads": 2, "intermediate_size": 64, "vocab_size": 50}
        | {"block_num_heads": 2, "codebook_size": 32, "in_channels": 32}
        | {"micro_cond_encode_dim": 8, "micro_cond_embed_dim": 40},
        lambda size: {
            "input_ids": torch.randint(0, 32, (1 + size, 16, 16)),
            "encoder_hidden_states": torch.randn(1 + size, 6, 16),
            "pooled_text_emb": torch.randn(1 + size, 16),
            "micro_conds": torch.rand(1 + size, 5),
        },
    ),
]
DEEP: dict[str, Any] = {
    "encoder_block_types": "ResBlock",
    "decoder_block_types": "ResBlock",
    "encoder_block_out_channels": (16, 32),
    "decoder_block_out_channels": (16, 32),
    "encoder_layers_per_block": (1, 1),
    "decoder_layers_per_block": (1, 1),
    "encoder_qkv_multiscales": ((), ()),
    "decoder_qkv_multiscales": ((), ()),
    "latent_channels": 4,
    "attention_head_dim": 8,
}
TINY = {
    "encoder_block_out_channels": (16, 16),
    "decoder_block_out_channels": (16, 16),
    "num_encoder_blocks": (1, 1),
    "num_decoder_blocks": (1, 1),
}
SOUND = {
    "encoder_hidden_size": 8,
    "downsampling_ratios": [2, 4],
    "decoder_channels": 8,
    "decoder_input_channels": 4,
    "audio_channels": 1,
    "channel_multiples": [1, 2],
}
CODERS: list[Spec] = [
    ("AutoencoderKL", CODER, images(3, 16)),
    ("VQModel", CODER | {"num_vq_embeddings": 32}, images(3, 16)),
    ("AutoencoderTiny", TINY, images(3, 16)),
    ("AutoencoderDC", DEEP, images(3, 16)),
    ("AutoencoderOobleck", SOUND, tensors(sample=(1, 1, 64))),
    (
        "AsymmetricAutoencoderKL",
        {
            "down_block_types": ("DownEncoderBlock2D",) * 2,
            "up_block_types": ("UpDecoderBlock2D",) * 2,
            "down_block_out_channels": (16, 32),
            "up_block_out_channels": (16, 32),
            "norm_num_groups": 8,
        },
        images(3, 16),
    ),
]
TEXT: dict[str, tuple[int, ...]] = {
    "hidden_states": (1, 4, 8, 8),
    "encoder_hidden_states": (1, 6, 16),
    "timestep": (1,),
}
IMAGE: dict[str, Any] = HEADS | {"in_channels": 4, "sample_size": 8, "num_layers": 1}
VIDEO = {"hidden_states": (1, 4, 3, 8, 8)}
TRANSFORMERS: list[Spec] = [
    (
        "DiTTransformer2DModel",
        IMAGE | {"patch_size": 2, "num_embeds_ada_norm": 8, "out_channels": 4},
        images(4, 8, "hidden_states", "timestep", "class_labels"),
    ),
    (
        "PixArtTransformer2DModel",
        IMAGE
        | {"patch_size": 2, "cross_attention_dim": 16, "out_channels": 8}
        | {"caption_channels": 16, "use_additional_conditions": False},
        tensors(**TEXT),
    ),
    (
        "SD3Transformer2DModel",
        IMAGE
        | {"patch_size": 2, "joint_attention_dim": 16, "out_channels": 4}
        | {"caption_projection_dim": 16, "pooled_projection_dim": 16},
        images(4, 8, *_TOKENS, "pooled_projections"),
    ),
    (
        "FluxTransformer2DModel",
        {"in_channels": 4, "num_layers": 1, "num_single_layers": 1}
        | {"attention_head_dim": 16, "num_attention_heads": 2}
        | {"joint_attention_dim": 16, "pooled_projection_dim": 16}
        | {"axes_dims_rope": (4, 4, 8)},
        _flux,
    ),
    (
        "AuraFlowTransformer2DModel",
        {"sample_size": 8, "num_mmdit_layers": 1, "num_single_dit_layers": 1}
        | HEADS
        | {"joint_attention_dim": 16, "caption_projection_dim": 16},
        _aura_flow,
    ),
    (
        "SanaTransformer2DModel",
        IMAGE
        | {"num_cross_attention_heads": 2, "cross_attention_head_dim": 8}
        | {"cross_attention_dim": 16, "caption_channels": 16, "out_channels": 4},
        tensors(**TEXT),
    ),
    (
        "CogVideoXTransformer3DModel",
        HEADS
        | {"in_channels": 4, "out_channels": 4, "time_embed_dim": 8}
        | {"text_embed_dim": 16, "num_layers": 1, "sample_width": 8}
        | {"sample_height": 8, "sample_frames": 9, "max_text_seq_length": 6},
        tensors(**TEXT | {"hidden_states": (1, 3, 4, 8, 8)}),
    ),
    (
        "WanTransformer3DModel",
        {"num_attention_heads": 2, "attention_head_dim": 12, "in_channels": 4}
        | {"out_channels": 4, "text_dim": 16, "freq_dim": 16, "ffn_dim": 32}
        | {"num_layers": 1, "cross_attn_norm": True},
        tensors(**TEXT | VIDEO),
    ),
    (
        "LatteTransformer3DModel",
        IMAGE
        | {"out_channels": 8, "patch_size": 2, "caption_channels": 16}
        | {"cross_attention_dim": 16, "video_length": 3}
        | {"norm_type": "ada_norm_single", "norm_elementwise_affine": False},
        tensors(**TEXT | VIDEO),
    ),
    (
        "PriorTransformer",
        HEADS | {"num_layers": 1, "embedding_dim": 16, "num_embeddings": 6},
        tensors(
            hidden_states=(1, 16),
            timestep=(1,),
            proj_embedding=(1, 16),
            encoder_hidden_states=(1, 6, 16),
        ),
    ),
]


def _models() -> list[Model]:
    groups = {"UNets": UNETS, "autoencoders": CODERS, "transformers": TRANSFORMERS}
    models = [
        Model(family, *spec) for family, specs in groups.items() for spec in specs
    ]
    return [model for model in models if hasattr(diffusers, model.kind)]


def list_entries() -> list[Entry]:
    """Return an entry for each model with a configuration here."""
    return [
        Entry("diffusers", model.family, model.kind, partial(_build, model))
        for model in _models()
    ]


def _build(model: Model) -> Case:
    kind = getattr(diffusers, model.kind)
    small, large = model.inputs(0), model.inputs(1)
    module = wrap_model(kind(**model.arguments), tuple(small), {})
    return Case(module, tuple(small.values()), tuple(large.values()))

"""A file of weights to the model of its architecture."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import burn_import.recipes.bert
import burn_import.recipes.clip
import burn_import.recipes.convnext
import burn_import.recipes.densenet
import burn_import.recipes.distilbert
import burn_import.recipes.efficientnet
import burn_import.recipes.gemma
import burn_import.recipes.gpt2
import burn_import.recipes.llama
import burn_import.recipes.mobilenet
import burn_import.recipes.resnet
import burn_import.recipes.roberta
import burn_import.recipes.t5
import burn_import.recipes.vgg
import burn_import.recipes.vit
import burn_import.recipes.vit_torchvision
import burn_import.recipes.whisper  # noqa: F401  each registers itself
from burn_import.foreign import REMEDY
from burn_import.pytorch import read as read_weights
from burn_import.recipes.config import Config, read_config
from burn_import.recipes.table import RECIPES, find
from burn_import.recipes.weights import Weights
from burn_import.recipes.writer import Writer
from burn_ir import RawModel, UnsupportedModel


def read(
    path: str | Path,
    config: str | Path | None = None,
    top_level_key: str | None = None,
    *,
    what: str = "file of weights",
) -> RawModel:
    """The model whose weights are in a file of PyTorch or safetensors.

    ``config`` is its ``config.json``; by default the one beside the file, if any.
    ``what`` says in errors what kind of file it is.

    Raises:
        UnreadableFile: a file is not what it should be.
        UnsupportedModel: no recipe knows the architecture.
        InvalidModel: the weights are not those of the architecture.
    """
    path = Path(path)
    beside = path.with_name("config.json")
    if config is None and beside.is_file():
        config = beside
    known = read_config(Path(config)) if config is not None else Config()
    tensors = read_weights(path, top_level_key)
    found = find(tensors, known)
    if found is None:
        names = ", ".join(sorted({recipe.name for recipe in RECIPES}))
        raise UnsupportedModel(
            f"{path.name}: this is a {what}. No module can be made of weights without "
            f"the program that uses them. Known architectures: {names}. {REMEDY}"
        )
    recipe, prefix = found
    writer = Writer(Weights(tensors))
    with writer.module(prefix.removesuffix("."), recipe.class_name):
        model = recipe.build(writer, known)
    return replace(model, notes=(*model.notes, *known.notes))

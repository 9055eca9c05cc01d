"""A file of weights to the model of its architecture."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import burn_import.frontends.recipes.text.bert
import burn_import.frontends.recipes.text.clip
import burn_import.frontends.recipes.text.distilbert
import burn_import.frontends.recipes.text.gemma
import burn_import.frontends.recipes.text.gpt2
import burn_import.frontends.recipes.text.llama
import burn_import.frontends.recipes.text.roberta
import burn_import.frontends.recipes.text.t5
import burn_import.frontends.recipes.text.whisper
import burn_import.frontends.recipes.vision.convnext
import burn_import.frontends.recipes.vision.densenet
import burn_import.frontends.recipes.vision.efficientnet
import burn_import.frontends.recipes.vision.mobilenet
import burn_import.frontends.recipes.vision.resnet
import burn_import.frontends.recipes.vision.vgg
import burn_import.frontends.recipes.vision.vit
import burn_import.frontends.recipes.vision.vit_torchvision  # noqa: F401  each registers itself
from burn_import.foreign import REMEDY
from burn_import.frontends.checkpoints import Checkpoint, read as read_weights
from burn_import.frontends.recipes.config import Config, NotClaimed, read_config
from burn_import.frontends.recipes.config_checks import check_config
from burn_import.frontends.recipes.graph_writer import RecipeWriter
from burn_import.frontends.recipes.registry import RECIPES, Recipe, find
from burn_import.frontends.recipes.sequential import sequential
from burn_import.frontends.recipes.weights import Weights
from burn_import.options import Hints
from burn_ir import InvalidModel, RawModel, UnsupportedModel, build

#: What the dict of a checkpoint is called that holds the weights.
STATES = ("state_dict", "model_state_dict")


def read(
    path: str | Path,
    config: str | Path | None = None,
    top_level_key: str | None = None,
) -> RawModel:
    """The model whose weights are in a file of PyTorch or safetensors.

    ``config`` is its ``config.json``; by default the one beside the file, if any.

    Raises:
        UnreadableFile: a file is not what it should be.
        UnsupportedModel: no recipe knows the architecture.
        InvalidModel: the weights are not those of the architecture.
    """
    path = Path(path)
    hints = Hints(None if config is None else str(config), top_level_key)
    model = model_of(path, hints)
    if not isinstance(model, RawModel):
        names = ", ".join(sorted({recipe.name for recipe in RECIPES}))
        raise UnsupportedModel(
            f"{path.name}: this is a file of weights. No module can be made of weights "
            f"without the program that uses them. {' '.join(model.notes)} "
            f"Known architectures: {names}. {REMEDY}"
        )
    return model


def weights_in(path: Path, top_level_key: str | None) -> Checkpoint:
    """The tensors of a model by name, without the names of dicts around them.

    A dict called ``state_dict`` or ``model_state_dict`` holds them.
    """
    checkpoint = read_weights(path, top_level_key)
    if top_level_key is not None or checkpoint.format in ("safetensors", "sharded"):
        return checkpoint
    tops = dict.fromkeys(key.partition(".")[0] for key in checkpoint)
    named = [top for top in tops if top in STATES]
    return read_weights(path, named[0]) if len(named) == 1 else checkpoint


def config_of(path: Path, hints: Hints) -> Config:
    """The configuration that was named, or is beside the weights; empty without one.

    Raises:
        UnreadableFile: it is none.
    """
    config = Path(hints.config) if hints.config else path.with_name("config.json")
    return read_config(config) if hints.config or config.is_file() else Config()


def model_of(path: Path, hints: Hints) -> RawModel | Checkpoint:
    """The model whose weights are in a file, or they if they do not determine one.

    Then the checkpoint's notes say what is missing or unknown.

    Raises:
        UnreadableFile: a file is not what it should be.
        InvalidModel: the weights are not those of the architecture.
    """
    config = config_of(path, hints)
    checkpoint = weights_in(path, hints.top_level_key)
    if hints.activation is not None:
        return sequential(checkpoint, hints)
    try:
        recipe = find(checkpoint, config)
        if recipe is None:
            return checkpoint
        return _written(checkpoint, config, *recipe)
    except NotClaimed as error:
        note = f"The architecture is not known: {error}."
        return replace(checkpoint, notes=(note,))


def _written(
    checkpoint: Checkpoint, config: Config, recipe: Recipe, prefix: str
) -> RawModel:
    """The model of a recipe.

    Raises:
        NotClaimed: the recipe does not compute all that weights and configuration say.
        InvalidModel: the weights are not those of the architecture.
    """
    writer = RecipeWriter(Weights(checkpoint), class_name=recipe.class_name)
    try:
        with writer.module(prefix.removesuffix("."), recipe.class_name):
            model = recipe.build(writer, config)
        if not recipe.is_configured:
            build(model)
    except UnsupportedModel as error:
        raise NotClaimed(f"keys are those of {recipe.name}, but {error}") from error
    except InvalidModel as error:
        if recipe.is_configured:
            raise
        raise NotClaimed(f"keys are those of {recipe.name}, but {error}") from error
    check_config(config, recipe.name, recipe.supports, writer.class_name)
    return replace(model, notes=(*model.notes, *config.notes, *writer.weights.notes))

"""From a file of weights to the model of its architecture."""

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
from burn_import.frontends.recipes.config import (
    Config,
    NotClaimed,
    config_path,
    read_config,
)
from burn_import.frontends.recipes.config_checks import check_config
from burn_import.frontends.recipes.graph_writer import RecipeWriter
from burn_import.frontends.recipes.registry import RECIPES, Recipe, find
from burn_import.frontends.recipes.sequential import sequential
from burn_import.frontends.recipes.weights import Weights
from burn_import.options import Hints
from burn_ir import InvalidModel, RawModel, UnsupportedModel, build

#: Keys of a checkpoint's dict that holds the weights.
STATES = ("state_dict", "model_state_dict")
#: Formats of files without dicts inside of dicts.
UNNESTED = frozenset({"safetensors", "sharded"})
#: Files with more dicts are not searched for models, since each search reads the file.
MOST_DICTS = 8


def read(
    path: str | Path, config: str | Path | None = None, top_level_key: str | None = None
) -> RawModel:
    """Return the model whose weights are in a PyTorch or safetensors file.

    ``config`` is its ``config.json``; by default the one beside the file, if any.

    Raises:
        UnreadableFile: a file is damaged or of another format.
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
    """Return the tensors of a model by name, without the prefix of enclosing dicts.

    A dict called ``state_dict`` or ``model_state_dict`` is entered.
    """
    checkpoint = read_weights(path, top_level_key)
    if top_level_key is not None or checkpoint.format in UNNESTED:
        return checkpoint
    tops = dict.fromkeys(key.partition(".")[0] for key in checkpoint)
    named = [top for top in tops if top in STATES]
    return read_weights(path, named[0]) if len(named) == 1 else checkpoint


def config_of(path: Path, hints: Hints) -> Config:
    """Return the named configuration, or the one beside the weights, or an empty one.

    Raises:
        UnreadableFile: the file is not a configuration.
    """
    config = config_path(path, hints.config)
    return read_config(config) if hints.config or config.is_file() else Config()


def model_of(path: Path, hints: Hints) -> RawModel | Checkpoint:
    """Return the model whose weights are in a file, or the weights alone.

    Weights that do not determine a model are returned with notes about missing or
    unknown parts.

    Raises:
        UnreadableFile: a file is damaged or of another format.
        InvalidModel: the weights are not those of the architecture.
    """
    config = config_of(path, hints)
    checkpoint = weights_in(path, hints.top_level_key)
    plain = hints.top_level_key is None
    if hints.activation is not None:
        return sequential(checkpoint, hints)
    try:
        recipe = find(checkpoint, config)
        if recipe is None:
            return checkpoint
        return _apply_recipe(checkpoint, config, *recipe)
    except NotClaimed as error:
        note = f"The architecture is not known: {error}."
        dicts = _dicts_of_models(path, checkpoint, config) if plain else ()
        return replace(checkpoint, notes=(note, *_note_of_dicts(dicts)))


def _dicts_of_models(
    path: Path, checkpoint: Checkpoint, config: Config
) -> tuple[str, ...]:
    """Return the keys of the dicts in a checkpoint that have a recipe each.

    Training programs write the weights beside their moving average.
    """
    tops = dict.fromkeys(key.partition(".")[0] for key in checkpoint)
    if checkpoint.format in UNNESTED or not 1 < len(tops) <= MOST_DICTS:
        return ()
    return tuple(top for top in tops if _is_model(path, top, config))


def _is_model(path: Path, top_level_key: str, config: Config) -> bool:
    """Return whether a dict of a checkpoint has the weights of a known model."""
    try:
        return find(read_weights(path, top_level_key), config) is not None
    except (InvalidModel, NotClaimed):
        return False


def _note_of_dicts(dicts: tuple[str, ...]) -> tuple[str, ...]:
    """Return a note about the option that selects one of these dicts, if there are."""
    if not dicts:
        return ()
    several = " and ".join(repr(key) for key in dicts)
    have = "has" if len(dicts) == 1 else "have"
    return (
        f"{several} {have} the weights of a known architecture: import one of them "
        f"alone with --top-level-key {dicts[0]}.",
    )


def _apply_recipe(
    checkpoint: Checkpoint, config: Config, recipe: Recipe, prefix: str
) -> RawModel:
    """Return the model of a recipe.

    Raises:
        NotClaimed: the recipe does not support all weights and settings.
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
